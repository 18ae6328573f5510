# SPDX-License-Identifier: Apache-2.0
"""Follows PodGroups where the cluster serves them, for the sizes of the gangs that they declare.

Source: Kubernetes scheduling.k8s.io `PodGroup`, spec.schedulingPolicy.gang.minCount (KEP-4671);
not served by default in 1.37.
"""

from collections.abc import Callable, Mapping
from typing import Final

from reconciler.kube import raw
from reconciler.kube.resources import Resource
from reconciler.kube.served import ServedSettings, ServedWatch, Server
from reconciler.kube.store import Key

_GROUP: Final = "scheduling.k8s.io"
RESOURCES: Final = tuple(
    Resource(_GROUP, version, "podgroups") for version in ("v1beta1", "v1alpha3")
)
"""Where both versions are served they show the same objects."""
_SETTINGS: Final = ServedSettings(look_seconds=60.0)

Sized = tuple[Key, int]
Listener = Callable[[str, str, int | None], None]
"""Gets a namespace, a name, and the size: None where there is no such gang any more."""


class PodGroupWatch:
    """Tells of every PodGroup and its changes while `run` runs."""

    def __init__(
        self, server: Server, changed: Listener, settings: ServedSettings = _SETTINGS
    ) -> None:
        self._changed = changed
        self._sizes: dict[Key, int] = {}
        self._watch: ServedWatch[Sized] = ServedWatch(
            server, dict.fromkeys(RESOURCES, sized), settings
        )
        self._watch.subscribe(self._compare)

    async def run(self) -> None:
        """Watch until cancelled; raises only what is a fault of our own."""
        await self._watch.run()

    def _compare(self) -> None:
        now = dict(self._watch.values())
        before, self._sizes = self._sizes, now
        for key in before.keys() - now.keys():
            self._changed(key.namespace, key.name, None)
        for key, size in now.items():
            if key not in before or before[key] != size:
                self._changed(key.namespace, key.name, size)


def sized(item: Mapping[str, object]) -> Sized:
    """Return a raw PodGroup's key, and how many pods must be there: 1 where any number will do."""
    metadata = raw.mapping(item, "metadata")
    count = raw.mapping(item, "spec", "schedulingPolicy", "gang").get("minCount")
    key = Key(raw.text(metadata, "namespace"), raw.text(metadata, "name"))
    return key, max(1, count) if isinstance(count, int) else 1
