# SPDX-License-Identifier: Apache-2.0
"""Who would run next of those that lack nothing but room, in the order of release.

Whether anybody has to go for them is not decided here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import TypeAlias

from policies.quota.amount import Amount, total
from policies.quota.planning.book import Book, book_of
from policies.quota.planning.values import Wait, Why
from policies.quota.planning.verdict import Piece, Way, judge
from policies.quota.pods import Phase, QuotaPod
from policies.quota.reclaim.snapshot import Group, Member
from policies.quota.state import QuotaState

Homeless: TypeAlias = Mapping[str, Sequence[QuotaPod]]
"""Pods that were let go and that no node has taken, by tenant, in the order of release."""


def homeless_of(state: QuotaState) -> Homeless:
    """Return them as of now."""
    found: dict[str, list[QuotaPod]] = {}
    for pod in (state.pod(uid) for uid in state.fit.unplaced()):
        if pod is None or pod.phase is not Phase.LIVE or pod.charge is None or pod.deleted_at:
            continue
        tenant = state.ledger.owner(pod.namespace) or pod.charge.tenant
        found.setdefault(tenant, []).append(pod)
    for pods in found.values():
        pods.sort(key=lambda pod: (-pod.priority, pod.created_at, pod.name))
    return found


def not_running(homeless: Homeless, tenant: str, pool: str, *, only_fixed: bool = False) -> Amount:
    """Return what a tenant is charged for them in a pool, or for those never taken back."""
    pods = homeless.get(tenant, ())
    charges = [pod.charge for pod in pods if pod.charge is not None and pod.charge.pool == pool]
    return total(
        charge.amount
        for charge in charges
        if not only_fixed or charge.exclusive or not charge.reclaimable
    )


def in_order(state: QuotaState, waits: Iterable[Wait], homeless: Homeless) -> Iterator[Group]:
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
    """What is owed to one tenant, in its order; `first` is the next of it.

    Nobody knows yet who of them finds room. So those are among it that the guarantee covers only if
    others before them find none, each kind by itself; in the sum that goes on they are left out.
    """

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
        self._begun = self._book.copy()
        self._state = state
        self._groups = chain(self._released(homeless), self._owed(waits))
        self._is_counted = True
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
        if self._is_counted:
            _count(self._book, group)
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
            is_gang, alone = wait.pods[0].gang is not None, self._begun.copy()
            for pods in (wait.pods,) if is_gang else ((pod,) for pod in wait.pods):
                group = self._group(pods, wait, self._book)
                self._is_counted = group is not None
                if group is None and (group := self._group(pods, wait, alone)) is None:
                    break  # those after it are like it
                _count(alone, group)
                yield group

    def _group(self, pods: tuple[QuotaPod, ...], wait: Wait, book: Book) -> Group | None:
        """Return pods that go together in the pools where they are owed, None if they are not."""
        backs = [self._state.queue.is_reclaimable(pod.uid) for pod in pods]
        pieces = [Piece(pod.shape, back) for pod, back in zip(pods, backs, strict=True)]
        ways = judge(pieces, self._tenant, book, self._state.options).ways
        members = tuple(_members(pods, way) for way in ways if way.owed)
        if not members:
            return None
        return Group(
            name=_name(pods),
            tenant=self.tenant,
            members=members[0],
            is_gang=pods[0].gang is not None,
            reclaimable=all(backs),
            is_held_back=wait.hold.why is Why.RESERVED,
            others=members[1:],
        )


def _members(pods: Sequence[QuotaPod], way: Way) -> tuple[Member, ...]:
    return tuple(
        Member(pod, option.pool, option.amount, option.fit)
        for pod, option in zip(pods, way.options, strict=True)
    )


def _count(book: Book, group: Group) -> None:
    for member in group.members:
        book.add(member.pool, member.amount, fixed=not group.reclaimable)


def _name(pods: tuple[QuotaPod, ...]) -> str:
    first = pods[0]
    whole = first.gang is not None and first.is_waiting
    return f"{first.namespace}/{first.gang.name if first.gang and whole else first.name}"


def _entitled_book(state: QuotaState, tenant: str, homeless: Homeless) -> Book:
    ledger = state.ledger
    pools = {*ledger.pools(tenant), *state.options.pools}
    return book_of(
        {
            pool: ledger.entitled(tenant, pool).minus(not_running(homeless, tenant, pool))
            for pool in pools
        },
        {
            pool: ledger.fixed(tenant, pool).minus(
                not_running(homeless, tenant, pool, only_fixed=True)
            )
            for pool in pools
        },
    )
