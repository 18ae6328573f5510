# SPDX-License-Identifier: Apache-2.0
"""What of one tenant may go in a pass, in order. Between tenants nothing is ordered here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TypeAlias

from policies.quota.planning.book import Book
from policies.quota.planning.known import Known
from policies.quota.planning.options import Option, Options
from policies.quota.planning.reserving import Reserving
from policies.quota.planning.units import Order, Unit, members_by_piece, next_order
from policies.quota.planning.verdict import Verdict, Way, WayKey, is_owed, judge
from policies.quota.pods import QuotaPod

Member: TypeAlias = tuple[QuotaPod, Option, bool]
"""A pod, the pool it goes into, and whether it could be taken back."""


@dataclass(slots=True, eq=False)
class Turn:
    """A unit in its tenant's line: how many of it have gone, and by which ways more keep room.

    A way is None where what is kept is its own quota; `nodes` says on which nodes, by UID.
    `is_free` tells that nothing is said yet of why it waits; `full` are the keys of ways that have
    no room or nothing to borrow left for the next of it.
    """

    unit: Unit
    taken: int = 0
    ways: tuple[Way | None, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    is_free: bool = True
    full: set[WayKey] = field(default_factory=set)

    @property
    def keeps(self) -> bool:
        """Tell whether the next of it keeps what it lacks."""
        return bool(self.ways)

    @property
    def way(self) -> Way | None:
        """Return where the next of it keeps room, None if it keeps none."""
        return self.ways[0] if self.ways else None

    def members(self, way: Way) -> list[Member]:
        """Return the pods that go together; of those that are alike it is the next."""
        unit = self.unit
        if unit.gang is None:
            return [(unit.pods[self.taken], way.options[0], unit.pieces[0].reclaimable)]
        return [
            (pod, way.options[number], unit.pieces[number].reclaimable)
            for number, pod in members_by_piece(unit)
        ]


@dataclass(slots=True)
class Line:
    """A tenant's turns, and what it uses meanwhile.

    `owed_book` is without what is kept for work that would borrow, where any is: that takes nothing
    of the guarantee from what is owed.
    """

    known: Known
    book: Book
    owed_book: Book | None = None
    heap: list[tuple[Order, int, Turn]] = field(default_factory=list)
    is_own: bool = False
    """`book` is this pass's own."""
    milli: dict[str, int] = field(default_factory=dict)
    """What this pass has released, by pool."""
    keeper: str = ""
    """For whom some of the tenant's own quota is kept."""
    verdict: Verdict | None = None
    """Of the head, once it is known that it has a way, or keeps what it lacks."""
    way: Way | None = None
    """On which the head would go."""

    def add(self, unit: Unit) -> None:
        """Let a unit stand in line."""
        heappush(self.heap, (unit.order, len(self.heap), Turn(unit)))

    def add_keeper(self, reserving: Reserving) -> None:
        """Let a unit stand in line that keeps what it lacks."""
        unit = reserving.unit
        turn = Turn(unit, 0, reserving.ways, reserving.nodes, reserving.is_free)
        heappush(self.heap, (unit.order, len(self.heap), turn))

    def advance(self) -> None:
        """Have the next of the head's unit stand where that does, or the next unit."""
        _, number, turn = heappop(self.heap)
        turn.full.clear()
        turn.taken += len(turn.unit.pods) if turn.unit.gang is not None else 1
        if turn.taken < len(turn.unit.pods):
            heappush(self.heap, (next_order(turn.unit, turn.taken), number, turn))

    def count(self, members: Iterable[Member], *, borrows: bool = False) -> None:
        """Count pods as released, or as if they were; `borrows` tells that they would borrow."""
        if not self.is_own:
            self.book, self.is_own = self.book.copy(), True
        if borrows and self.owed_book is None:
            self.owed_book = self.book.copy()
        books = (self.book, self.owed_book) if self.owed_book and not borrows else (self.book,)
        for _, option, back in members:
            for book in books:
                book.add(option.pool, option.amount, fixed=not back)
            self.milli[option.pool] = self.milli.get(option.pool, 0) + option.amount.milli

    def judge(self, unit: Unit, options: Options) -> Verdict:
        """Judge a unit by what is used meanwhile."""
        if not self.is_own:
            return unit.verdict
        tenant, until = self.known.tenant, unit.held_until
        found = judge(unit.pieces, tenant, self.book, options, until)
        if self.owed_book is None or is_owed(found):
            return found
        without = judge(unit.pieces, tenant, self.owed_book, options, until)
        owed = tuple(way for way in without.ways if way.owed)
        return replace(found, ways=(*owed, *found.ways)) if owed else found
