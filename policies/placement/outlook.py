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

    def renew(self, changed: Iterable[str], rooms: Mapping[str, Room]) -> None:
        """Look again at nodes that have changed, if they were looked at before."""
        found = self._found
        for name in changed:
            if name in found:
                found[name] = self._look(rooms[name])

    def remove(self, name: str) -> None:
        """Forget a node."""
        self._found.pop(name, None)

    def of(self, names: Sequence[str], rooms: Mapping[str, Room]) -> Mapping[str, Outlook | None]:
        """Return the outlook of each node; None for one that is not known."""
        found = self._found
        known = list(map(found.get, names))
        if None not in known:
            return dict(zip(names, known, strict=True))
        for name in names:
            if name not in found and name in rooms:
                found[name] = self._look(rooms[name])
        return {name: found.get(name) for name in names}

    def _look(self, room: Room) -> Outlook:
        after = room.after(self._ask, self._amounts)
        if after is None:
            return TOO_SMALL
        gradient = self._fragmentation.gradient(room, after)
        cpu = after.amounts[self._cpu] if self._cpu is not None else 0
        return Outlook(
            is_too_small=False, gradient=gradient, left_milli=after.free_milli, left_cpu_milli=cpu
        )
