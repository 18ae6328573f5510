# SPDX-License-Identifier: Apache-2.0
"""The devices of one resource on a node: cards, shares of cards, or MIG instances.

Read from what the device plugin offers and from labels of GPU feature discovery. Devices whose
part of a GPU is not known are left out. Which pod has which must not be here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from policies.cluster.capacity import COUNT_LABEL, label_number, part_of
from policies.cluster.nodes import Node
from policies.model.profile import SharingMode
from policies.placement.asks import DeviceAsk
from policies.placement.layout import Instance, lay_out
from policies.placement.rooms import FULL_MILLI, Devices, Picking
from policies.vendors import Catalog, Form, GpuName, MigProduct
from policies.vendors.nvidia import (
    MIG_PREFIX,
    PRODUCT_LABEL,
    REPLICAS_LABEL,
    SHARED,
    SINGLE_STRATEGY_LABEL,
    STRATEGY_LABEL,
    mig_profile_of,
    model_of,
)

MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
"""MiB of a GPU, as GPU feature discovery writes it."""

_SHARING: Final = {"time-slicing": SharingMode.TIME_SLICE, "mps": SharingMode.MPS}
_MOST: Final = 4096
"""More devices of a resource on one node are a mistake of whoever reports them."""


@dataclass(slots=True)
class CardGroup:
    """The devices of one resource: cards, or MIG instances.

    `free` has units of each device and `free_mib` what no pod has stated a need for, which is
    None where a device's memory is not known and negative where more is stated than there is.
    `instances` tells where MIG instances lie, None where no legal place is known.
    """

    resource: str
    mode: SharingMode
    units: int
    milli: int
    picking: Picking
    free: list[int]
    free_mib: list[int | None]
    instances: tuple[Instance | None, ...] = ()
    _fullest: tuple[int, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def fullest(self) -> tuple[int, ...]:
        """Return the devices by what is free of their memory, then by units, the fullest first."""
        if self._fullest is None:
            pairs = zip(self.free_mib, self.free, strict=True)
            keys = [(mib or 0, free) for mib, free in pairs]
            self._fullest = tuple(sorted(range(len(keys)), key=keys.__getitem__))
        return self._fullest

    def picks(self, ask: DeviceAsk) -> tuple[int, ...] | None:
        """Return the devices that the plugin would give, once for each pick; None if too few."""
        left = list(self.free)
        found = []
        for _ in range(ask.count):
            able = [index for index, free in enumerate(left) if free >= ask.units]
            if not able:
                return None
            sign = 1 if self.picking is Picking.PACKED else -1
            index = min(able, key=lambda i: (sign * left[i], i))
            left[index] -= ask.units
            found.append(index)
        return tuple(found)

    @property
    def devices(self) -> Devices:
        """Return what is free as a value."""
        free = tuple(sorted(max(0, free) for free in self.free))
        return Devices(self.resource, free, self.units, self.milli, self.picking)

    def take(self, picks: Iterable[int], ask: DeviceAsk, sign: int) -> None:
        """Take what is asked from devices, or give it back (-1)."""
        self._fullest = None
        for index in picks:
            self.free[index] -= sign * ask.units
            mib = self.free_mib[index]
            if mib is not None and ask.mib is not None:
                self.free_mib[index] = mib - sign * ask.mib


class _Form(NamedTuple):
    """What the devices of a resource are: how shared, and which MIG profile, if any."""

    mode: SharingMode
    units: int
    profile: str = ""


def read_groups(node: Node, catalog: Catalog, shares_picked: Picking) -> Iterator[CardGroup]:
    """Yield what the node offers by resource, in name order, with nothing taken."""
    offered = [
        (name, count, _form(name, count, node))
        for resource, count in sorted(node.allocatable.items())
        if count > 0 and (name := catalog.classify(resource)) is not None
    ]
    counts = {form.profile: -(-count // form.units) for _, count, form in offered if form.profile}
    instances = _instances(counts, node, catalog)
    for name, count, form in offered:
        milli = int(part_of(name, count, node, catalog) * form.units * FULL_MILLI)
        free = _free(count, form.units)
        if not milli or len(free) > _MOST:
            continue
        lying = instances.get(form.profile, [])[: len(free)]
        yield CardGroup(
            resource=name.resource,
            mode=form.mode,
            units=form.units,
            milli=milli,
            picking=shares_picked if form.units > 1 else Picking.PACKED,
            free=free,
            free_mib=[_mib(form, node, catalog)] * len(free),
            instances=(*lying, *[None] * (len(free) - len(lying))) if form.profile else (),
        )


def _free(count: int, units: int) -> list[int]:
    """Return the units of each device; where one is out of order, one device has fewer."""
    whole, rest = divmod(count, units)
    return [units] * min(whole, _MOST + 1) + [rest] * bool(rest)


def _form(name: GpuName, count: int, node: Node) -> _Form:
    labels = node.labels
    sharing = _SHARING.get(labels.get(STRATEGY_LABEL, ""))
    match name.form:
        case Form.WHOLE if name.vendor == "nvidia":
            is_shared = sharing is not None and not node.allocatable.get(SHARED)
            units = (label_number(labels, REPLICAS_LABEL) if is_shared else 0) or 1
            if SINGLE_STRATEGY_LABEL in labels:
                profile = mig_profile_of(labels.get(PRODUCT_LABEL, ""))
                return _Form(SharingMode.MIG, units, profile or "")
            mode = sharing if is_shared else None
            return _Form(mode or SharingMode.EXCLUSIVE, units)
        case Form.SHARED:
            units = label_number(labels, REPLICAS_LABEL)
            gpus = label_number(labels, COUNT_LABEL) or count
            return _Form(sharing or SharingMode.TIME_SLICE, units or max(1, -(-count // gpus)))
        case Form.MIG | Form.MIG_SHARED:
            prefix = f"{MIG_PREFIX}{(name.mig_profile or '').replace('+', '.')}"
            is_shared = labels.get(f"{prefix}.sharing-strategy") in _SHARING
            units = (label_number(labels, f"{prefix}.replicas") if is_shared else 0) or 1
            return _Form(SharingMode.MIG, units, name.mig_profile or "")
        case _:
            return _Form(SharingMode.EXCLUSIVE, 1)


def board_of(node: Node, catalog: Catalog) -> MigProduct | None:
    """Return what is known of a node's boards, if MIG can cut them."""
    model = model_of(node.labels.get(PRODUCT_LABEL, ""))
    return next((board for board in catalog.mig_products if model in board.products), None)


def _mib(form: _Form, node: Node, catalog: Catalog) -> int | None:
    """Return the MiB of a device that pods can use; None if not known."""
    if form.mode is SharingMode.MIG:
        board = board_of(node, catalog)
        shape = board.shape(form.profile) if board is not None else None
        return shape.memory_mib if shape is not None else None
    stated = label_number(node.labels, MEMORY_LABEL)
    return stated or catalog.board_mib.get(model_of(node.labels.get(PRODUCT_LABEL, "")))


def _instances(
    counts: Mapping[str, int], node: Node, catalog: Catalog
) -> Mapping[str, list[Instance]]:
    """Return where instances may lie by profile, as far as the board is known."""
    board = board_of(node, catalog) if counts else None
    if board is None or sum(counts.values()) > _MOST:
        return {}
    boards = label_number(node.labels, COUNT_LABEL)
    if not boards or boards > _MOST or SINGLE_STRATEGY_LABEL in node.labels:
        boards = _least_boards(counts, board)
    found: dict[str, list[Instance]] = {}
    for instance in lay_out(counts, board, boards):
        found.setdefault(instance.profile, []).append(instance)
    return found


def _least_boards(counts: Mapping[str, int], board: MigProduct) -> int:
    """Return how many boards the instances need at least (a single-strategy label counts them)."""
    shapes = [(shape, counts.get(shape.name, 0)) for shape in board.shapes]
    compute = sum(shape.compute_slices * count for shape, count in shapes)
    memory = sum(shape.size * count for shape, count in shapes)
    full = max((-(-count // shape.max_per_gpu) for shape, count in shapes), default=0)
    return max(-(-compute // board.compute_slices), -(-memory // board.memory_slices), full)
