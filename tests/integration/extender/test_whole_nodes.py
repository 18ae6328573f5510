# SPDX-License-Identifier: Apache-2.0
"""The scheduler sends whole nodes over plain HTTP, as `nodeCacheCapable: false` has it."""

from collections.abc import Mapping

import pytest

from tests.controlplane import nodes
from tests.controlplane.extender import ExtenderLaunch
from tests.integration.extender.cluster import by_node, create, pod, wait_bound, wait_refused
from tests.integration.extender.conftest import Scheduled


@pytest.fixture(scope="module")
def launch() -> ExtenderLaunch:
    """Plain HTTP, with a Lease as more than one extender has."""
    arguments = ("--lease-namespace", "default", "--lease-name", "sluice-extender")
    return ExtenderLaunch(arguments=arguments, is_tls=False)


@pytest.fixture(scope="module")
def entry_changes() -> Mapping[str, object]:
    return {"nodeCacheCapable": False}


def test_whole_nodes_are_answered_as_names_are(scheduled: Scheduled) -> None:
    plane = scheduled.control_plane
    lease = plane.get("lease", "sluice-extender", "-n", "default")
    assert lease["spec"]["holderIdentity"]
    plane.create_namespace("t")
    plane.create_nodes(nodes.time_sliced(f"n{i}", count=1, replicas=4) for i in range(3))
    for number in range(3):
        create(plane, "t", [pod(f"small{number}", mib=10_000)])
        wait_bound(plane, "t", number + 1)
    create(plane, "t", [pod(f"large{i}", mib=60_000) for i in range(3)])
    found = by_node(wait_bound(plane, "t", 5))
    packed = next(names for names in found.values() if "small0" in names)
    assert sorted(packed) == ["small0", "small1", "small2"]
    told = {wait_refused(plane, "t", name) for name in _pending(plane.get("pods", "-n", "t"))}
    assert len(told) == 1
    assert "GPU memory" in told.pop()


def _pending(pods: Mapping[str, list[Mapping[str, Mapping[str, str]]]]) -> list[str]:
    return [p["metadata"]["name"] for p in pods["items"] if not p["spec"].get("nodeName")]


def test_preemption_takes_inference_before_training(scheduled: Scheduled) -> None:
    plane = scheduled.control_plane
    plane.create_namespace("u")
    plane.create_nodes(nodes.whole(f"w{i}", nodes.A100, count=1) for i in range(2))
    for name, value in (("low", 10), ("high", 1000)):
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        body = {**kind, "metadata": {"name": name}, "value": value}
        plane.kubectl("create", "--filename=-", stdin=body)
    for name, work in (("serve", "inference"), ("train", "training")):
        item = pod(name, "nvidia.com/gpu", priorityClassName="low", terminationGracePeriodSeconds=0)
        item["metadata"]["labels"] = {"sluice.dev/work": work}
        create(plane, "u", [item])
    before = wait_bound(plane, "u", 2)
    create(plane, "u", [pod("urgent", "nvidia.com/gpu", priorityClassName="high")])
    deadline_bound = wait_bound_named(scheduled, "urgent")
    assert deadline_bound == before["serve"]
    assert "train" in {p["metadata"]["name"] for p in plane.get("pods", "-n", "u")["items"]}


def wait_bound_named(scheduled: Scheduled, name: str) -> str:
    """Wait until a pod is bound, and return its node."""
    plane = scheduled.control_plane
    plane.kubectl(
        *("wait", f"pod/{name}", "-n", "u", "--timeout=30s"),
        "--for=condition=PodScheduled",
    )
    return str(plane.get("pod", name, "-n", "u")["spec"]["nodeName"])
