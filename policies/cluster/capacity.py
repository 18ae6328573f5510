# SPDX-License-Identifier: Apache-2.0
"""How much GPU a node offers to quota: the sum of what its devices would be charged.

What a device plugin advertises counts, not what boards are built in: a device that is out of
order, or that no geometry uses, can be charged to nobody.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

from policies.cluster.nodes import Node
from policies.vendors import Catalog, Form, GpuName
from policies.vendors.nvidia import (
    MIG_PREFIX,
    PRODUCT_LABEL,
    REPLICAS_LABEL,
    SHARED,
    SINGLE_STRATEGY_LABEL,
    STRATEGY_LABEL,
    model_of,
)

COUNT_LABEL: Final = "nvidia.com/gpu.count"
"""The GPUs of a node, as GPU feature discovery writes it."""

_SHARING: Final = ("time-slicing", "mps")
_SINGLE_MARK: Final = "-MIG-"
_SHARED_MARK: Final = "-SHARED"
_DIGITS: Final = 6
_NOTHING: Final = Fraction(0)


def gpu_milli(node: Node, catalog: Catalog) -> int:
    """Return the node's GPU capacity in milli-GPU, rounded down once.

    Whole GPUs are 1000, shares 1000 over their number on a GPU, MIG instances their memory slices
    over those of the board. Devices whose part of a GPU is not known count as nothing: no profile
    can be placed on them.
    """
    gpus = sum(_parts(node, catalog), _NOTHING)
    return int(gpus * 1000)


def _parts(node: Node, catalog: Catalog) -> Iterator[Fraction]:
    """Yield for each GPU resource how many GPUs its devices are."""
    for resource, count in node.allocatable.items():
        name = catalog.classify(resource) if count else None
        if name is not None:
            yield count * part_of(name, count, node, catalog)


def part_of(name: GpuName, count: int, node: Node, catalog: Catalog) -> Fraction:
    """Return what part of a GPU each of `count` devices of this name is on this node."""
    match name.form:
        case Form.WHOLE:
            return _whole_part(node, catalog) if name.vendor == "nvidia" else Fraction(1)
        case Form.SHARED:
            return _share(node.labels, count)
        case Form.MIG | Form.MIG_SHARED:
            profile = name.mig_profile or ""
            prefix = f"{MIG_PREFIX}{profile.replace('+', '.')}"
            shares = label_number(node.labels, f"{prefix}.replicas") or 1
            is_shared = node.labels.get(f"{prefix}.sharing-strategy") in _SHARING
            part = _instance(profile, node.labels, catalog)
            return part / shares if is_shared else part
        case _:
            return _NOTHING


def _whole_part(node: Node, catalog: Catalog) -> Fraction:
    """Return the part that one nvidia.com/gpu is, which is not a GPU where it is not renamed."""
    labels = node.labels
    part = Fraction(1)
    if SINGLE_STRATEGY_LABEL in labels:
        _, _, rest = labels.get(PRODUCT_LABEL, "").partition(_SINGLE_MARK)
        part = _instance(rest.removesuffix(_SHARED_MARK), labels, catalog)
    is_shared = labels.get(STRATEGY_LABEL) in _SHARING and not node.allocatable.get(SHARED)
    return part / (label_number(labels, REPLICAS_LABEL) or 1) if is_shared else part


def _share(labels: Mapping[str, str], count: int) -> Fraction:
    """Return the part that one nvidia.com/gpu.shared is, by its number or by the number of GPUs."""
    replicas = label_number(labels, REPLICAS_LABEL)
    if replicas:
        return Fraction(1, replicas)
    gpus = label_number(labels, COUNT_LABEL)
    return Fraction(gpus, count) if gpus <= count else _NOTHING


def _instance(profile: str, labels: Mapping[str, str], catalog: Catalog) -> Fraction:
    """Return an instance's part of its board; of an unknown board, the least it is of any."""
    model = model_of(labels.get(PRODUCT_LABEL, ""))
    having = [(board, shape) for board in catalog.mig_products if (shape := board.shape(profile))]
    known = [(board, shape) for board, shape in having if model in board.products]
    parts = (Fraction(shape.size, board.memory_slices) for board, shape in known or having)
    return min(parts, default=_NOTHING)


def label_number(labels: Mapping[str, str], label: str) -> int:
    """Return a label's count, 0 where there is none that could be meant."""
    value = labels.get(label, "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) <= _DIGITS else 0
