# SPDX-License-Identifier: Apache-2.0
"""How each tenant stands in each pool, as people are told: quota, use, loans and what waits.

One arithmetic for status, metrics and commands. Nothing is decided by it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from policies.model.tenant import DEFAULT_POOL, Quota, Tenant
from policies.quota.amount import NOTHING, Amount
from policies.quota.borrowing import lent
from policies.quota.oddities import Odd
from policies.quota.planning.market import Market
from policies.quota.planning.options import Options
from policies.quota.pods import Shape
from policies.quota.queue import TenantQueue
from policies.quota.state import QuotaState


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """A tenant in one pool, in milli-GPU; no ceiling is None.

    `owed` is what its waiting pods could have within the guarantee and do not have yet. A waiting
    pod that may go into several pools is pending in each.
    """

    pool: str
    guarantee_milli: int = 0
    ceiling_milli: int | None = None
    used_milli: int = 0
    lent_milli: int = 0
    owed_milli: int = 0
    pending: int = 0

    @property
    def borrowed_milli(self) -> int:
        """Return the part of what is used that lies past the guarantee."""
        return max(0, self.used_milli - self.guarantee_milli)


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """A tenant over all pools. `tenant` is None for one that is no more and still uses something.

    `used` is everything that counts against ceilings; `oldest_at` is in Unix seconds.
    """

    name: str
    tenant: Tenant | None
    pools: tuple[PoolFigures, ...] = ()
    used: Amount = NOTHING
    pending: int = 0
    oldest_at: int | None = None
    odd: Mapping[Odd, int] = field(default_factory=dict)

    @property
    def ceiling_milli(self) -> int | None:
        """Return its ceilings together, None where one of its pools has none."""
        return None if self.tenant is None else self.tenant.total_ceiling_milli


def figures(state: QuotaState, now: int) -> Mapping[str, TenantFigures]:
    """Return the figures of every tenant, and of whoever else uses or waits for anything.

    The empty name stands for namespaces of no tenant. `now` is in Unix seconds.
    """
    state.note_changes()
    return Standings().of(state, now, ())


class Standings:
    """The same, remembered: a tenant of which nothing has changed is the same object again."""

    def __init__(self) -> None:
        self._known: dict[str, TenantFigures] = {}
        self._options: Options | None = None

    def look(self, state: QuotaState, now: int) -> Mapping[str, TenantFigures]:
        """Return the figures. Takes the state's note of which tenants have changed."""
        return self.of(state, now, state.take_changed())

    def of(
        self, state: QuotaState, now: int, changed: Iterable[str]
    ) -> Mapping[str, TenantFigures]:
        """Return the figures; `changed` are the tenants whose use or line is another by now."""
        if state.options is not self._options:
            # Policies, prices or pools are others.
            self._options = state.options
            self._known.clear()
        for name in changed:
            self._known.pop(name, None)
        known, loans, odd = state.policies.tenants, _loans(state, now), _odd(state)
        names = sorted({*known, *state.ledger.tenants(), *odd})
        self._known = {
            name: self._of(state, name, loans.get(name, {}), odd.get(name, {})) for name in names
        }
        return self._known

    def _of(
        self, state: QuotaState, name: str, lends: Mapping[str, int], odd: Mapping[Odd, int]
    ) -> TenantFigures:
        found = self._known.get(name)
        if found is None:
            found = _figures(state, name, state.policies.tenants.get(name))
        if any(pool.lent_milli != lends.get(pool.pool, 0) for pool in found.pools):
            pools = (replace(pool, lent_milli=lends.get(pool.pool, 0)) for pool in found.pools)
            found = replace(found, pools=tuple(pools))
        return found if found.odd == odd else replace(found, odd=odd)


def _odd(state: QuotaState) -> Mapping[str, Mapping[Odd, int]]:
    found: dict[str, dict[Odd, int]] = {}
    for (name, kind), count in state.ledger.odd_counts().items():
        found.setdefault(name, {})[kind] = count
    return found


def _loans(state: QuotaState, now: int) -> Mapping[str, Mapping[str, int]]:
    """Return what each tenant lends, by pool."""
    market, found = Market(state, now), dict[str, dict[str, int]]()
    for pool in state.options.pools:
        for name, milli in lent(market.spare(pool), market.standings(pool, now)).items():
            if milli:
                found.setdefault(name, {})[pool] = milli
    return found


def _figures(state: QuotaState, name: str, tenant: Tenant | None) -> TenantFigures:
    """Return everything but what depends on others: what is lent."""
    ledger = state.ledger
    waiting, queue = ledger.waiting(name), state.queue.tenants.get(name)
    pending = _pending(tenant, queue, state.options) if queue is not None else {}
    own = tenant.pools if tenant is not None else {}
    demand = state.demand(tenant) if tenant is not None else {}
    pools = []
    for pool in sorted({*own, *ledger.pools(name), *pending} or {DEFAULT_POOL}):
        quota = tenant.quota_of(pool) if tenant is not None else Quota()
        guarantee = quota.guarantee_milli or 0
        owed = min(guarantee, demand.get(pool, 0)) - ledger.entitled(name, pool).milli
        pools.append(
            PoolFigures(
                pool,
                guarantee_milli=guarantee,
                ceiling_milli=quota.ceiling_milli,
                used_milli=ledger.used(name, pool).milli,
                owed_milli=max(0, owed),
                pending=pending.get(pool, 0),
            )
        )
    used = ledger.used_total(name)
    return TenantFigures(name, tenant, tuple(pools), used, waiting.count, waiting.oldest_at)


def _pending(tenant: Tenant | None, queue: TenantQueue, options: Options) -> Mapping[str, int]:
    """Return how many pods wait for each pool in which the tenant may have anything."""
    found: Counter[str] = Counter()
    for shape, count in _shapes(queue):
        for option in options.of(shape):
            if tenant is None or tenant.quota_of(option.pool).ceiling_milli != 0:
                found[option.pool] += count
    return found


def _shapes(queue: TenantQueue) -> Iterable[tuple[Shape, int]]:
    for group in queue.groups:
        yield group.shape, len(group)
    for gang in queue.gangs.values():
        for pod in gang.waiting.values():
            yield pod.shape, 1
