# SPDX-License-Identifier: Apache-2.0
"""Pods and nodes of these tests, and what became of them."""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.controlplane import ControlPlane, nodes
from tests.controlplane.components import SCHEDULER

Json = dict[str, Any]

SHARED = "nvidia.com/gpu.shared"
WHOLE = "nvidia.com/gpu"

CARDS, SHARES = 2, 4
NEEDS = (20_000, 12_000, 9_000, 6_000, 3_000)
"""MiB that pods of a burst state in turn."""

_WENT_ON = re.compile(r'"Skipping extender [^"]*" pod="([^"]+)"')


def pod(
    name: str, resource: str = SHARED, count: int = 1, mib: int | None = None, **spec: Any
) -> Json:
    """Return a pod that asks for devices and states its need of memory, if any."""
    annotations = {"sluice.dev/gpu-memory": f"{mib}Mi"} if mib else {}
    amounts = {resource: str(count)} if count else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "containers": [{"name": "main", "image": "x", "resources": {"limits": amounts}}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            **spec,
        },
    }


def preferring(node: str) -> Json:
    """Return a spec for which the scheduler by itself would take one node before all others."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    preference = {"weight": 100, "preference": {"matchExpressions": [here]}}
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {field: [preference]}}}


def create(plane: ControlPlane, namespace: str, pods: Iterable[Json]) -> None:
    """Create pods in one call."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(pods)}
    plane.kubectl("create", "-n", namespace, "--filename=-", stdin=items)


def clear(plane: ControlPlane, namespace: str) -> None:
    """Delete all pods of a namespace, the namespace, and all nodes; each in one call."""
    pods = f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0"
    plane.kubectl("delete", "--raw", pods)
    plane.kubectl("delete", "namespace", namespace, "--wait=true")
    plane.kubectl("delete", "--raw", "/api/v1/nodes")


def where(plane: ControlPlane, namespace: str) -> Mapping[str, str]:
    """Return the node of each bound pod by name."""
    found = plane.get("pods", "-n", namespace)["items"]
    return {
        item["metadata"]["name"]: item["spec"]["nodeName"]
        for item in found
        if item["spec"].get("nodeName")
    }


def wait_bound(
    plane: ControlPlane, namespace: str, count: int, seconds: float = 30.0
) -> Mapping[str, str]:
    """Wait until so many pods are bound; return the node of each."""
    deadline = time.monotonic() + seconds
    while len(found := where(plane, namespace)) < count:
        plane.components.check()
        assert time.monotonic() < deadline, f"{len(found)} of {count} pods bound: {_events(plane)}"
        time.sleep(0.1)
    return found


def wait_refused(plane: ControlPlane, namespace: str, name: str, seconds: float = 20.0) -> str:
    """Wait until the scheduler has said why it finds no node for a pod; return what it says."""
    deadline = time.monotonic() + seconds
    while True:
        conditions = plane.get("pod", name, "-n", namespace)["status"].get("conditions", [])
        for condition in conditions:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition["message"])
        assert time.monotonic() < deadline, conditions
        time.sleep(0.1)


def by_node(found: Mapping[str, str]) -> Mapping[str, list[str]]:
    """Return the pods of each node."""
    pods: dict[str, list[str]] = defaultdict(list)
    for name, node in found.items():
        pods[node].append(name)
    return pods


def unasked(plane: ControlPlane, namespace: str) -> set[str]:
    """Return the pods that the scheduler once went on with although it had no answer of filter.

    It says so before it binds them.
    """
    log = (plane.directory / f"{SCHEDULER}.log").read_text(encoding="utf-8")
    names = (found.partition("/") for found in _WENT_ON.findall(log))
    return {name for owner, _, name in names if owner == namespace}


@contextmanager
def shared_nodes(plane: ControlPlane, count: int) -> Iterator[None]:
    """Have so many nodes of two cards in four shares, and a namespace `t`, emptied afterwards."""
    plane.create_namespace("t")
    plane.create_nodes(
        nodes.time_sliced(f"n{i}", nodes.L40S, count=CARDS, replicas=SHARES) for i in range(count)
    )
    yield
    clear(plane, "t")


def check_packed(judged: Mapping[str, Iterable[str]], needs: Mapping[str, int]) -> None:
    """Demand that the pods of each of these nodes can lie on its cards."""
    assert judged, "the extender was asked for nothing"
    for node, names in judged.items():
        mine = [needs[name] for name in names]
        assert packs(mine, CARDS, nodes.L40S.memory_mib, SHARES), (node, mine)


def answered(
    plane: ControlPlane, namespace: str, found: Mapping[str, str]
) -> Mapping[str, list[str]]:
    """Return the pods of each node all of whose pods the extender was asked about.

    On a busy machine an answer may come too late; then the scheduler goes on by devices alone.
    """
    late = unasked(plane, namespace)
    return {node: names for node, names in by_node(found).items() if late.isdisjoint(names)}


def packs(needs: Iterable[int], cards: int, mib: int, shares: int) -> bool:
    """Tell whether needs of memory can lie on so many cards of so much and so many shares."""
    ordered = sorted(needs, reverse=True)

    def place(index: int, free: tuple[tuple[int, int], ...]) -> bool:
        if index == len(ordered):
            return True
        for card in set(free):
            left, slots = card
            if left >= ordered[index] and slots:
                rest = list(free)
                rest.remove(card)
                if place(index + 1, (*rest, (left - ordered[index], slots - 1))):
                    return True
        return False

    return place(0, ((mib, shares),) * cards)


def _events(plane: ControlPlane) -> str:
    found = plane.kubectl("get", "events", "-A", "--field-selector=type=Warning", check=False)
    return found.stdout[-3000:]
