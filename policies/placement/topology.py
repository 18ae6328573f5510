# SPDX-License-Identifier: Apache-2.0
"""How a node's GPUs are linked, and what work that is spread over several of them loses by it.

Costs are the middle of what distributed training was seen to lose: under 5 % over NVLink, 15 to
25 % over a mixture, 35 to 40 % over PCIe alone.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from policies.cluster.nodes import Node
from policies.model.keys import INTERCONNECT
from policies.placement.asks import Ask
from policies.vendors.nvidia import PRODUCT_LABEL

CLIQUE_LABEL: Final = "nvidia.com/gpu.clique"
"""GPU feature discovery writes it on nodes of an NVLink fabric."""


class Interconnect(StrEnum):
    """What links the GPUs of a node."""

    NVLINK = "NVLink"
    MIXED = "Mixed"
    PCIE = "PCIe"


COST: Final[Mapping[Interconnect, int]] = {
    Interconnect.NVLINK: 50,
    Interconnect.MIXED: 200,
    Interconnect.PCIE: 375,
}
"""Thousandths of the work's speed."""

_MARKS: Final = (
    ("-SXM", Interconnect.NVLINK),
    ("-HGX", Interconnect.NVLINK),
    ("-PCIE", Interconnect.PCIE),
)
"""Parts of product names that tell; boards with bridges have to be told by the label."""


def interconnect_of(node: Node) -> Interconnect | None:
    """Return what a node's label says, else its fabric, else its boards' name; None if unknown."""
    said = node.labels.get(INTERCONNECT, "").lower()
    for each in Interconnect:
        if each.lower() == said:
            return each
    if node.labels.get(CLIQUE_LABEL):
        return Interconnect.NVLINK
    product = node.labels.get(PRODUCT_LABEL, "").upper()
    return next((found for mark, found in _MARKS if mark in product), None)


def is_spread(ask: Ask) -> bool:
    """Tell whether a pod asks for several devices, so that their links matter to it."""
    return sum(device.count for device in ask.devices) > 1
