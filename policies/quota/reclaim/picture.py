# SPDX-License-Identifier: Apache-2.0
"""Takes the picture that reclaim is planned from, out of the quota model's state.

Who waits for nothing but room is what the release planner has just said. Nothing is chosen here
but the order in which they would be released.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Final, TypeAlias

from policies.quota.amount import Amount, total
from policies.quota.borrowing import cohort_of
from policies.quota.ledger import NO_TENANT
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.planning.book import Book, book_of
from policies.quota.planning.market import Market
from policies.quota.planning.values import Wait, Why
from policies.quota.planning.verdict import Piece, judge
from policies.quota.pods import Phase, QuotaPod
from policies.quota.pools import pool_of
from policies.quota.reclaim.snapshot import (
    Disruption,
    Entitlement,
    EntitlementKey,
    Group,
    Held,
    Member,
    Snapshot,
)
from policies.quota.state import QuotaState

_LACKS_ROOM: Final = frozenset({Why.NO_ROOM, Why.RESERVED})


@dataclass(frozen=True, slots=True)
class Remembered:
    """What past passes have left behind; see `Snapshot`. `told` are UIDs of pods with a notice."""

    spent: Sequence[Disruption] = ()
    budget_used_up_until: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    going: frozenset[str] = frozenset()
    unneeded_since: Mapping[str, int] = field(default_factory=dict)
    told: Iterable[str] = ()


def lacks_room(waits: Iterable[Wait]) -> tuple[Wait, ...]:
    """Return those that nothing but room on nodes holds, as far as the release planner says."""
    return tuple(wait for wait in waits if wait.hold.why in _LACKS_ROOM and wait.tenant)


def still_waiting(state: QuotaState, waits: Iterable[Wait]) -> Iterator[Wait]:
    """Yield these without the pods that have been let go, or are gone, since they were planned."""
    intents = state.ledger.intents()
    for wait in waits:
        pods = tuple(
            pod
            for pod in (state.pod(pod.uid) for pod in wait.pods)
            if pod is not None and pod.is_waiting and pod.uid not in intents
        )
        if pods and (pods[0].gang is None or len(pods) == len(wait.pods)):
            yield replace(wait, pods=pods)


def take_picture(
    state: QuotaState,
    waits: Iterable[Wait],
    pdbs: Sequence[PodDisruptionBudget],
    remembered: Remembered,
    now: int,
) -> Snapshot:
    """Return the picture as of `now` (Unix seconds)."""
    return expose(state, waits, pdbs, remembered, now).developed()


@dataclass(frozen=True, slots=True)
class Exposed:
    """A picture that nothing can change any more, without what is costly to make of it.

    `uncharged` is by UID the pool and the amount of pods that skipped the gate.
    """

    snapshot: Snapshot
    pods: Sequence[QuotaPod]
    owners: Mapping[str, str | None]
    uncharged: Mapping[str, tuple[str, Amount]]
    homeless: frozenset[str]

    def developed(self, known: Callable[[str], Held | None] = lambda _uid: None) -> Snapshot:
        """Return the picture with the pods that run. Reads nothing but what was exposed.

        Where `known` has by UID what would be made anew, that is used.
        """
        return replace(self.snapshot, live=self._live(known))

    def _live(self, known: Callable[[str], Held | None]) -> Mapping[EntitlementKey, list[Held]]:
        found: dict[EntitlementKey, list[Held]] = {}
        for pod in self.pods:
            if pod.phase is not Phase.LIVE or not pod.shape.gpus or pod.uid in self.homeless:
                continue
            owner, charge = self.owners[pod.namespace], pod.charge
            if charge is not None:
                key, amount = (owner or charge.tenant, charge.pool), charge.amount
            elif owner is not None:
                pool, amount = self.uncharged[pod.uid]
                key = (owner, pool)
            else:
                continue
            held = known(pod.uid)
            if held is None or held.pod is not pod or held.amount is not amount:
                held = Held(pod, amount)
            found.setdefault(key, []).append(held)
        return found


@dataclass(frozen=True, slots=True)
class _RoomsThen:
    """Rooms as they were: free by node, and where the pods stand that are bound to none."""

    by_node: Mapping[str, Mapping[str, int]]
    assumed: Mapping[str, str]

    def free(self, node_name: str) -> Mapping[str, int]:
        """Return what was free on a node."""
        return self.by_node.get(node_name, {})

    def node_of(self, uid: str) -> str | None:
        """Return the node of a pod that was released and not bound yet."""
        return self.assumed.get(uid)


def expose(
    state: QuotaState,
    waits: Iterable[Wait],
    pdbs: Sequence[PodDisruptionBudget],
    remembered: Remembered,
    now: int,
) -> Exposed:
    """Take all that the picture as of `now` (Unix seconds) is made of."""
    market = Market(state, now)
    homeless = _homeless(state)
    groups = tuple(_in_order(state, still_waiting(state, lacks_room(waits)), homeless))
    pools = frozenset(member.pool for group in groups for member in group.members)
    # Where nobody waits, only those with a notice matter: they may be spared.
    pods = list(state.pods() if groups else filter(None, map(state.pod, remembered.told)))
    snapshot = Snapshot(
        now=now,
        generation=state.policies.generation,
        settings=state.policies.settings,
        entitlements=dict(_entitlements(state, market, pools, homeless)),
        waiting=groups,
        live={},
        nodes=dict(state.nodes),
        rooms=_rooms(state, pods),
        pdbs=pdbs,
        spent=remembered.spent,
        budget_used_up_until=remembered.budget_used_up_until,
        refused=remembered.refused,
        going=remembered.going,
        unneeded_since=remembered.unneeded_since,
        excess_milli=_excess(market, pools, now),
    )
    owner = state.ledger.owner
    return Exposed(
        snapshot=snapshot,
        pods=pods,
        owners={namespace: owner(namespace) for namespace in {p.namespace for p in pods}},
        uncharged=_uncharged(state, pods),
        homeless=frozenset(state.fit.unplaced()),
    )


def _rooms(state: QuotaState, pods: Iterable[QuotaPod]) -> _RoomsThen:
    fit = state.fit
    assumed = {p.uid: n for p in pods if not p.node and (n := fit.node_of(p.uid)) is not None}
    return _RoomsThen({name: fit.free(name) for name in state.nodes}, assumed)


def _uncharged(state: QuotaState, pods: Iterable[QuotaPod]) -> Mapping[str, tuple[str, Amount]]:
    found: dict[str, tuple[str, Amount]] = {}
    for pod in pods:
        if pod.charge is None and pod.shape.gpus and pod.phase is Phase.LIVE:
            node = state.nodes.get(pod.node)
            pool = pool_of(state.policies, node.labels) if node is not None else ""
            found[pod.uid] = (pool, state.ledger.charged(pod.uid))
    return found


_Homeless: TypeAlias = Mapping[str, Sequence[QuotaPod]]
"""Pods that were let go and that no node has taken, by tenant, in the order of release."""


def _homeless(state: QuotaState) -> _Homeless:
    found: dict[str, list[QuotaPod]] = {}
    for pod in (state.pod(uid) for uid in state.fit.unplaced()):
        if pod is None or pod.phase is not Phase.LIVE or pod.charge is None or pod.deleted_at:
            continue
        tenant = state.ledger.owner(pod.namespace) or pod.charge.tenant
        found.setdefault(tenant, []).append(pod)
    for pods in found.values():
        pods.sort(key=lambda pod: (-pod.priority, pod.created_at, pod.name))
    return found


def _not_running(homeless: _Homeless, tenant: str, pool: str) -> Amount:
    pods = homeless.get(tenant, ())
    charges = [pod.charge for pod in pods if pod.charge is not None and pod.charge.pool == pool]
    return total(charge.amount for charge in charges)


def _entitlements(
    state: QuotaState, market: Market, pools: frozenset[str], homeless: _Homeless
) -> Iterator[tuple[EntitlementKey, Entitlement]]:
    policies, ledger = state.policies, state.ledger
    for name in sorted({*policies.tenants, *ledger.tenants()} - {NO_TENANT}):
        tenant = policies.tenants.get(name)
        for pool in {*state.options.pools, *ledger.pools(name)}:
            guarantee = (tenant.quota_of(pool).guarantee_milli or 0) if tenant is not None else 0
            used = ledger.entitled(name, pool)
            if not guarantee and used.is_nothing:
                continue
            yield (
                (name, pool),
                Entitlement(
                    tenant=name,
                    pool=pool,
                    guarantee_milli=guarantee,
                    used=used.minus(_not_running(homeless, name, pool)),
                    cohort=cohort_of(tenant) if tenant is not None else None,
                    priority=tenant.priority if tenant is not None else 0,
                    min_runtime_seconds=tenant.min_runtime_seconds if tenant is not None else 0,
                    fair_milli=market.shares(pool).get(name) if pool in pools else None,
                    fixed=ledger.fixed(name, pool),
                    policy=policies.reclaim_policy_of(tenant.cohort if tenant else None),
                ),
            )


def _excess(market: Market, pools: Iterable[str], now: int) -> Mapping[tuple[str, str], int]:
    """Return by cohort and pool what is borrowed past what the cohort's own tenants may lend."""
    found: dict[tuple[str, str], int] = {}
    for pool in pools:
        for standing in market.standings(pool, now):
            key = (standing.cohort, pool)
            more = standing.borrowed_milli - standing.lendable_milli
            found[key] = found.get(key, 0) + more
    return {key: milli for key, milli in found.items() if milli > 0}


def _in_order(state: QuotaState, waits: Iterable[Wait], homeless: _Homeless) -> Iterator[Group]:
    """Yield who would run next, between tenants as releases are ordered.

    The tenant of the highest priority first, then who has the least of its guarantee, the oldest.
    """
    by_tenant = _by_tenant(waits)
    lines = [
        _Line(state, name, homeless.get(name, ()), by_tenant.get(name, ()))
        for name in {**by_tenant, **homeless}
        if name in state.policies.tenants
    ]
    heap = [(line.rank(), line.tenant, line) for line in lines if line.first is not None]
    heapify(heap)
    while heap:
        _, name, line = heappop(heap)
        yield line.take()
        if line.first is not None:
            heappush(heap, (line.rank(), name, line))


def _by_tenant(waits: Iterable[Wait]) -> Mapping[str, list[Wait]]:
    found: dict[str, list[Wait]] = {}
    for wait in sorted(waits, key=lambda wait: wait.place):
        found.setdefault(wait.tenant, []).append(wait)
    return found


class _Line:
    """What is owed to one tenant, in its order; `first` is the next of it."""

    def __init__(
        self,
        state: QuotaState,
        name: str,
        homeless: Sequence[QuotaPod],
        waits: Sequence[Wait],
    ) -> None:
        self.tenant = name
        self._tenant = state.policies.tenants[name]
        self._book = _entitled_book(state, name, {name: homeless})
        self._state = state
        self._groups = chain(self._released(homeless), self._owed(waits))
        self.first: Group | None = next(self._groups, None)

    def rank(self) -> tuple[int, int, int]:
        """Return what tenants are ordered by; the lowest is next."""
        if self.first is None:
            raise LookupError(self.tenant)
        pool = self.first.members[0].pool
        guarantee = self._tenant.quota_of(pool).guarantee_milli or 1
        saturation = self._book.used_in(pool).milli * 1_000_000 // guarantee
        return (
            -self._tenant.priority,
            saturation,
            min(m.pod.created_at for m in self.first.members),
        )

    def take(self) -> Group:
        """Return the next and count it."""
        group = self.first
        if group is None:
            raise LookupError(self.tenant)
        for member in group.members:
            self._book.add(member.pool, member.amount, fixed=not group.reclaimable)
        self.first = next(self._groups, None)
        return group

    def _released(self, pods: Sequence[QuotaPod]) -> Iterator[Group]:
        for pod in pods:
            charge = pod.charge
            if charge is None:
                continue
            guarantee = self._tenant.quota_of(charge.pool).guarantee_milli or 0
            if self._book.used_in(charge.pool).with_more(charge.amount.parts) <= guarantee:
                member = Member(pod, charge.pool, charge.amount, pod.shape.fit)
                yield Group(_name((pod,)), self.tenant, (member,), reclaimable=charge.reclaimable)

    def _owed(self, waits: Sequence[Wait]) -> Iterator[Group]:
        for wait in waits:
            if wait.pods[0].gang is not None:
                if (group := self._group(wait.pods)) is not None:
                    yield group
                continue
            for pod in wait.pods:
                group = self._group((pod,))
                if group is None:
                    break  # those after it are like it
                yield group

    def _group(self, pods: tuple[QuotaPod, ...]) -> Group | None:
        """Return pods that go together in the pool where they are owed, None if they are not."""
        backs = [self._state.queue.is_reclaimable(pod.uid) for pod in pods]
        pieces = [Piece(pod.shape, back) for pod, back in zip(pods, backs, strict=True)]
        for way in judge(pieces, self._tenant, self._book, self._state.options).ways:
            if way.owed:
                members = tuple(
                    Member(pod, option.pool, option.amount, option.fit)
                    for pod, option in zip(pods, way.options, strict=True)
                )
                return Group(
                    _name(pods), self.tenant, members, pods[0].gang is not None, all(backs)
                )
        return None


def _name(pods: tuple[QuotaPod, ...]) -> str:
    first = pods[0]
    whole = first.gang is not None and first.is_waiting
    return f"{first.namespace}/{first.gang.name if first.gang and whole else first.name}"


def _entitled_book(state: QuotaState, tenant: str, homeless: _Homeless) -> Book:
    ledger = state.ledger
    pools = {*ledger.pools(tenant), *state.options.pools}
    return book_of(
        {
            pool: ledger.entitled(tenant, pool).minus(_not_running(homeless, tenant, pool))
            for pool in pools
        },
        {pool: ledger.fixed(tenant, pool) for pool in pools},
    )
