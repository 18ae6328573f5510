# SPDX-License-Identifier: Apache-2.0
"""Pods, nodes and documents of each mode of sharing: whole GPUs, thirds by time, MIG instances."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from policies.cluster.affinity import NodeTerm
from policies.cluster.constraints import Constraints
from policies.cluster.nodes import Node
from policies.cluster.shape import FitShape
from policies.model.policyset import PolicySet
from policies.pod.view import ContainerKind
from policies.quota.pods import Ask, Shape
from tests.support.builders import GPU, MIG, REFERENCE, SHARED, policy_set

PRODUCT: Final = "NVIDIA-H100-80GB-HBM3"
_THIRD: Final = f"""
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {{name: third}}
spec: {{mode: TimeSlice, replicas: 3, products: [{PRODUCT}], allowMultiple: true}}
"""
_PROFILES: Final = {GPU: "whole", SHARED: "third", MIG: "h100-1g.10gb"}
_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    GPU: {"nvidia.com/gpu.sharing-strategy": "none"},
    SHARED: {
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "3",
        "nvidia.com/gpu.product": f"{PRODUCT}-SHARED",
    },
    MIG: {"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.product": PRODUCT},
}


def documents() -> PolicySet:
    """Return a compiled set whose tenants and settings a test replaces."""
    return policy_set(REFERENCE + _THIRD)


def make_node(name: str, resource: str, count: int, zone: str) -> Node:
    """Return a node with so many devices of one mode."""
    labels = {**_LABELS[resource], "zone": zone}
    return Node(name, labels, (), {resource: count, "cpu": 96_000, "pods": 110})


@lru_cache(maxsize=256)
def make_shape(
    resource: str,
    count: int,
    zone: str = "",
    *,
    exclusive: bool = False,
    grace_seconds: int = 30,
) -> Shape:
    """Return the one shape of pods that take so many devices of a mode."""
    profile = documents().profiles[_PROFILES[resource]]
    selector = {**profile.placement.node_selector} | ({"zone": zone} if zone else {})
    constraints = Constraints(
        node_selector=tuple(sorted(selector.items())),
        terms=(NodeTerm(expressions=profile.placement.expressions),),
    )
    return Shape(
        fit=FitShape.of({resource: count, "cpu": 100, "pods": 1}, constraints),
        asks=(Ask(ContainerKind.APP, {resource: count}, profile.name),),
        gpus={resource: count},
        profiles=(profile.name,),
        claimed=True,
        exclusive=exclusive,
        grace_seconds=grace_seconds,
    )
