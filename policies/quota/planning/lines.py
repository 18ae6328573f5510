# SPDX-License-Identifier: Apache-2.0
"""What of one tenant may go in a pass, in order. Between tenants nothing is ordered here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from policies.quota.planning.book import Book
from policies.quota.planning.known import Known
from policies.quota.planning.options import Option
from policies.quota.planning.reserving import Reserving
from policies.quota.planning.units import Order, Unit, members_by_piece, next_order
from policies.quota.planning.verdict import Verdict, Way
from policies.quota.pods import QuotaPod


@dataclass(slots=True, eq=False)
class Turn:
    """A unit in its tenant's line: how many of it have gone, and how many more keep what they lack.

    `way` is where one that keeps room does so, None where its own quota is short; `nodes`, on which
    nodes, by UID. `is_free` tells that nothing is said yet of why it waits.
    """

    unit: Unit
    taken: int = 0
    keeps: int = 0
    way: Way | None = None
    nodes: Mapping[str, str] = field(default_factory=dict)
    is_free: bool = True

    def members(self, way: Way) -> list[tuple[QuotaPod, Option, bool]]:
        """Return the pods that go together, each with its pool and whether it could be taken back.

        Of pods that are alike it is the next.
        """
        unit = self.unit
        if unit.gang is None:
            return [(unit.pods[self.taken], way.options[0], unit.pieces[0].reclaimable)]
        return [
            (pod, way.options[number], unit.pieces[number].reclaimable)
            for number, pod in members_by_piece(unit)
        ]


@dataclass(slots=True)
class Line:
    """A tenant's turns, and what it uses meanwhile."""

    known: Known
    book: Book
    heap: list[tuple[Order, int, Turn]] = field(default_factory=list)
    is_own: bool = False
    """`book` is this pass's own."""
    milli: dict[str, int] = field(default_factory=dict)
    """What this pass has released, by pool."""
    keeper: str = ""
    """For whom some of the tenant's own quota is kept."""
    verdict: Verdict | None = None
    """Of the head, once it is known that it has a way."""

    def add(self, unit: Unit) -> None:
        """Let a unit stand in line."""
        heappush(self.heap, (unit.order, len(self.heap), Turn(unit)))

    def add_keeper(self, reserving: Reserving) -> None:
        """Let a unit stand in line that keeps what it lacks."""
        unit = reserving.unit
        turn = Turn(unit, 0, reserving.count, reserving.way, reserving.nodes, reserving.is_free)
        heappush(self.heap, (unit.order, len(self.heap), turn))

    def advance(self) -> None:
        """Have the next of the head's unit stand where that does, or the next unit."""
        _, number, turn = heappop(self.heap)
        turn.taken += len(turn.unit.pods) if turn.unit.gang is not None else 1
        if turn.taken < len(turn.unit.pods):
            heappush(self.heap, (next_order(turn.unit, turn.taken), number, turn))

    def own_book(self) -> Book:
        """Return the book, to be changed."""
        if not self.is_own:
            self.book, self.is_own = self.book.copy(), True
        return self.book
