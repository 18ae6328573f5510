# SPDX-License-Identifier: Apache-2.0
"""Why one pod waits: its exact place, what holds it, and what would end that."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from policies.cluster.report import FitReport
from policies.quota.amount import Amount
from policies.quota.planning.known import book_now
from policies.quota.planning.market import Market
from policies.quota.planning.options import Option
from policies.quota.planning.plan import plan
from policies.quota.planning.ranking import Kind, Rank, Ranking
from policies.quota.planning.reasons import NEXT
from policies.quota.planning.units import Order, Unit, next_order, units_of
from policies.quota.planning.values import Hold, Why
from policies.quota.planning.verdict import Way, judge
from policies.quota.pods import QuotaPod
from policies.quota.state import QuotaState

ENDS: Final[Mapping[Why, str]] = {
    Why.NO_TENANT: "exactly one tenant that claims its namespace",
    Why.GANG: "all pods of its gang, each with the same size, and with no gates of others",
    Why.NEVER: "a higher quota, or a pod that asks for less",
    Why.CEILING: "pods of its own tenant ending, or a higher ceiling",
    Why.FIXED: "work of its own tenant ending that cannot be taken back, or a higher guarantee",
    Why.BORROWING: "pods ending that borrow too, lenders that stand idle, or a higher guarantee",
    Why.TAKEN_BACK: "that time, or room within its own tenant's guarantee",
    Why.NO_SUCH_NODE: "a node that has what it asks for, or other node selectors",
    Why.NO_ROOM: "pods ending on the nodes that it may go to, or a further node",
    Why.RESERVED: "the release of those for whom it is kept, or room beside that",
    Why.REFUSED: "whoever refuses its release; it is tried again at least once a minute",
    Why.NEXT: "nothing: it is released with one of the next batches",
}

_OF_LEADERS: Final = (Why.TAKEN_BACK, Why.REFUSED)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of one waiting pod. `place` counts from 1 among `waiting` pods of its tenant's cohort.

    `pools` tells by pool what it costs there and what nodes say of it; `cohort` is empty for a
    tenant without one, whose place is among its own pods.
    """

    tenant: str
    cohort: str
    hold: Hold
    ends: str
    place: int
    waiting: int
    amount: Amount
    pools: Mapping[str, FitReport]


def explain(state: QuotaState, pod: QuotaPod, now: int) -> Explanation | None:
    """Explain a pod that waits; None for one that waits for nothing of ours."""
    known = state.pod(pod.uid)
    if not state.is_ready or known is None or not known.is_waiting:
        return None
    owners = state.owners(known.namespace)
    planned = plan(state, now)
    found = (w.hold for w in planned.waits if any(p.uid == pod.uid for p in w.pods))
    hold = next(found, None) or _last_said(known)
    tenant = owners[0] if len(owners) == 1 else None
    order = list(_order(state, tenant.name, now)) if tenant is not None else []
    options = [] if tenant is None else _options(state, known, tenant.name)
    return Explanation(
        tenant=tenant.name if tenant is not None else "",
        cohort=(tenant.cohort or "") if tenant is not None else "",
        hold=hold,
        ends=ENDS[hold.why],
        place=order.index(pod.uid) + 1 if pod.uid in order else 1,
        waiting=max(1, len(order)),
        amount=options[0].amount if options else Amount(),
        pools={option.pool: state.fit.explain(option.fit) for option in options},
    )


def _last_said(pod: QuotaPod) -> Hold:
    """Return what stands on a pod that nothing else holds: what it did, only a leader knows."""
    kind, _, text = pod.reason.partition(": ")
    return next((Hold(why, text) for why in _OF_LEADERS if kind == why), NEXT)


def _options(state: QuotaState, pod: QuotaPod, tenant: str) -> list[Option]:
    quota = state.policies.tenants[tenant].quota_of
    return [o for o in state.options.of(pod.shape) if quota(o.pool).ceiling_milli != 0]


def _order(state: QuotaState, tenant: str, now: int) -> Iterator[str]:
    """Yield the UIDs of all that waits in a tenant's cohort, as if each could go in its turn."""
    market = Market(state, now)
    ranking, cohort = Ranking(market), market.cohort(tenant)
    heads: list[tuple[Rank, _Walk]] = []
    for name in state.queue.tenants:
        if name in state.policies.tenants and market.cohort(name) == cohort:
            walk = _Walk(state, name)
            heappush(heads, (walk.rank(ranking), walk))
    while heads:
        _, walk = heappop(heads)
        yield from walk.take()
        if walk.is_left:
            heappush(heads, (walk.rank(ranking), walk))


class _Walk:
    """One tenant's waiting pods in order, and what it would use as they go."""

    def __init__(self, state: QuotaState, name: str) -> None:
        self._options = state.options
        self._fit = state.fit
        self._tenant = state.policies.tenants[name]
        self._book = book_now(name, state)
        self._milli: dict[str, int] = {}
        units = units_of(state.queue.tenants[name], state.queue)
        self._steps = sorted(_steps(units), key=lambda step: step[0], reverse=True)

    @property
    def is_left(self) -> bool:
        """Tell whether any pod is left."""
        return bool(self._steps)

    def rank(self, ranking: Ranking) -> Rank:
        """Return the order of the next one between tenants."""
        _, unit, pods = self._steps[-1]
        way = self._way(unit)
        more = 0 if way is None else self._milli.get(way.pool, 0)
        rank = ranking.rank(self._tenant, way, more, pods[0].created_at)
        return (Kind.TORN, *rank[1:]) if unit.is_torn else rank

    def take(self) -> list[str]:
        """Count the next one as released, and return its UIDs."""
        unit = self._steps[-1][1]
        way = self._way(unit)
        for piece, option in zip(unit.pieces, way.options if way is not None else (), strict=False):
            amount = option.amount.times(piece.count)
            self._book.add(option.pool, amount, fixed=not piece.reclaimable)
            self._milli[option.pool] = self._milli.get(option.pool, 0) + amount.milli
        return [pod.uid for pod in self._steps.pop()[2]]

    def _way(self, unit: Unit) -> Way | None:
        """Return the way it would go, past its tenant's ceilings if need be."""
        verdict = judge(unit.pieces, self._tenant, self._book, self._options)
        if verdict.ways:
            # Shares count in the pool that it may go to, not where no node could ever hold it.
            return next(filter(self._reaches, verdict.ways), verdict.ways[0])
        if not verdict.holds:
            return None
        options = verdict.holds[0][0]
        return Way(options, ((options[0].pool, 1),), 0)

    def _reaches(self, way: Way) -> bool:
        return all(o.without_nodes or self._fit.could_ever_fit(o.fit) for o in way.options)


def _steps(units: Iterable[Unit]) -> Iterator[tuple[Order, Unit, tuple[QuotaPod, ...]]]:
    """Yield what goes at once, each with its order within the tenant."""
    for unit in units:
        if unit.gang is not None:
            yield unit.order, unit, unit.pods
        else:
            for number, pod in enumerate(unit.pods):
                yield next_order(unit, number), unit, (pod,)
