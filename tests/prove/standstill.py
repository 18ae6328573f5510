# SPDX-License-Identifier: Apache-2.0
"""Finds tenants that stand still: pods wait although quota and room are free for too long."""

from collections import defaultdict
from collections.abc import Mapping

from tests.prove.observer import Observer
from tests.prove.room import is_free, waiting_units
from tests.prove.seen import SeenPod


class Standstill:
    """Watches an observer's tenants. `seconds` is how long room may be free while a pod waits."""

    def __init__(self, observer: Observer, seconds: float) -> None:
        self._observer = observer
        self._seconds = seconds
        self._since: dict[str, float] = {}
        self._releases = 0
        self.longest_seconds = 0.0
        self.stuck: dict[str, str] = {}
        """By uid: the pods that were found to stand still, with the room that was free."""

    def look(self, now: float) -> None:
        """Judge the state of now; call it about once a second."""
        progressed = len(self._observer.releases) != self._releases
        self._releases = len(self._observer.releases)
        fitting = self._fitting()
        for tenant in self._observer.world.tenants:
            pods = fitting.get(tenant.name)
            if not pods or progressed:
                self._since.pop(tenant.name, None)
                continue
            waited = now - self._since.setdefault(tenant.name, now)
            self.longest_seconds = max(self.longest_seconds, waited)
            if waited > self._seconds:
                text = f"room was free for {waited:.0f} s"
                self.stuck.update({pod.uid: f"{pod.label}: {text}" for pod in pods})

    def pause(self) -> None:
        """Begin anew: nobody could release for a while, as a test knows."""
        self._since.clear()

    def _fitting(self) -> Mapping[str, list[SeenPod]]:
        found: dict[str, list[SeenPod]] = defaultdict(list)
        for units in waiting_units(self._observer):
            tenant = self._observer.tenant(units[0])
            if tenant is not None and is_free(self._observer, tenant, units):
                found[tenant.name].extend(units)
        return found
