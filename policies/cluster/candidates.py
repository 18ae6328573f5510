# SPDX-License-Identifier: Apache-2.0
"""Which nodes could hold pods of one shape, kept up to date by looking at changed nodes only."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from policies.cluster.constraints import is_open, suits
from policies.cluster.shape import FitShape
from policies.cluster.table import NodeTable, Seat, holds

_POSSIBLE: Final = 1
"""The node would hold the shape if it were empty, ready and open."""
_ADMITTED: Final = 2
_FEASIBLE: Final = 4
_SLACK: Final = 64

_Entry: TypeAlias = tuple[tuple[int, ...], str, int]
"""What a pod would leave of the devices it asks, the node's name, its slot."""


class Candidates:
    """The judgement of every node for one shape.

    The heap of feasible nodes may hold outdated entries, which are passed over; every feasible
    node has one that is up to date.
    """

    def __init__(self, shape: FitShape, table: NodeTable) -> None:
        self._shape = shape
        self._table = table
        self._ranked = shape.devices or tuple(name for name, _ in shape.requests)
        self._flags = bytearray()
        self._possible = 0
        self._feasible = 0
        self._seen_nature = 0
        self._seen_room = 0
        self._heap: list[_Entry] | None = None

    @property
    def any_feasible(self) -> bool:
        """Tell whether some node could hold one more pod of the shape now."""
        self._refresh()
        return self._feasible > 0

    @property
    def any_possible(self) -> bool:
        """Tell whether some node could hold one if it were empty, ready and open."""
        self._refresh()
        return self._possible > 0

    def admitted(self) -> Iterator[Seat]:
        """Yield the nodes that could hold one if enough were free on them."""
        self._refresh()
        for slot, seat in enumerate(self._table.seats):
            if seat is not None and self._flags[slot] & _ADMITTED:
                yield seat

    def best(self) -> Seat | None:
        """Return the feasible node that would have least left of the devices asked, then by name.

        It packs, so that nodes with many devices free stay whole for those who need them.
        """
        self._refresh()
        if not self._feasible:
            return None
        if self._heap is None or len(self._heap) > 2 * self._feasible + _SLACK:
            self._heap = self._listed()
        while True:
            left, name, slot = self._heap[0]
            seat = self._table.seats[slot] if self._flags[slot] & _FEASIBLE else None
            if seat is not None and seat.name == name and self._left(seat) == left:
                return seat
            heappop(self._heap)

    def _refresh(self) -> None:
        table = self._table
        if self._seen_nature != table.nature.now:
            self._flags.extend(bytes(len(table.seats) - len(self._flags)))
            for slot in table.nature.since(self._seen_nature):
                self._judge(slot, table.seats[slot])
            self._seen_nature = table.nature.now
        if self._seen_room != table.room.now:
            for slot in table.room.since(self._seen_room):
                seat = table.seats[slot]
                if seat is not None and self._flags[slot] & _ADMITTED:
                    self._judge_room(slot, seat)
            self._seen_room = table.room.now

    def _judge(self, slot: int, seat: Seat | None) -> None:
        """Judge all of a node anew, one that may be another than the slot's last."""
        self._possible -= self._flags[slot] & _POSSIBLE
        self._feasible -= bool(self._flags[slot] & _FEASIBLE)
        self._flags[slot] = 0
        node = seat.node if seat is not None else None
        if seat is None or node is None or not suits(self._shape.constraints, node):
            return
        if holds(node.allocatable, self._shape.requests):
            self._flags[slot] |= _POSSIBLE
            self._possible += 1
            if is_open(self._shape.constraints, node):
                self._flags[slot] |= _ADMITTED
                self._judge_room(slot, seat)

    def _judge_room(self, slot: int, seat: Seat) -> None:
        was = bool(self._flags[slot] & _FEASIBLE)
        fits = holds(seat.free, self._shape.requests)
        if fits != was:
            self._flags[slot] ^= _FEASIBLE
            self._feasible += 1 if fits else -1
        if fits and self._heap is not None:
            heappush(self._heap, self._entry(slot, seat))

    def _listed(self) -> list[_Entry]:
        found = [
            self._entry(slot, seat)
            for slot, seat in enumerate(self._table.seats)
            if seat is not None and self._flags[slot] & _FEASIBLE
        ]
        heapify(found)
        return found

    def _entry(self, slot: int, seat: Seat) -> _Entry:
        return self._left(seat), seat.name, slot

    def _left(self, seat: Seat) -> tuple[int, ...]:
        free = seat.free
        return tuple([free.get(name, 0) for name in self._ranked])


def lack(seat: Seat, shape: FitShape) -> tuple[int, int]:
    """Return what a node lacks of a shape, in thousandths of it: of devices, then of the rest."""
    devices = others = 0
    for name, amount in shape.requests:
        missing = amount - seat.free.get(name, 0)
        if missing > 0:
            if "/" in name:
                devices += -(-1000 * missing // amount)
            else:
                others += -(-1000 * missing // amount)
    return devices, others
