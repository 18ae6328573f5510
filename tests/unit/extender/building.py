# SPDX-License-Identifier: Apache-2.0
"""Nodes, pods and models of these tests, from raw objects as the API has them."""

from collections.abc import Mapping
from typing import Any

from policies.cluster.nodes import Node, read_node
from policies.placement.filtering import Limits
from policies.placement.model import Model, ModelSettings
from policies.placement.pods import PlacedPod, PodReader
from policies.vendors import build_catalog
from tests.controlplane import nodes
from webhook.extender.answers import Answers

Json = dict[str, Any]

SHARED = "nvidia.com/gpu.shared"
WHOLE = "nvidia.com/gpu"
CATALOG = build_catalog()
READER = PodReader(CATALOG)


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class World:
    """A model with its answers; `is_live` can be taken away."""

    def __init__(self, settings: ModelSettings | None = None) -> None:
        self.clock = Clock()
        self.is_live = True
        self.model = Model(CATALOG, settings or ModelSettings())
        self.answers = Answers(self.model, READER, lambda: self.is_live, self.clock)

    def node(self, raw: Mapping[str, object]) -> Node:
        node = read_node(raw)
        self.model.put_node(node)
        return node

    def bound(self, raw: Json, node: str, *, is_in_order: bool = True) -> PlacedPod:
        pod = READER.read({**raw, "spec": {**raw["spec"], "nodeName": node}})
        self.model.put_pod(pod, is_in_order=is_in_order)
        return pod


def shared(name: str, cards: int = 1, replicas: int = 4) -> Mapping[str, object]:
    return nodes.time_sliced(name, count=cards, replicas=replicas)


def limits(**values: int) -> ModelSettings:
    return ModelSettings(limits=Limits(**values))


def raw_pod(
    name: str, resource: str = SHARED, count: int = 1, mib: int | None = None, **metadata: Any
) -> Json:
    annotations = metadata.pop("annotations", {})
    if mib is not None:
        annotations = {**annotations, "sluice.dev/gpu-memory": f"{mib}Mi"}
    spec = metadata.pop("spec", {})
    resources = {"limits": {resource: str(count)}} if count else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "annotations": annotations,
            **metadata,
        },
        "spec": {"containers": [{"name": "main", "resources": resources}], **spec},
        "status": {"phase": "Pending"},
    }


def owned_by(kind: str, uid: str = "owner") -> list[Json]:
    return [{"kind": kind, "name": "x", "uid": uid, "controller": True}]
