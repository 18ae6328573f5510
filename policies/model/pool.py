# SPDX-License-Identifier: Apache-2.0
"""GPU pools: named sets of nodes that quota is counted in and that are ranked in one way."""

from dataclasses import dataclass

from policies.model.labels import LabelSelector
from policies.model.placement import SpreadSettings


@dataclass(frozen=True, slots=True)
class Pool:
    """Kind `GPUPool`. What is in no pool is in the default pool."""

    name: str
    nodes: LabelSelector
    release_without_nodes: bool = False
    """Pods are released though no node seen could hold them: an autoscaler must see them wait."""
    placement: SpreadSettings | None = None
    """None leaves it to the setting of whoever ranks nodes."""
