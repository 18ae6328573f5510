# SPDX-License-Identifier: Apache-2.0
"""Placement as objects: the extender, what a scheduler is told of it, and who that scheduler is.

Either the cluster's own scheduler, whose configuration its administrators change, or a second
scheduler beside it, whose pods name it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.manifests.component import Component, Object
from reconciler.manifests.extender import extender_objects
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.scheduler_config import (
    Calls,
    extender_entry,
    managed_resources,
    scheduler_configuration,
)
from reconciler.manifests.second_scheduler import CONFIG_FILE, SCHEDULER_IMAGE, second_scheduler
from reconciler.manifests.text import to_yaml


class Asker(StrEnum):
    """Which scheduler asks the extender."""

    DEFAULT = "default"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """How the extender is installed beside the rest (`options`).

    `url` is where the scheduler reaches it (https://host:port), else it is its Service; a scheduler
    on the host's network may know no Services' names. `environment` sets the extender up. `calls`
    is how often it is asked about a pod: by a second scheduler once, which has no other extender.
    """

    options: ManifestOptions
    asker: Asker = Asker.DEFAULT
    url: str = ""
    image: str = SCHEDULER_IMAGE
    further_resources: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    calls: Calls | None = None

    @property
    def extender(self) -> str:
        """Return the name of the extender's objects."""
        return f"{self.options.name}-extender"

    @property
    def scheduler(self) -> str:
        """Return the name of the second scheduler, which its pods state as schedulerName."""
        return f"{self.options.name}-scheduler"

    def configuration(self) -> Object:
        """Return the KubeSchedulerConfiguration."""
        options = self.options
        host = f"{self.extender}.{options.namespace}.svc"
        entry = extender_entry(
            f"{self.url.rstrip('/') or f'https://{host}'}/scheduler",
            managed_resources(options.catalog, self.further_resources),
            options.ca_bundle,
            # The certificate is that of the webhook's Service.
            server_name="" if self.url else f"{options.name}.{options.namespace}.svc",
            calls=self.calls or (Calls.ONE if self.asker is Asker.SECOND else Calls.TWO),
        )
        if self.asker is Asker.DEFAULT:
            return scheduler_configuration(entry)
        return scheduler_configuration(entry, self.scheduler, (options.namespace, self.scheduler))


def scheduler_objects(installed: SchedulerOptions) -> tuple[Object, ...]:
    """Render the extender, the scheduler's configuration, and the second scheduler if wanted."""
    extender = Component(installed.options, installed.extender)
    scheduler = Component(installed.options, installed.scheduler)
    config_map: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": scheduler.metadata,
        "data": {CONFIG_FILE: to_yaml([installed.configuration()])},
    }
    second = installed.asker is Asker.SECOND
    return (
        *extender_objects(extender, installed.environment),
        config_map,
        *(second_scheduler(scheduler, installed.image) if second else ()),
    )
