# SPDX-License-Identifier: Apache-2.0
"""Fragmentation of free GPU, and how much a pod would add to it (fragmentation gradient descent).

F(node) is what typical pods could not use of what is free there, in milli-GPU, on average:
the sum over typical pods t of popularity(t) x [all that is free if t does not fit, else what is
free on GPUs that have less free than t takes of one]. Kept in whole numbers as a sum over pods
rather than an average, so that equal stays equal.

Source: Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent, USENIX ATC 2023.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from policies.cluster.constraints import suits
from policies.cluster.nodes import Node
from policies.placement.asks import Ask
from policies.placement.rooms import Devices, Room

_REMEMBERED: Final = 20_000
"""States of nodes whose figures are kept."""


class Typical(NamedTuple):
    """A typical pod and how many were like it."""

    ask: Ask
    weight: int


class _Usable(NamedTuple):
    """What of a resource's devices typical pods could use: bits of pods, and milli-GPU."""

    lacking: int
    parts: tuple[tuple[int, int], ...]
    milli: int


class Fragmentation:
    """Measures rooms by a set of typical pods. A set that changes needs a new one, and new rooms.

    Pods that ask for no GPU use none of what is free on any node, so they make no difference.
    """

    def __init__(self, typical: Sequence[Typical]) -> None:
        self._typical = tuple(t for t in typical if t.ask.devices and t.weight > 0)
        self.weight = sum(t.weight for t in self._typical)
        self.names = tuple(sorted({name for t in self._typical for name, _ in t.ask.amounts}))
        self._needs = [_thresholds(self._typical, name) for name in self.names]
        self._asking = _asking(self._typical)
        self._takes = _takes(self._typical)
        # Nodes come to the same states again, and pods that are alike lead from one to another.
        self._weight = lru_cache(_REMEMBERED)(self._weigh)
        self._usable = lru_cache(_REMEMBERED)(self._look_at)
        self._milli = lru_cache(_REMEMBERED)(self._measure)

    def room(self, kinds: int, free: Mapping[str, int], devices: tuple[Devices, ...]) -> Room:
        """Return the room of a node of these kinds with so much of everything by name free."""
        return Room(kinds, tuple([free.get(name, 0) for name in self.names]), devices)

    def kinds(self, node: Node) -> int:
        """Return a bit for each typical pod that the node would take if it were empty.

        It asks every typical pod's constraints: keep it for as long as the node is the same.
        """
        answers = {c: suits(c, node) for c in {t.ask.constraints for t in self._typical}}
        bits = (1 << i for i, t in enumerate(self._typical) if answers[t.ask.constraints])
        return sum(bits)

    def amounts_of(self, ask: Ask) -> tuple[int, ...]:
        """Return what an ask takes besides devices, in the order of the names of rooms."""
        amounts = dict(ask.amounts)
        return tuple(amounts.get(name, 0) for name in self.names)

    def milli(self, room: Room) -> int:
        """Return F of a room, times the sum of all weights."""
        return self._milli(room)

    def gradient(self, room: Room, after: Room) -> int:
        """Return how much F grows from one room to the other, times the sum of all weights."""
        return self.milli(after) - self.milli(room)

    def _measure(self, room: Room) -> int:
        fitting = room.kinds
        for (bounds, masks), free in zip(self._needs, room.amounts, strict=True):
            fitting &= masks[bisect_left(bounds, free + 1)]
        usables = [self._usable(devices) for devices in room.devices]
        offered = {devices.resource for devices in room.devices}
        for resource, asking in self._asking.items():
            if resource not in offered:
                fitting &= ~asking
        for usable in usables:
            fitting &= ~usable.lacking
        total = sum(usable.milli for usable in usables)
        used = 0
        for usable in usables:
            for asking, milli in usable.parts:
                used += milli * self._weight(asking & fitting)
        return total * self.weight - used

    def _look_at(self, devices: Devices) -> _Usable:
        total = devices.free_milli
        lacking = 0
        parts = []
        for units, counts in self._takes.get(devices.resource, ()):
            first = bisect_left(devices.free, units)
            enough = devices.free[first:]
            could = sum(free // units for free in enough)
            fitting = 0
            for count, asking in counts:
                if count > could:
                    lacking |= asking
                else:
                    fitting |= asking
            usable = sum(free * devices.milli // devices.units for free in enough)
            if fitting and usable:
                parts.append((fitting, usable))
        return _Usable(lacking, tuple(parts), total)

    def _weigh(self, bits: int) -> int:
        return sum(t.weight for i, t in enumerate(self._typical) if bits >> i & 1)


def _thresholds(typical: Sequence[Typical], name: str) -> tuple[list[int], list[int]]:
    """Return the amounts asked, ascending, and for each number of them covered whom they suffice.

    masks[n] are the pods that ask no more than the n-th smallest amount. Who asks for none needs
    none, even where less than nothing is free (as kube-scheduler's NodeResourcesFit has it).
    """
    asked = [dict(t.ask.amounts).get(name, 0) for t in typical]
    bounds = sorted({amount for amount in asked if amount})
    masks = [
        sum(1 << i for i, amount in enumerate(asked) if not amount or amount in bounds[:n])
        for n in range(len(bounds) + 1)
    ]
    return bounds, masks


def _asking(typical: Sequence[Typical]) -> Mapping[str, int]:
    """Return which pods ask for a resource."""
    found: dict[str, int] = {}
    for index, (ask, _) in enumerate(typical):
        for device in ask.devices:
            found[device.resource] = found.get(device.resource, 0) | 1 << index
    return found


def _takes(
    typical: Sequence[Typical],
) -> Mapping[str, list[tuple[int, list[tuple[int, int]]]]]:
    """Return by resource and units of one device how many such devices which pods ask."""
    found: dict[str, dict[int, dict[int, int]]] = {}
    for index, (ask, _) in enumerate(typical):
        for device in ask.devices:
            counts = found.setdefault(device.resource, {}).setdefault(device.units, {})
            counts[device.count] = counts.get(device.count, 0) | 1 << index
    return {
        resource: [(units, sorted(counts.items())) for units, counts in sorted(by_units.items())]
        for resource, by_units in found.items()
    }
