# SPDX-License-Identifier: Apache-2.0
"""Finds tenants that stand still: pods wait although quota and room are free for too long.

Only what is certain by the observer's own numbers counts as free: within the guarantee, or within
what no guarantee holds, and devices that nobody has taken. What is lent is left out.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction

from tests.prove.observer import Observer
from tests.prove.seen import SeenPod
from tests.prove.world import Tenant


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


def waiting_units(observer: Observer) -> list[list[SeenPod]]:
    """Return the waiting pods, gangs that are whole together; those that are not are left out."""
    gangs: dict[tuple[str, str], list[SeenPod]] = defaultdict(list)
    units = []
    for pod in observer.waiting():
        if pod.gang:
            gangs[pod.namespace, pod.gang].append(pod)
        else:
            units.append([pod])
    return units + [pods for pods in gangs.values() if len(pods) == pods[0].gang_size]


def is_free(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether these could be released together now, for certain."""
    return not any(blocks(observer, tenant, pods) for blocks in BLOCKS)


def past_ceiling(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether they would take the tenant past its ceiling."""
    return observer.used[tenant.name] + _cost(pods) > tenant.ceiling


def past_borrowing(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether they need more than the guarantee and what no guarantee holds.

    What can never be taken back must fit the guarantee, beside what else is of that kind.
    """
    if any(pod.is_firm for pod in pods):
        return _firm(observer, tenant) + _cost(pods) > tenant.guarantee
    after = observer.used[tenant.name] + _cost(pods)
    if after <= tenant.guarantee:
        return False
    borrowed = sum(
        max(Fraction(0), observer.used[each.name] - each.guarantee)
        for each in observer.world.tenants
        if each is not tenant
    )
    return borrowed + after - tenant.guarantee > observer.world.unguaranteed


def past_devices(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether all nodes together lack the devices."""
    del tenant
    asked: dict[str, int] = defaultdict(int)
    for pod in pods:
        for name, count in pod.devices.items():
            asked[name] += count
    devices = observer.world.devices
    return any(observer.taken[name] + n > devices.get(name, 0) for name, n in asked.items())


Blocks = Callable[[Observer, Tenant, list[SeenPod]], bool]
BLOCKS: tuple[Blocks, ...] = (past_ceiling, past_borrowing, past_devices)


def _firm(observer: Observer, tenant: Tenant) -> Fraction:
    return _cost(
        [
            pod
            for pod in observer.pods.values()
            if pod.is_firm and pod.counts and pod.namespace in tenant.namespaces
        ]
    )


def _cost(pods: list[SeenPod]) -> Fraction:
    return sum((pod.cost for pod in pods), Fraction(0))
