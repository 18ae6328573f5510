# SPDX-License-Identifier: Apache-2.0
"""Why nodes do not hold a shape: counts of nodes by reason, for people."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.cluster.constraints import why_not
from policies.cluster.nodes import Node
from policies.cluster.reading import CPU, MOST, PODS
from policies.cluster.shape import FitShape
from policies.cluster.table import NodeTable, Seat
from policies.model.quantity import MEBI

_COUNTED: Final = 256
"""Up to so many of a resource on a node its free count is told; above it reasons would be many."""
_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class FitReport:
    """How many nodes there are, how many would hold the shape, and the others by why not.

    In `reasons` those that only lack room come first, then the most frequent.
    """

    nodes: int
    feasible: int
    reasons: Mapping[str, int]

    def __str__(self) -> str:
        """Return one line, such as `0 of 5 nodes fit: cordoned (1); taint dedicated (4)`."""
        listed = [f"{reason} ({count})" for reason, count in self.reasons.items()]
        if len(listed) > _SHOWN:
            rest = sum(list(self.reasons.values())[_SHOWN:])
            listed[_SHOWN:] = [f"other reasons ({rest})"]
        start = f"{self.feasible} of {self.nodes} nodes fit"
        return f"{start}: {'; '.join(listed)}" if listed else start


class Reasons:
    """The reason of every node for one shape, kept up to date by looking at changed nodes only."""

    def __init__(self, shape: FitShape, table: NodeTable) -> None:
        self._shape = shape
        self._table = table
        self._by_slot: list[tuple[int, str] | None] = []
        self._counts: Counter[tuple[int, str]] = Counter()
        self._seen_nature = 0
        self._seen_room = 0

    def report(self) -> FitReport:
        """Return the counts as they are now."""
        self._refresh()
        counts = {key: count for key, count in self._counts.items() if count}
        feasible = counts.pop(_HOLDS, 0)
        ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
        return FitReport(
            nodes=sum(counts.values()) + feasible,
            feasible=feasible,
            reasons={text: count for (_, text), count in ordered},
        )

    def _refresh(self) -> None:
        table = self._table
        self._by_slot.extend([None] * (len(table.seats) - len(self._by_slot)))
        changed = {*table.nature.since(self._seen_nature), *table.room.since(self._seen_room)}
        self._seen_nature, self._seen_room = table.nature.now, table.room.now
        for slot in changed:
            before, seat = self._by_slot[slot], table.seats[slot]
            if before is not None:
                self._counts[before] -= 1
            reason = _reason(self._shape, seat)
            self._by_slot[slot] = reason
            if reason is not None:
                self._counts[reason] += 1


_HOLDS: Final = (0, "")
_LACKS_ROOM: Final = 1
_KEEPS_OFF: Final = 2


def why_unfit(shape: FitShape, node: Node, free: Mapping[str, int]) -> str:
    """Return the one reason why a node does not hold a shape; empty if it does.

    `free` is by resource name; devices come before other resources.
    """
    return _judged(shape, node, free)[1]


def _reason(shape: FitShape, seat: Seat | None) -> tuple[int, str] | None:
    """Return the one reason that a node is counted under."""
    if seat is None or seat.node is None:
        return None
    return _judged(shape, seat.node, seat.free)


def _judged(shape: FitShape, node: Node, free: Mapping[str, int]) -> tuple[int, str]:
    text = why_not(shape.constraints, node)
    if text:
        return _KEEPS_OFF, text
    lacking = [(n, a) for n, a in shape.requests if free.get(n, 0) < a]
    if not lacking:
        return _HOLDS
    name, amount = min(lacking, key=lambda pair: ("/" not in pair[0], pair[0]))
    offered = node.allocatable.get(name, 0)
    if offered == 0:
        return _KEEPS_OFF, f"no {name}"
    return _LACKS_ROOM, _lack(name, amount, offered, free)


def _lack(name: str, amount: int, offered: int, free: Mapping[str, int]) -> str:
    if amount >= MOST:
        return f"{name}: asks what cannot be read"
    if name == PODS:
        return f"{name}: {offered} of {offered} taken"
    if "/" in name and offered <= _COUNTED:
        return f"{name}: {max(0, free.get(name, 0))} of {offered} free, needs {amount}"
    return f"{name}: less than {_shown(name, amount)} free"


def _shown(name: str, amount: int) -> str:
    if name == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    return f"{-(-amount // MEBI)}Mi" if name.startswith(_BYTES) else str(amount)
