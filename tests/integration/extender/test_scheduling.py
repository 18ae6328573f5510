# SPDX-License-Identifier: Apache-2.0
"""The real scheduler asks the extender by names over TLS, as the manifests render it."""

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.inputs import policies_from
from reconciler.runtime.loading import Compiler
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.extender import ExtenderLaunch, ExtenderProcess
from tests.controlplane.replica import ROOT
from tests.integration.extender.cluster import (
    SHARED,
    WHOLE,
    answered,
    by_node,
    clear,
    create,
    packs,
    pod,
    preferring,
    unasked,
    wait_bound,
    wait_refused,
    where,
)
from tests.integration.extender.conftest import Scheduled
from tests.support.pools import pool_document

_MIB = nodes.H100.memory_mib
_MIG = "nvidia.com/mig-1g.10gb"
POLICIES = ROOT / "docs/examples/policies"

_BLIND = "blind-to-affinity"
_SERVED = {"app": "served"}
_SIBLINGS = {"one-of": "two"}
_APART = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": _SIBLINGS},
}
"""Keeps a pod off the node that has its sibling."""


@pytest.fixture(scope="module")
def scheduler_changes() -> Mapping[str, object]:
    """A second profile, blind to affinity between pods: what keeps them apart is the extender."""
    disabled = {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}
    return {
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {"schedulerName": _BLIND, "plugins": disabled},
        ]
    }


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the pools, of which there are none at first."""
    return tmp_path_factory.mktemp("documents") / "pools.yaml"


@pytest.fixture(scope="module")
def launch(documents: Path) -> ExtenderLaunch:
    """Alone, and with documents, as the manifests render it."""
    return ExtenderLaunch(("--lease-name", "", "--policies", str(documents.parent)))


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
    found = answered(plane, "t", wait_bound(plane, "t", 75, seconds=60))
    assert found, "the extender was asked for nothing"
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


def test_a_form_that_is_shared_with_the_tenant_only_lets_nobody_elses_pods_sit_beside(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    plane.create_nodes([nodes.time_sliced("n0", count=1, replicas=4)])
    create(plane, "t", [_of("one", "a"), _of("one", "b")])
    wait_bound(plane, "t", 2)
    create(plane, "t", [_of("two", "c")])
    assert "pods of others are on its cards" in wait_refused(plane, "t", "c")
    plane.create_nodes([nodes.time_sliced("n1", count=1, replicas=4)])
    assert wait_bound(plane, "t", 3)["c"] == "n1"


def test_an_instance_that_no_board_has_a_place_for_is_given_to_nobody(cluster: Scheduled) -> None:
    plane = cluster.control_plane
    # Eight are told of, of which a board holds seven.
    plane.create_nodes([nodes.mig_mixed("n0", layout=(("1g.10gb",) * 8,))])
    create(plane, "t", [pod(f"p{number}", _MIG) for number in range(8)])
    (left,) = {f"p{number}" for number in range(8)} - wait_bound(plane, "t", 7).keys()
    assert "no place on its boards for 1, at most for 0" in wait_refused(plane, "t", left)
    plane.create_nodes([nodes.mig_mixed("n1", layout=(("1g.10gb",) * 7,))])
    assert wait_bound(plane, "t", 8)[left] == "n1"


def test_several_gpus_are_given_where_they_are_linked_best_whatever_else_is_preferred(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    for name, link in (("n0", "PCIe"), ("n1", "NVLink"), ("n2", "Mixed")):
        node: dict[str, Any] = nodes.whole(name, count=4)
        node["metadata"]["labels"]["sluice.dev/interconnect"] = link
        plane.create_nodes([node])
    create(plane, "t", [pod("a", WHOLE, 2, **preferring("n0"))])
    assert wait_bound(plane, "t", 1) == {"a": "n1"}


def test_a_replica_keeps_away_from_the_others_of_its_service_on_nodes_that_are_alike(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    plane.create_nodes(nodes.time_sliced(f"n{i}", count=1, replicas=4) for i in range(2))
    replicas = _replicas(1)
    create(plane, "t", [replicas])
    try:
        (first,) = wait_bound(plane, "t", 1).values()
        (other,) = {"n0", "n1"} - {first}
        # A selector would make it a kind of pod of its own, for which GPU there is worth more.
        stranger = pod("stranger", topologySpreadConstraints=[_APART])
        stranger["metadata"]["labels"] = _SIBLINGS
        create(plane, "t", [stranger])
        assert wait_bound(plane, "t", 2)["stranger"] == other
        template = replicas["spec"]["template"]
        template["spec"] |= preferring(first)
        change = {"spec": {"replicas": 2, "template": template}}
        plane.kubectl(
            *("patch", "replicaset", "served", "-n", "t", "--type=merge"),
            *("--patch-file=/dev/stdin",),
            stdin=change,
        )
        found = by_node(wait_bound(plane, "t", 3))
        assert sorted(map(len, found.values())) == [1, 2]
        assert len(found[first]) == 1, "the second replica followed the first"
    finally:
        plane.kubectl("delete", "replicaset", "served", "-n", "t", "--cascade=foreground")


def _of(tenant: str, name: str) -> dict[str, Any]:
    """Return a pod of a tenant in a form that it shares with nobody else, as it is rewritten."""
    wall = {
        "labelSelector": {
            "matchExpressions": [
                {"key": "state.sluice.dev/tenant", "operator": "Exists"},
                {"key": "state.sluice.dev/tenant", "operator": "NotIn", "values": [tenant]},
            ]
        },
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [wall]}
    found = pod(name, schedulerName=_BLIND, affinity={"podAntiAffinity": terms})
    found["metadata"]["labels"] = {"state.sluice.dev/tenant": tenant}
    return found


def _replicas(count: int) -> dict[str, Any]:
    template = pod("unused")
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "served"},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": _SERVED},
            "template": {
                "metadata": {"labels": {**_SERVED, **_SIBLINGS}},
                "spec": template["spec"],
            },
        },
    }


def test_each_pool_is_packed_or_spread_as_its_document_says_now(
    cluster: Scheduled, documents: Path
) -> None:
    plane, extender = cluster.control_plane, cluster.extender
    plane.create_nodes(_in_pool("red", number) for number in range(2))
    plane.create_nodes(_in_pool("blue", number) for number in range(2))
    _serve(extender, documents, _pools(red="Pack", blue="Spread"))
    assert _nodes_after(plane, "red", 3) == 1
    assert _nodes_after(plane, "blue", 2) == 2

    name = _place(plane, "blue")
    told = explained(plane, f"t/{name}", documents.parent)["nodes"]["standing"]
    assert [each["strategy"] for each in told] == ["Spread", "Spread"]
    assert told[0]["name"] == where(plane, "t")[name]

    documents.write_text(_pools(red="Spread", blue="Sprawl"), encoding="utf-8")
    extender.wait_answering("spec.placement.strategy")
    assert _nodes_after(plane, "red", 1) == 1, "the last good set is in force"

    _serve(extender, documents, _pools(red="Spread", blue="Pack"))
    assert _nodes_after(plane, "red", 1) == 2


def _serve(extender: ExtenderProcess, documents: Path, text: str) -> None:
    """Write the file, and wait until it is what the extender serves."""
    documents.write_text(text, encoding="utf-8")
    generation = policies_from(Compiler(), documents).generation
    extender.wait_answering(f"generation {generation}")


def _in_pool(pool: str, number: int) -> Mapping[str, object]:
    raw: Any = nodes.time_sliced(f"{pool}{number}", count=1, replicas=8)
    raw["metadata"]["labels"]["pool"] = pool
    return dict(raw)


def _pools(**strategies: str) -> str:
    """Return documents of pools that are ranked so."""
    return "---\n".join(
        pool_document(name, f"{{strategy: {strategy}}}") for name, strategy in strategies.items()
    )


def _nodes_after(plane: ControlPlane, pool: str, count: int) -> int:
    """Create so many pods for a pool one after the other; return on how many nodes its pods are."""
    for _ in range(count):
        _place(plane, pool)
    return len({node for name, node in where(plane, "t").items() if name.startswith(pool)})


def _place(plane: ControlPlane, pool: str) -> str:
    """Create a pod for a pool, and return its name once it is bound.

    One that the scheduler had no answer for, as on a busy machine, is taken away for another.
    """
    while True:
        name, before = f"{pool}-{secrets.token_hex(4)}", len(where(plane, "t"))
        create(plane, "t", [pod(name, nodeSelector={"pool": pool})])
        wait_bound(plane, "t", before + 1)
        if name not in unasked(plane, "t"):
            return name
        plane.kubectl("delete", "pod", name, "-n", "t", "--grace-period=0", "--force")


def explained(plane: ControlPlane, name: str, policies: Path = POLICIES) -> dict[str, Any]:
    """Return what `sluice explain pod` says."""
    arguments = ("explain", "pod", name, "--policies", str(policies), "-o", "json")
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
