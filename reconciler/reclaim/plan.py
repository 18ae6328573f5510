# SPDX-License-Identifier: Apache-2.0
"""Who must end so that tenants below their guarantee get it back.

Pure: the snapshot holds the time. Laws: the beneficiary stays within its guarantee; whoever gives
is over its own, in the same cohort and pool, and stays there; nothing that may not be taken back,
or that frees nothing of use, is touched; nobody goes who is not needed. Since who gets is at its
guarantee at most and who gives at its own at least, no transfer is ever turned round.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.quota.reclaim.board import Board, Choice, give_what_comes
from policies.quota.reclaim.books import Books
from policies.quota.reclaim.emission import commands, next_at
from policies.quota.reclaim.limits import Limits, Where
from policies.quota.reclaim.outcome import ReclaimPlan, Unmet
from policies.quota.reclaim.search import Search
from policies.quota.reclaim.snapshot import EntitlementKey, Group, Snapshot
from policies.quota.reclaim.sparing import spare_unneeded
from policies.quota.reclaim.units import KnownUnits, units_of
from policies.quota.reclaim.victims import reservations_of, victims_of

Givers = frozenset[EntitlementKey]

_TOLD_FIRST: Final = (
    Unmet.PRIORITY,
    Unmet.BUDGET,
    Unmet.KEPT,
    Unmet.ROOM,
    Unmet.DISABLED,
    Unmet.GUARANTEE,
)
"""Where several pools have no room for one, each for its own reason."""


def plan_reclaim(snapshot: Snapshot, known: KnownUnits | None = None) -> ReclaimPlan:
    """Return what to do now, and which rooms to keep for whom.

    `known` is what one plan leaves for the next to find, and changes nothing but how long it takes.
    """
    board = Board(snapshot, _books(snapshot), Limits(snapshot.settings.budget, 0))
    run = _Run(snapshot, board, known)
    if snapshot.waiting:
        give_what_comes(run.board, _longest_grace(snapshot))
        board.keep_rooms()
        run.serve_all()
        spare_unneeded(run.board)
    victims = tuple(victims_of(run.board, run.met, _books(snapshot)))
    return ReclaimPlan(
        commands=tuple(commands(snapshot, victims)),
        reservations=tuple(reservations_of(run.board, run.met, victims)),
        victims={victim.pod.uid: victim.why.beneficiary.name for victim in victims},
        unmet=run.unmet,
        next_at=next_at(snapshot, victims),
    )


def _books(snapshot: Snapshot) -> Books:
    going = [
        (key, held.amount)
        for key, holdings in (snapshot.live.items() if snapshot.going else ())
        for held in holdings
        if held.pod.uid in snapshot.going and held.pod.deleted_at is None
    ]
    return Books(snapshot.entitlements, going)


def _longest_grace(snapshot: Snapshot) -> int:
    graces = {
        entitlement.policy.max_grace_seconds for entitlement in snapshot.entitlements.values()
    }
    return max(graces, default=0)


@dataclass(slots=True)
class _Run:
    """One plan being made: who got room, who did not and why."""

    snapshot: Snapshot
    board: Board
    known: KnownUnits | None = None
    met: list[Group] = field(default_factory=list)
    unmet: dict[str, Unmet] = field(default_factory=dict)
    _cohorts: dict[str, str | None] = field(default_factory=dict)
    _taken: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """What goes from cohorts to others, by cohort and pool, for all that are met."""
    _givers: dict[tuple[str | None, frozenset[str]], tuple[Givers, ...]] = field(
        default_factory=dict
    )

    def serve_all(self) -> None:
        """Serve every group in the order of release."""
        pools = frozenset(pool for group in self.snapshot.waiting for pool in group.pools)
        search = Search(self.board, units_of(self.snapshot, pools, self.known))
        for group in self.snapshot.waiting:
            self._serve_one(search, group)

    def _serve_one(self, search: Search, group: Group) -> None:
        """Serve a group in the first of its pools that can; what keeps it waiting is told."""
        reasons: dict[Unmet, Group] = {}
        for way in group.ways():
            reason = self._refusal(way) or self._serve(search, way)
            if reason is None:
                self.met.append(way)
                return
            reasons.setdefault(reason, way)
        if (held := reasons.get(Unmet.BUDGET)) is not None:
            # Its turn will come: what it is owed is not for those after it.
            self.board.books.grant(held)
        self.unmet[group.name] = min(reasons, key=_TOLD_FIRST.index)

    def _refusal(self, group: Group) -> Unmet | None:
        threshold = self.snapshot.settings.priority_threshold
        if threshold is not None and group.priority < threshold:
            return Unmet.PRIORITY
        if not self.board.books.is_owed(group):
            return Unmet.GUARANTEE
        entitlements = [self.snapshot.entitlements[(group.tenant, m.pool)] for m in group.members]
        if not all(entitlement.policy.enabled for entitlement in entitlements):
            return Unmet.DISABLED
        self._cohorts[group.key] = entitlements[0].cohort
        return None

    def _serve(self, search: Search, group: Group) -> Unmet | None:
        """Find room for a group and count it as released, or return why there is none."""
        board, reason = self.board, self._without_room(group)
        begin, before = board.mark(), len(board.choices)
        search.open_kept(group)
        mark = board.mark()
        for givers in self._givers_for(group):
            if search.find(group, givers):
                new = board.choices[before:]
                taken = self._taken_with(new)
                is_within = self._is_within_excess(taken)
                if is_within and _is_within_budget(board.limits, _where(new)):
                    board.limits.spend(_where(new))
                    board.books.grant(group)
                    self._taken = taken
                    return None
                reason = Unmet.BUDGET if is_within else reason
                search.back_to(mark)
        search.back_to(begin)
        return reason

    def _without_room(self, group: Group) -> Unmet:
        """Return why there is none: what is free, or would be, may be kept for others."""
        if group.is_held_back or self.board.owes_instead_of(group):
            return Unmet.KEPT
        return Unmet.ROOM

    def _givers_for(self, group: Group) -> tuple[Givers, ...]:
        """Return from whom to take: the cohort, then who borrows from outside all guarantees."""
        cohort = self._cohorts[group.key]
        pools = frozenset(member.pool for member in group.members)
        found = self._givers.get((cohort, pools))
        if found is None:
            found = self._givers[(cohort, pools)] = tuple(self._tiers(cohort, pools))
        return found

    def _tiers(self, cohort: str | None, pools: frozenset[str]) -> Iterator[Givers]:
        borrowers = [
            entitlement
            for key, entitlement in self.snapshot.entitlements.items()
            if entitlement.pool in pools and self.board.books.borrows(key)
        ]
        own = frozenset(a.key for a in borrowers if a.cohort in (cohort, None))
        yield own
        excess = self.snapshot.excess_milli
        wider = own | {
            a.key
            for a in borrowers
            if a.cohort is not None and excess.get((a.cohort, a.pool), 0) > 0
        }
        if wider != own:
            yield wider

    def _taken_with(self, new: Iterable[Choice]) -> Mapping[tuple[str, str], int]:
        """Return by cohort and pool what goes to other cohorts, with these choices."""
        taken = dict(self._taken)
        for choice in new:
            for piece in choice.pieces:
                entitlement = self.snapshot.entitlements[piece.key]
                if entitlement.cohort not in (self._cohorts[choice.group], None):
                    key = (entitlement.cohort or "", entitlement.pool)
                    taken[key] = taken.get(key, 0) + piece.amount.milli
        return taken

    def _is_within_excess(self, taken: Mapping[tuple[str, str], int]) -> bool:
        """Tell whether other cohorts give no more than they have from outside all guarantees."""
        excess = self.snapshot.excess_milli
        return all(milli <= excess.get(key, 0) for key, milli in taken.items())


def _is_within_budget(limits: Limits, where: list[Where]) -> bool:
    """Tell whether all may go within one while; what never could is spread, with nothing beside."""
    if limits.could_ever(where):
        return limits.admits(where)
    return limits.is_unspent


def _where(choices: Iterable[Choice]) -> list[Where]:
    return [(piece.key[0], piece.node) for choice in choices for piece in choice.pieces]
