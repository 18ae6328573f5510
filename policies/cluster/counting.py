# SPDX-License-Identifier: Apache-2.0
"""How many pods of one shape all nodes could hold together, kept up to date by changed nodes."""

from policies.cluster.constraints import admits
from policies.cluster.shape import FitShape
from policies.cluster.table import NodeTable, Seat


class Counting:
    """The count of every node for one shape, and their sum.

    Exact for pods that are alike: what one node holds takes nothing from another.
    """

    def __init__(self, shape: FitShape, table: NodeTable) -> None:
        self._shape = shape
        self._table = table
        self._counts: list[int] = []
        self._sum = 0
        self._seen_nature = 0
        self._seen_room = 0

    def count(self) -> int:
        """Return how many more of them could be held now."""
        table = self._table
        if (self._seen_nature, self._seen_room) != (table.nature.now, table.room.now):
            self._counts.extend([0] * (len(table.seats) - len(self._counts)))
            changed = {*table.nature.since(self._seen_nature), *table.room.since(self._seen_room)}
            self._seen_nature, self._seen_room = table.nature.now, table.room.now
            for slot in changed:
                new = self._held_by(table.seats[slot])
                self._sum += new - self._counts[slot]
                self._counts[slot] = new
        return self._sum

    def _held_by(self, seat: Seat | None) -> int:
        if seat is None or seat.node is None:
            return 0
        free, least = seat.free, -1
        for name, amount in self._shape.requests:
            number = free.get(name, 0) // amount
            if number <= 0:
                return 0
            if least < 0 or number < least:
                least = number
        return max(0, least) if admits(self._shape.constraints, seat.node) else 0
