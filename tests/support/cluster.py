# SPDX-License-Identifier: Apache-2.0
"""Builds nodes, pods and shapes for the fit check, as raw objects and as their views."""

from collections.abc import Mapping
from typing import Any, Final

from policies.cluster.constraints import read_constraints
from policies.cluster.demand import read_requests
from policies.cluster.nodes import Node, read_node
from policies.cluster.shape import FitShape
from tests.support.builders import GPU, Json

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def raw_node(
    name: str = "n1", allocatable: Mapping[str, object] | None = None, **parts: Any
) -> Json:
    """Return a Node that is ready. `labels` go into its metadata, other parts into its spec."""
    offered = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "8"}
    ready = parts.pop("ready", "True")
    return {
        "metadata": {"name": name, "labels": parts.pop("labels", {}), "resourceVersion": "1"},
        "spec": parts,
        "status": {
            "allocatable": {**offered, **(allocatable or {})},
            "conditions": [{"type": "Ready", "status": ready}] if ready else [],
        },
    }


def node(name: str = "n1", allocatable: Mapping[str, object] | None = None, **parts: Any) -> Node:
    """Return the view of `raw_node`."""
    return read_node(raw_node(name, allocatable, **parts))


def terms(*listed: Json) -> Json:
    """Return an affinity that requires one of the node selector terms."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(listed)}}}


def needs(key: str, operator: str, *values: str) -> Json:
    """Return a term of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def shape(gpus: int = 1, **spec: Any) -> FitShape:
    """Return the shape of a pod of one container; `requests` adds to what it asks."""
    asked = {**({GPU: str(gpus)} if gpus else {}), **spec.pop("requests", {})}
    spec["containers"] = [{"name": "main", "resources": {"requests": asked}}]
    return FitShape.of(read_requests({"spec": spec}), read_constraints(spec))
