# SPDX-License-Identifier: Apache-2.0
"""What a process has for its controllers, whether it leads or not; nothing is started here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from policies.model.policyset import PolicySet
from policies.vendors import Catalog
from reconciler.kube.access import AccessSource
from reconciler.kube.client import Client
from reconciler.kube.reflector import Runtime
from reconciler.kube.tls_secret import KeptCertificates
from reconciler.placement.settings import PlacementSettings
from reconciler.runtime.audit import AuditLog
from reconciler.runtime.documents import DocumentState
from reconciler.runtime.metrics import Metrics
from reconciler.telemetry.run import Telemetry


class Documents(Protocol):
    """The policy documents of this process."""

    @property
    def state(self) -> DocumentState:
        """Return what is served and what is wrong with the newest content."""
        ...

    def current(self) -> PolicySet | None:
        """Return the set that is served; None before a good one was loaded."""
        ...

    def subscribe(self, subscriber: Callable[[DocumentState], None]) -> Callable[[], None]:
        """Have `subscriber` called after every change; what is returned ends that."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a process has, whether it leads or not; `certificates` only where it may keep them.

    `telemetry` is None where there is no source.
    """

    access: AccessSource
    client: Client
    documents: Documents
    catalog: Catalog
    metrics: Metrics
    audit: AuditLog
    runtime: Runtime = field(default_factory=Runtime)
    telemetry: Telemetry | None = None
    certificates: KeptCertificates | None = None
    placement: PlacementSettings = field(default_factory=PlacementSettings)
