# SPDX-License-Identifier: Apache-2.0
"""What is free on a node, as values that nodes in the same state share, and what a pod leaves.

Which of its devices a node gives is its device plugin's choice: the fullest that will do, or the
emptiest. Sums of free milli-GPU round down once for each device.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from policies.placement.asks import Ask, DeviceAsk

FULL_MILLI: Final = 1000
"""What a whole GPU is in milli-GPU."""


class Picking(StrEnum):
    """Which device is taken for the next pod, of those that have enough free."""

    PACKED = "Packed"
    """The one with least free."""
    SPREAD = "Spread"
    """The one with most free, as NVIDIA's plugin does with time slices and MPS shares.

    Source: NVIDIA/k8s-device-plugin internal/rm/allocate.go distributedAlloc.
    """


class Devices(NamedTuple):
    """The devices of one resource on a node: how much of each is free, ascending.

    `units` are those of a device that nothing is taken from, which is `milli` of a GPU.
    """

    resource: str
    free: tuple[int, ...]
    units: int = 1
    milli: int = FULL_MILLI

    def milli_of(self, units: int) -> int:
        """Return what so many units of one device are in milli-GPU, rounded down."""
        return units * self.milli // self.units

    @property
    def free_milli(self) -> int:
        """Return what is free of all together."""
        return sum(units * self.milli // self.units for units in self.free)


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
        return sum(devices.free_milli for devices in self.devices)

    def after(self, ask: Ask, amounts: Iterable[int], picking: Picking) -> "Room | None":
        """Return what a pod leaves; None where devices are too few. Amounts may get negative.

        `amounts` are those of the ask in this room's order.
        """
        devices = self.devices
        for wanted in ask.devices:
            left = _without(devices, wanted, picking)
            if left is None:
                return None
            devices = left
        left_amounts = tuple([a - b for a, b in zip(self.amounts, amounts, strict=True)])
        return Room(self.kinds, left_amounts, devices)


def _without(
    groups: tuple[Devices, ...], ask: DeviceAsk, picking: Picking
) -> tuple[Devices, ...] | None:
    for index, group in enumerate(groups):
        if group.resource == ask.resource:
            free = picked(group.free, ask.count, ask.units, picking)
            if free is None:
                return None
            return (*groups[:index], group._replace(free=free), *groups[index + 1 :])
    return None


def picked(
    free: tuple[int, ...], count: int, units: int, picking: Picking
) -> tuple[int, ...] | None:
    """Return what is free after `count` picks of `units` each; None where it is not enough.

    Ascending in and out. One device may be picked several times.
    """
    left = list(free)
    for _ in range(count):
        index = bisect_left(left, units) if picking is Picking.PACKED else len(left) - 1
        if not 0 <= index < len(left) or left[index] < units:
            return None
        insort(left, left.pop(index) - units)
    return tuple(left)
