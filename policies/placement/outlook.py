# SPDX-License-Identifier: Apache-2.0
"""What a pod would do to a node's free GPU, kept until the node changes.

Thousands of pods are alike and one node changes at a time, so nearly every answer is known already.
"""

from collections.abc import Iterable, Mapping, Sequence
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


class Outlooks:
    """The outlook of nodes for one ask by name, as of a moment of a log of changed rooms."""

    def __init__(self, ask: Ask, fragmentation: Fragmentation) -> None:
        self.moment = 0
        self._ask = ask
        self._fragmentation = fragmentation
        self._amounts = fragmentation.amounts_of(ask)
        self._cpu = fragmentation.names.index(_CPU) if _CPU in fragmentation.names else None
        self._found: dict[str, Outlook] = {}

    def drop(self, names: Iterable[str]) -> None:
        """Forget nodes that are gone or have changed: they are looked at when next asked about."""
        for name in names:
            self._found.pop(name, None)

    def of(self, names: Sequence[str], rooms: Mapping[str, Room]) -> Mapping[str, Outlook | None]:
        """Return the outlook of each node; None for one that is not known."""
        found = self._found
        known = list(map(found.get, names))
        for index, outlook in enumerate(known):
            if outlook is None:
                name = names[index]
                room = rooms.get(name)
                if room is not None:
                    known[index] = found[name] = self._look(room)
        return dict(zip(names, known, strict=True))

    def _look(self, room: Room) -> Outlook:
        after = room.after(self._ask, self._amounts)
        if after is None:
            return TOO_SMALL
        gradient = self._fragmentation.gradient(room, after)
        cpu = after.amounts[self._cpu] if self._cpu is not None else 0
        return Outlook(
            is_too_small=False, gradient=gradient, left_milli=after.free_milli, left_cpu_milli=cpu
        )
