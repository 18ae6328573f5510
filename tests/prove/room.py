# SPDX-License-Identifier: Apache-2.0
"""What keeps a pod waiting, by the observer's own numbers.

Only what is certain counts as free: within the guarantee, or within what no guarantee holds, and
devices that nobody has taken. What is lent is left out.
"""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

from tests.prove.observer import Observer
from tests.prove.seen import SeenPod
from tests.prove.world import Tenant


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


def unit_of(observer: Observer, pod: SeenPod) -> list[SeenPod]:
    """Return the waiting pods that are released together with one: its gang, or it alone."""
    if not pod.gang:
        return [pod]
    gang = (pod.namespace, pod.gang)
    return [each for each in observer.waiting() if (each.namespace, each.gang) == gang]


def is_free(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether these could be released together now, for certain."""
    return not any(blocks(observer, tenant, pods) for blocks in BLOCKS)


def past_ceiling(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether they would take the tenant past its ceiling."""
    return observer.used[tenant.name] + _cost(pods) > tenant.ceiling


def past_borrowing(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether they need more than the guarantee and what no guarantee holds.

    What can never be taken back must also fit the guarantee, beside what else is of that kind.
    """
    if any(pod.is_firm for pod in pods) and (
        _firm(observer, tenant) + _cost(pods) > tenant.guarantee
    ):
        return True
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


def lacks_members(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether it belongs to a gang that is not whole, or whose size is disputed."""
    del tenant
    first = pods[0]
    there = [
        pod
        for pod in observer.pods.values()
        if (pod.namespace, pod.gang) == (first.namespace, first.gang) and not pod.is_ended
    ]
    sizes = {pod.gang_size for pod in there}
    return bool(first.gang) and (len(there) != first.gang_size or len(sizes) > 1)


def stands_behind(observer: Observer, tenant: Tenant, pods: list[SeenPod]) -> bool:
    """Tell whether the pod or gang waits for which what is free is kept, as the reason says."""
    del tenant
    reason, own = pods[0].reason, {pod.uid for pod in pods}
    return any(
        reason.endswith(f"kept for pod {pod.label}") or f"kept for gang {pod.gang} of" in reason
        for pod in observer.waiting()
        if pod.uid not in own
    )


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
