# SPDX-License-Identifier: Apache-2.0
"""What is free on a node, as values that nodes in the same state share, and what a pod leaves.

Which of its devices a node gives is its device plugin's choice: the fullest that will do, or the
emptiest. Milli-GPU are rounded down once for each device. Names of nodes must not be here.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from policies.placement.asks import Ask, DeviceAsk

FULL_MILLI: Final = 1000
"""What a whole GPU is in milli-GPU."""


class Picking(StrEnum):
    """Which device a device plugin gives, of those that have enough free."""

    PACKED = "Packed"
    """The one with least free."""
    SPREAD = "Spread"
    """The one with most free."""


class Devices(NamedTuple):
    """The devices of one resource on a node: how many units of each are free, ascending.

    `units` are those of a device that nothing is taken from, which is `milli` of a GPU: a card
    that four share has four units and is 1000, a 1g.10gb of an H100 has one and is 125.
    """

    resource: str
    free: tuple[int, ...]
    units: int = 1
    milli: int = FULL_MILLI
    picking: Picking = Picking.PACKED

    @property
    def free_milli(self) -> int:
        """Return what is free of all together."""
        return sum(free * self.milli // self.units for free in self.free)

    def without(self, ask: DeviceAsk) -> "Devices | None":
        """Return what is left once these are given; None where too little is free.

        One device may be given several times, each time a unit or several of it.
        """
        left = list(self.free)
        units = ask.units
        for _ in range(ask.count):
            is_packed = self.picking is Picking.PACKED
            index = bisect_left(left, units) if is_packed else len(left) - 1
            if not 0 <= index < len(left) or left[index] < units:
                return None
            insort(left, left.pop(index) - units)
        return Devices(self.resource, tuple(left), self.units, self.milli, self.picking)


class Room(NamedTuple):
    """What is free on a node. `amounts` go by an order of names that whoever made it knows.

    `kinds` has a bit for each typical pod that the node would take if it were empty.
    """

    kinds: int
    amounts: tuple[int, ...]
    devices: tuple[Devices, ...]

    @property
    def free_milli(self) -> int:
        """Return the milli-GPU that are free."""
        return sum(group.free_milli for group in self.devices)

    def after(self, ask: Ask, amounts: Iterable[int]) -> "Room | None":
        """Return what a pod leaves; None where devices are too few. Amounts may get negative.

        `amounts` are those of the ask, in this room's order.
        """
        devices = self.devices
        for wanted in ask.devices:
            left = _without(devices, wanted)
            if left is None:
                return None
            devices = left
        return Room(
            self.kinds,
            tuple([free - taken for free, taken in zip(self.amounts, amounts, strict=True)]),
            devices,
        )


def _without(groups: tuple[Devices, ...], ask: DeviceAsk) -> tuple[Devices, ...] | None:
    for index, group in enumerate(groups):
        if group.resource == ask.resource:
            left = group.without(ask)
            return None if left is None else (*groups[:index], left, *groups[index + 1 :])
    return None
