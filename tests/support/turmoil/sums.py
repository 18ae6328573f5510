# SPDX-License-Identifier: Apache-2.0
"""Who uses how much, added up from nothing, in exact 24000ths of a GPU.

Neither ledger, prices nor queue of the product may be used here: this is what they are held to.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from policies.model.tenant import Tenant
from policies.quota.pods import Phase, QuotaPod
from tests.support.builders import GPU, MIG, SHARED
from tests.support.turmoil.cluster import Cluster

UNIT: Final = 24
"""Of a thousandth of a GPU, so that thirds and eighths of GPUs are whole numbers."""
COSTS: Final = {GPU: 1000 * UNIT, SHARED: 1000 * UNIT // 3, MIG: 1000 * UNIT // 8}
MOST_GRACE_SECONDS: Final = 600


@dataclass(slots=True)
class Tally:
    """Sums by tenant at one time."""

    used: Counter[str] = field(default_factory=Counter)
    """Everything that is not gone, which ceilings bound."""
    entitled: Counter[str] = field(default_factory=Counter)
    """All but what is being deleted, which shares and reclaim go by."""
    fixed: Counter[str] = field(default_factory=Counter)
    """What can never be taken back."""


class Sums:
    """Sums over the pods of a cluster as they are now, and what is known of those released."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.firm: set[str] = set()
        """uids of what could never be taken back when it was released."""
        self.charged: dict[str, str] = {}
        """Whose the namespace of a pod was when it was released, by uid."""
        self._used: dict[str, list[tuple[int, int]]] = {}
        """What each tenant used from when on."""

    def note_release(self, pod: QuotaPod) -> None:
        """Take note of a release, at the time of it."""
        self.charged[pod.uid] = self.cluster.owner(pod.namespace) or ""
        (self.firm.add if self.is_firm(pod) else self.firm.discard)(pod.uid)

    def is_firm(self, pod: QuotaPod) -> bool:
        """Tell whether a pod that is released now could never be taken back."""
        budget = self.cluster.budgets.get(pod.namespace)
        return (
            pod.shape.exclusive
            or pod.do_not_disrupt
            or pod.shape.grace_seconds > MOST_GRACE_SECONDS
            or (budget is not None and budget.max_unavailable == 0)
        )

    def payer(self, pod: QuotaPod) -> str:
        return self.cluster.owner(pod.namespace) or self.charged.get(pod.uid, "")

    def counting(self) -> Iterator[QuotaPod]:
        """Yield what takes of a ceiling: released or about to be, and neither ended nor gone."""
        for pod in self.cluster.pods.values():
            is_live = pod.phase is Phase.LIVE and not self._is_given_up(pod)
            if is_live or (pod.phase is Phase.WAITING and pod.uid in self.cluster.sent):
                yield pod

    def _is_given_up(self, pod: QuotaPod) -> bool:
        """Tell whether its grace is over on a node that nobody hears of."""
        ends = pod.deleted_at
        late = ends is not None and ends <= self.cluster.now
        return late and bool(pod.node) and self.cluster.is_lost(pod.node)

    def tally(self) -> Tally:
        """Add up everything."""
        found = Tally()
        for pod in self.counting():
            name, more = self.payer(pod), cost(pod)
            found.used[name] += more
            if pod.deleted_at is None:
                found.entitled[name] += more
            if pod.uid in self.firm:
                found.fixed[name] += more
        return found

    def running(self, tenant: str, without: Iterable[str]) -> int:
        """Return what a tenant is entitled to and has, without these uids."""
        return total(
            pod
            for pod in self.counting()
            if pod.deleted_at is None and pod.uid not in without and self.payer(pod) == tenant
        )

    def capacity(self) -> int:
        return sum(
            COSTS[name] * count
            for node in self.cluster.nodes.values()
            for name, count in node.allocatable.items()
            if name in COSTS
        )

    def spare(self) -> int:
        """Return what lies outside of all guarantees."""
        return max(0, self.capacity() - sum(map(guarantee, self.cluster.tenants.values())))

    def borrowed(self) -> Counter[str]:
        """Return what is borrowed by cohort; tenants without one, or that are gone, are alone."""
        found: Counter[str] = Counter()
        for name, used in self.tally().used.items():
            tenant = self.cluster.tenants.get(name)
            own = guarantee(tenant) if tenant is not None else 0
            found[cohort(tenant, name)] += max(0, used - own)
        return found

    def lendable(self) -> Counter[str]:
        """Return at most what the tenants of each cohort may lend: what they have not used."""
        lends: Counter[str] = Counter()
        used = self.tally().used
        for name, tenant in self.cluster.tenants.items():
            if tenant.lending.enabled:
                peak = self._peak(name, used[name], tenant.lending.idle_after_seconds)
                lends[cohort(tenant, name)] += max(0, guarantee(tenant) - peak)
        return lends

    def excess(self, lends: Counter[str]) -> int:
        """Return what is borrowed past what each cohort may lend, which is from outside of it."""
        return sum(max(0, more - lends[name]) for name, more in self.borrowed().items())

    def note_use(self, tally: Tally) -> None:
        """Take note of what is used now."""
        for name in self.cluster.tenants:
            known, used = self._used.setdefault(name, []), tally.used[name]
            if not known or known[-1][1] != used:
                known.append((self.cluster.now, used))

    def _peak(self, tenant: str, used: int, seconds: int) -> int:
        """Return the most that a tenant used within the last while, as far as that was noted."""
        since, until = self.cluster.now - seconds, self.cluster.now
        for began, before in reversed(self._used.get(tenant, [])):
            if until <= since:
                break
            used, until = max(used, before), began
        return used


def cost(pod: QuotaPod) -> int:
    return sum(COSTS[name] * count for name, count in pod.shape.gpus.items())


def total(pods: Iterable[QuotaPod]) -> int:
    return sum(map(cost, pods))


def guarantee(tenant: Tenant | None) -> int:
    """Return it; nothing is guaranteed to a tenant that is gone."""
    return 0 if tenant is None else UNIT * (tenant.pools[""].guarantee_milli or 0)


def ceiling(tenant: Tenant) -> int:
    found = tenant.pools[""].ceiling_milli
    return 10**12 if found is None else UNIT * found


def cohort(tenant: Tenant | None, name: str) -> str:
    return tenant.cohort if tenant is not None and tenant.cohort is not None else f"alone {name}"


def milli(amount: int) -> int:
    """Return it as thousandths of a GPU, rounded up once."""
    return -(-amount // UNIT)
