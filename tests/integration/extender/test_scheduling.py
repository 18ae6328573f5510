# SPDX-License-Identifier: Apache-2.0
"""The real scheduler asks the extender by names over TLS, as the manifests render it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.controlplane.replica import ROOT
from tests.integration.extender.cluster import (
    SHARED,
    WHOLE,
    by_node,
    clear,
    create,
    packs,
    pod,
    wait_bound,
    wait_refused,
    where,
)
from tests.integration.extender.conftest import Scheduled

_MIB = nodes.H100.memory_mib
POLICIES = ROOT / "docs/examples/policies"


@pytest.fixture
def cluster(scheduled: Scheduled) -> Iterator[Scheduled]:
    """The cluster with a namespace `t`, emptied after the test."""
    plane = scheduled.control_plane
    plane.create_namespace("t")
    yield scheduled
    clear(plane, "t")


def test_pods_of_one_kind_are_packed_on_one_node_where_the_scheduler_would_spread_them(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    plane.create_nodes(nodes.time_sliced(f"n{i}", count=2, replicas=4) for i in range(4))
    for number in range(6):
        create(plane, "t", [pod(f"p{number}")])
        wait_bound(plane, "t", number + 1)
    assert len(by_node(where(plane, "t"))) == 1


def test_a_card_without_memory_is_not_given_to_a_pod_that_states_its_need(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    plane.create_nodes(nodes.time_sliced(f"n{i}", count=1, replicas=4) for i in range(2))
    create(plane, "t", [pod("a", mib=60_000)])
    wait_bound(plane, "t", 1)
    create(plane, "t", [pod("b", mib=60_000)])
    found = wait_bound(plane, "t", 2)
    assert found["a"] != found["b"]
    create(plane, "t", [pod("c", mib=60_000)])
    assert f"GPU memory: {_MIB - 60_000} MiB free on a card, needs 60000" in wait_refused(
        plane, "t", "c"
    )
    create(plane, "t", [pod("d", mib=20_000)])
    assert "d" in wait_bound(plane, "t", 3)


def test_a_pod_that_was_refused_for_memory_is_placed_once_there_is_some(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    plane.create_nodes([nodes.time_sliced("n0", count=1, replicas=4)])
    create(plane, "t", [pod("a", mib=60_000)])
    wait_bound(plane, "t", 1)
    create(plane, "t", [pod("b", mib=60_000)])
    wait_refused(plane, "t", "b")
    plane.kubectl("delete", "pod", "a", "-n", "t", "--grace-period=0", "--force")
    assert wait_bound(plane, "t", 1) == {"b": "n0"}


def test_exclusive_pods_never_share(cluster: Scheduled) -> None:
    plane = cluster.control_plane
    plane.create_nodes([nodes.whole("n0", count=2)])
    create(plane, "t", [pod("a", WHOLE, 1, nodeSelector={"nvidia.com/gpu.count": "2"})])
    wait_bound(plane, "t", 1)
    # The node is cut anew under the pod, as when somebody flips its label.
    shared = nodes.time_sliced("n0", count=2, replicas=4)
    plane.kubectl(
        *("patch", "node", "n0", "--type=merge", "--patch-file=/dev/stdin"),
        stdin={"metadata": {"labels": shared["metadata"]["labels"]}},  # type: ignore[index]
    )
    status = {"allocatable": {SHARED: "8", WHOLE: "0"}, "capacity": {SHARED: "8", WHOLE: "0"}}
    plane.kubectl(
        *("patch", "node", "n0", "--subresource=status", "--type=merge"),
        *("--patch-file=/dev/stdin",),
        stdin={"status": status},
    )
    create(plane, "t", [pod("b")])
    assert "pods with whole GPUs are still on its cards" in wait_refused(plane, "t", "b")


def test_a_burst_of_pods_packs_onto_the_cards_of_every_node(cluster: Scheduled) -> None:
    plane = cluster.control_plane
    plane.create_nodes(nodes.time_sliced(f"n{i}", count=1, replicas=4) for i in range(30))
    # Together they are less than there is, though by shares alone two of 60 GB would fit a card.
    needs = {f"p{i}": (50_000, 30_000, 20_000, 10_000)[i % 4] for i in range(100)}
    pods = [pod(name, mib=mib) for name, mib in needs.items()]
    create(plane, "t", pods)
    found = by_node(wait_bound(plane, "t", 75, seconds=60))
    for node, names in found.items():
        assert packs([needs[name] for name in names], 1, _MIB, 4), (node, names)


def test_what_is_explained_of_nodes_is_what_the_scheduler_was_told(cluster: Scheduled) -> None:
    plane = cluster.control_plane
    plane.create_nodes(nodes.time_sliced(f"n{i}", count=1, replicas=4) for i in range(2))
    plane.create_nodes([nodes.whole("whole")])
    create(plane, "t", [pod("a", mib=60_000), pod("b", mib=60_000)])
    wait_bound(plane, "t", 2)
    create(plane, "t", [pod("c", mib=40_000)])
    said = wait_refused(plane, "t", "c")

    refused = explained(plane, "t/c")
    assert (refused["node"], refused["nodes"]["standing"]) == (None, [])
    (memory,) = (each for each in refused["nodes"]["out"] if each["byExtender"])
    assert memory["nodes"] == ["n0", "n1"]
    assert f"2 {memory['reason']}" in said

    create(plane, "t", [pod("d", mib=10_000)])
    bound = wait_bound(plane, "t", 3)["d"]
    placed = explained(plane, "t/d")
    assert placed["node"] == bound == placed["nodes"]["standing"][0]["name"]


def explained(plane: ControlPlane, name: str) -> dict[str, Any]:
    """Return what `sluice explain pod` says."""
    arguments = ("explain", "pod", name, "--policies", str(POLICIES), "-o", "json")
    done = subprocess.run(
        [sys.executable, str(ROOT / "sluice.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"KUBECONFIG": str(plane.kubeconfig), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
