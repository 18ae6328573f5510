# SPDX-License-Identifier: Apache-2.0
"""Whoever is owed something when all has come to rest, and could have it: there must be nobody."""

from collections import Counter

from policies.quota.planning.values import Plan, Why
from policies.quota.pods import Phase, QuotaPod
from tests.support.turmoil.release_laws import ReleaseLaws
from tests.support.turmoil.sums import Sums, ceiling, cohort, cost, guarantee


def owed_in_vain(sums: Sums, laws: ReleaseLaws, planned: Plan, threshold: int | None) -> None:
    """Demand that nobody waits within its guarantee for whom single pods could make room."""
    reserved = {
        pod.uid for wait in planned.waits for pod in wait.pods if wait.hold.why is Why.RESERVED
    }
    tally = sums.tally()
    for pod in laws.waiting():
        name = sums.payer(pod)
        tenant = sums.cluster.tenants.get(name)
        if pod.gang is not None or tenant is None or pod.uid in reserved:
            continue
        if tally.entitled[name] + cost(pod) > guarantee(tenant):
            continue
        if tally.used[name] + cost(pod) > ceiling(tenant):
            continue
        if sums.is_firm(pod) and tally.fixed[name] + cost(pod) > guarantee(tenant):
            continue
        if threshold is not None and pod.priority < threshold:
            continue
        for node in sums.cluster.nodes:
            assert not _could_have(sums, planned, pod, node), f"{pod} could run on {node}"


def _could_have(sums: Sums, planned: Plan, pod: QuotaPod, node: str) -> bool:
    """Tell whether a node has room, once whoever is borrowed there and may go has gone."""
    cluster = sums.cluster
    if not cluster.takes(pod, node):
        return False
    room = cluster.free(node)
    for kept in planned.kept:
        if kept.uid != pod.uid and kept.node == node:
            room.subtract(dict(kept.fit.requests))
    getter = cluster.tenants[sums.payer(pod)]
    spared: Counter[str] = Counter()
    entitled = sums.tally().entitled
    for other in cluster.pods.values():
        if other.node != node or other.phase is not Phase.LIVE or other.deleted_at is not None:
            continue
        if other.gang is not None or other.uid in sums.firm or other.shape.exclusive:
            continue
        giver = sums.payer(other)
        tenant = cluster.tenants.get(giver)
        own = guarantee(tenant)
        same = tenant is None or cohort(tenant, giver) == cohort(getter, getter.name)
        if not same or giver == getter.name:
            continue
        if entitled[giver] - spared[giver] - cost(other) < own:
            continue
        spared[giver] += cost(other)
        room.update(dict(other.shape.fit.requests))
    return all(room[name] >= n for name, n in pod.shape.fit.requests)
