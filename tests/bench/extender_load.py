# SPDX-License-Identifier: Apache-2.0
"""The cluster and the pods that the extender is measured with."""

import random
from typing import Any, Final

from tests.controlplane import nodes

NODES: Final = 1213
PODS: Final = 8000

Json = dict[str, Any]

_MEMORY: Final = (0, 0, 0, 4, 8, 16, 24, 40)
"""GiB that pods state, most of them nothing."""
_CPU: Final = ("2", "4", "8")
_ASKS: Final = (
    ("nvidia.com/gpu.shared", 1, "time-slicing", 10),
    ("nvidia.com/gpu", 1, "none", 4),
    ("nvidia.com/gpu", 2, "none", 2),
    ("nvidia.com/gpu", 8, "none", 1),
    ("nvidia.com/mig-1g.10gb", 1, None, 4),
    ("nvidia.com/mig-2g.20gb", 1, None, 2),
)


def raw_nodes(count: int) -> list[Json]:
    """Return nodes of every kind, as the API has them."""
    makers = (nodes.time_sliced, nodes.whole, nodes.time_sliced, nodes.mig_mixed)
    return [dict(makers[number % 4](f"gpu-node-{number:04d}")) for number in range(count)]


def offering(raw: list[Json], resource: str) -> list[Json]:
    """Return the nodes that the scheduler would find to offer a resource."""
    return [node for node in raw if resource in node["status"]["allocatable"]]


def new_pod(random_: random.Random, name: str) -> Json:
    """Return a pod as the scheduler sends it: one of some 200 kinds."""
    weights = [weight for *_, weight in _ASKS]
    resource, count, strategy, _ = random_.choices(_ASKS, weights)[0]
    gib = random_.choice(_MEMORY)
    amounts = {resource: str(count), "cpu": random_.choice(_CPU), "memory": "8Gi"}
    selector = {"nvidia.com/gpu.sharing-strategy": strategy} if strategy else {}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "annotations": {"sluice.dev/gpu-memory": f"{gib}Gi"} if gib else {},
            "labels": {"app": "llm", "state.sluice.dev/tenant": "team-a"},
            "ownerReferences": [{**owner, "uid": f"rs-{random_.randrange(300)}"}],
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/llm:1",
                    "resources": {"limits": amounts, "requests": amounts},
                    "env": [{"name": f"SETTING_{i}", "value": "x" * 40} for i in range(10)],
                }
            ],
            "nodeSelector": selector,
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
            ],
            "schedulerName": "default-scheduler",
            "priority": 0,
        },
        "status": {"phase": "Pending", "qosClass": "Guaranteed"},
    }
