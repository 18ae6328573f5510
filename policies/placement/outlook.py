# SPDX-License-Identifier: Apache-2.0
"""What a pod would do to a node's free GPU, kept until the node changes.

Thousands of pods are alike and one node changes at a time, so nearly every answer is known already.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from policies.placement.asks import Ask
from policies.placement.fgd import Fragmentation
from policies.placement.rooms import Room

_CPU: Final = "cpu"


class Outlook(NamedTuple):
    """What a pod would leave of a node; the less, the better it is packed.

    `gradient` is the growth of F times the weight of all typical pods; `left_milli` and
    `left_cpu_milli` are milli-GPU and milli-CPU. Of a node with too few devices nothing is known.
    """

    is_too_small: bool = False
    gradient: int = 0
    left_milli: int = 0
    left_cpu_milli: int = 0


TOO_SMALL: Final = Outlook(is_too_small=True)


class Place:
    """A node's slot, which is its own for as long as it is known, and its room as it is now."""

    __slots__ = ("room", "slot")

    def __init__(self, slot: int, room: Room) -> None:
        self.slot = slot
        self.room = room


class Outlooks:
    """The outlook of each node for one ask, by slot, and the rooms that it was computed of."""

    def __init__(self, ask: Ask, fragmentation: Fragmentation) -> None:
        self._ask = ask
        self._fragmentation = fragmentation
        self._amounts = fragmentation.amounts_of(ask)
        self._cpu = fragmentation.names.index(_CPU) if _CPU in fragmentation.names else None
        self._rooms: list[Room | None] = []
        self._found: list[Outlook] = []

    def of(self, places: Sequence[Place | None]) -> list[Outlook | None]:
        """Return the outlook of each node; None for one that is not known."""
        top = max([place.slot for place in places if place is not None], default=-1)
        missing = top + 1 - len(self._rooms)
        self._rooms.extend([None] * missing)
        self._found.extend([TOO_SMALL] * missing)
        rooms, found = self._rooms, self._found
        for place in places:
            if place is not None and rooms[place.slot] is not place.room:
                rooms[place.slot] = place.room
                found[place.slot] = self._look(place.room)
        return [None if place is None else found[place.slot] for place in places]

    def _look(self, room: Room) -> Outlook:
        after = room.after(self._ask, self._amounts)
        if after is None:
            return TOO_SMALL
        gradient = self._fragmentation.gradient(room, after)
        cpu = after.amounts[self._cpu] if self._cpu is not None else 0
        return Outlook(
            is_too_small=False, gradient=gradient, left_milli=after.free_milli, left_cpu_milli=cpu
        )
