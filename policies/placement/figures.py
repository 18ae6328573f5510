# SPDX-License-Identifier: Apache-2.0
"""What the GPUs of a node, and of all nodes of a model, come to: given out, left over, of no use.

Definitions are here once, for tables and metrics alike. What is measured must not be here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Final

from policies.cluster.capacity import gpu_milli, part_of
from policies.cluster.nodes import Node
from policies.model.profile import SharingMode
from policies.placement.groups import CardGroup
from policies.placement.occupancy import Occupancy
from policies.placement.rooms import Devices
from policies.vendors import Catalog
from policies.vendors.nvidia import model_of

UNKNOWN_MODEL: Final = "unknown"
"""The model of GPUs on nodes that no label tells of."""


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """The devices of one resource: as many as are offered, and as many as pods on the node ask.

    `used` is more than `offered` where a node was cut anew under its pods. `mode` is None for
    devices that cannot be told apart.
    """

    resource: str
    mode: SharingMode | None
    offered: int
    used: int

    @property
    def free(self) -> int:
        """Return how many more pods could be given."""
        return max(0, self.offered - self.used)


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """A node's GPUs. `fragmented_milli` is None while no pods tell what is typical."""

    name: str
    model: str
    devices: tuple[DeviceFigures, ...]
    capacity_milli: int
    allocated_milli: int
    stranded_mib: int
    fragmented_milli: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """The sums over all nodes of one model."""

    nodes: int = 0
    capacity_milli: int = 0
    allocated_milli: int = 0
    stranded_mib: int = 0
    fragmented_milli: float | None = None


def has_gpus(node: Node, catalog: Catalog) -> bool:
    """Tell whether a node offers GPUs or is labelled as one that has them."""
    return any(vendor.product_label in node.labels for vendor in catalog.vendors) or any(
        catalog.classify(resource) is not None for resource in node.allocatable
    )


def model_name(node: Node, catalog: Catalog) -> str:
    """Return the model of a node's GPUs, as nodes that do not share are labelled with it."""
    labels = (node.labels.get(vendor.product_label, "") for vendor in catalog.vendors)
    return next((model_of(label) for label in labels if label), UNKNOWN_MODEL)


def node_figures(
    here: Occupancy, catalog: Catalog, fragmented_milli: float | None = None
) -> NodeFigures:
    """Return the figures of a node with the pods on it and on their way to it."""
    devices = tuple(_devices(here, catalog))
    return NodeFigures(
        name=here.node.name,
        model=model_name(here.node, catalog),
        devices=devices,
        capacity_milli=gpu_milli(here.node, catalog),
        allocated_milli=_allocated_milli(devices, here.node, catalog),
        stranded_mib=stranded_mib(here),
        fragmented_milli=fragmented_milli,
    )


class FiguresTable:
    """Figures of nodes that are looked at again and again: only those that changed cost much."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._known: dict[str, tuple[Node, tuple[Devices, ...], NodeFigures]] = {}

    def of(self, here: Occupancy, fragmented_milli: float | None) -> NodeFigures:
        """Return the figures of a node, which are the same while its labels and devices are."""
        name, devices = here.node.name, here.cards.devices
        known = self._known.get(name)
        if known is None or known[0] is not here.node or known[1] is not devices:
            figures = node_figures(here, self.catalog, fragmented_milli)
        elif known[2].fragmented_milli == fragmented_milli:
            return known[2]
        else:
            figures = replace(known[2], fragmented_milli=fragmented_milli)
        self._known[name] = here.node, devices, figures
        return figures

    def keep(self, names: Iterable[str]) -> None:
        """Forget all nodes but these."""
        kept = set(names)
        self._known = {name: known for name, known in self._known.items() if name in kept}


def by_model(nodes: Iterable[NodeFigures]) -> Mapping[str, ModelFigures]:
    """Return the sums by model, in name order; fragmentation where it is known of any node."""
    grouped: dict[str, list[NodeFigures]] = defaultdict(list)
    for node in nodes:
        grouped[node.model].append(node)
    return {model: _summed(grouped[model]) for model in sorted(grouped)}


def stranded_mib(here: Occupancy) -> int:
    """Return the stranded memory of a node in MiB.

    That is, of each card or MIG instance that is given out wholly, what the pods on it do not state
    to need: nobody else can have it. A pod that states nothing needs its share. Devices whose
    memory is not known have none.
    """
    return sum(_stranded_of(group, here) for group in here.cards.groups.values())


def _devices(here: Occupancy, catalog: Catalog) -> Iterable[DeviceFigures]:
    for resource, offered in sorted(here.node.allocatable.items()):
        used = offered - here.free.get(resource, 0)
        if catalog.classify(resource) is None or not (offered or used):
            continue
        group = here.cards.groups.get(resource)
        yield DeviceFigures(resource, group.mode if group is not None else None, offered, used)


def _allocated_milli(devices: Iterable[DeviceFigures], node: Node, catalog: Catalog) -> int:
    """Return what of a node's capacity is given out, rounded down once as the capacity is."""
    total = Fraction(0)
    for device in devices:
        name = catalog.classify(device.resource) if device.offered else None
        if name is not None:
            part = part_of(name, device.offered, node, catalog)
            total += part * min(device.used, device.offered)
    return int(total * 1000)


def _stranded_of(group: CardGroup, here: Occupancy) -> int:
    stated, shares = [0] * len(group.free), [0] * len(group.free)
    for uid, wish in here.pods.items():
        picks = (here.cards.picks_of(uid) or {}).get(group.resource, ())
        asks = (ask for ask in wish.ask.devices if ask.resource == group.resource)
        for ask, index in product(asks, picks):
            stated[index] += ask.mib or 0
            shares[index] += ask.units if ask.mib is None else 0
    found = 0
    for index, free_mib in enumerate(group.free_mib):
        if group.free[index] > 0 or free_mib is None:
            continue
        total = free_mib + stated[index]
        found += max(0, free_mib - total * shares[index] // group.units)
    return found


def _summed(nodes: Iterable[NodeFigures]) -> ModelFigures:
    listed = list(nodes)
    known = [each.fragmented_milli for each in listed if each.fragmented_milli is not None]
    return ModelFigures(
        nodes=len(listed),
        capacity_milli=sum(each.capacity_milli for each in listed),
        allocated_milli=sum(each.allocated_milli for each in listed),
        stranded_mib=sum(each.stranded_mib for each in listed),
        fragmented_milli=sum(known) if known else None,
    )
