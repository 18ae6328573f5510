# SPDX-License-Identifier: Apache-2.0
"""`sluice explain pod` tells what was decided, what holds a pod, and what would end that."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from policies.model.keys import DECISION, QUOTA_GATE
from policies.model.tenant import Lending
from policies.quota.pods import Notice, Phase, QuotaPod
from policies.rewrite.claim import Claim, Original
from reconciler.cli.explain import print_report, print_report_json
from reconciler.cli.explaining import report
from reconciler.cli.fleet import Readers
from reconciler.cli.snapshot import Among, Scene
from reconciler.placement.settings import PlacementSettings
from tests.support import fleets
from tests.support.builders import GPU, Json, catalog
from tests.support.planning import World, node, tenant

CLAIM = Claim(
    generation="7c1f",
    policy="training-exclusive",
    profiles={"main": "whole"},
    exclusive=True,
    asked={"main": Original({GPU: "8"}, {})},
    given={"main": {GPU: 8}},
)


def scene(world: World, pod: QuotaPod, claim: Claim | None = CLAIM, *gates: str) -> Scene:
    annotations = {} if claim is None else {DECISION: claim.to_annotation()}
    raw: Mapping[str, object] = {
        "metadata": {"namespace": pod.namespace, "name": pod.name, "annotations": annotations},
        "spec": {"schedulingGates": [{"name": gate} for gate in (QUOTA_GATE, *gates)]},
    }
    return Scene(world.state, raw, world.state.pod(pod.uid), (), world.now)


def told(found: Scene) -> list[str]:
    stream = io.StringIO()
    print_report(report(found), Console(file=stream, soft_wrap=True, width=200))
    return stream.getvalue().splitlines()


def plain(found: Scene) -> dict[str, Any]:
    stream = io.StringIO()
    print_report_json(report(found), stream)
    found_plain: dict[str, Any] = json.loads(stream.getvalue())
    return found_plain


def line(lines: list[str], title: str) -> str:
    (found,) = (each for each in lines if each.startswith(f"  {title}:"))
    return found.split(":", 1)[1].strip()


def test_a_pod_that_waits_is_told_its_decision_its_place_and_what_holds_it() -> None:
    world = World([tenant("research", 8, 8, cohort="main")], [node("a"), node("b")])
    (running,) = world.run("research", 8)
    world.wait("research", 1, created_at=world.now - 900, priority=5)
    (pod,) = world.wait("research", 8, created_at=world.now - 840)

    lines = told(scene(world, pod))
    assert lines[0] == (
        f"research/{pod.name}   asked 8 GPUs   whole, exclusive   "
        "by training-exclusive (generation 7c1f)"
    )
    assert lines[1] == "waiting 14m, place 2 of 2 in cohort main"
    assert line(lines, "holds it back") == "needs 8 GPUs within research's ceiling of 8 GPUs"
    assert line(lines, "held by") == f"research/{running.name} (8 GPUs)"
    assert line(lines, "quota") == "research uses 8 GPUs (guarantee 8, ceiling 8)"
    assert line(lines, "ends it") == "pods of its own tenant ending, or a higher ceiling"
    assert line(lines, "takes back") == "nothing: room on nodes is not what it lacks"
    assert plain(scene(world, pod))["waiting"]["place"] == 2


def test_a_long_list_of_holders_ends_in_their_number() -> None:
    world = World([tenant("lab", 8, 8)], [node("a"), node("b")])
    world.run("lab", 1, many=8)
    (pod,) = world.wait("lab", 2)
    holders = line(told(scene(world, pod)), "held by").split(", ")
    assert len(holders) == 6
    assert holders[-1] == "3 more (3 GPUs)"


def test_who_borrows_holds_what_would_be_borrowed() -> None:
    at_once = Lending(idle_after_seconds=0)
    world = World(
        [
            tenant("chat", 4, cohort="main", lending=at_once),
            tenant("lab", cohort="main"),
            tenant("ops", cohort="main"),
        ],
        [node("a", 4), node("b", 4)],
    )
    world.idle(60)
    world.run("lab", 4, many=2)
    (pod,) = world.wait("ops", 1)
    lines = told(scene(world, pod))
    assert "there is less to lend (cohort main)" in line(lines, "holds it back")
    assert line(lines, "held by") == "lab borrows (8 GPUs)"


def test_who_would_be_evicted_is_named() -> None:
    world = World([tenant("chat", 4, cohort="main"), tenant("lab", cohort="main")], [node("a", 4)])
    at_once = Lending(idle_after_seconds=0)
    world.set_tenants([replace(world.tenants["chat"], lending=at_once), world.tenants["lab"]])
    world.idle(60)
    borrowed = [world.bind(pod, "a") for pod in world.run("lab", 2, many=2)]
    (pod,) = world.wait("chat", 4)
    found = line(told(scene(world, pod)), "takes back")
    assert sorted(found.split(", ")) == [
        f"lab/{victim.name} of lab (2 GPUs)" for victim in borrowed
    ]


def test_a_pod_in_a_namespace_of_no_tenant_is_in_no_queue() -> None:
    world = World([tenant("chat", 4)], [node("a", 4)])
    (pod,) = world.wait("nowhere", 1)
    lines = told(scene(world, pod))
    assert lines[1] == "waiting 0s, in no queue"
    assert line(lines, "holds it back") == "its namespace belongs to no tenant"


def test_a_released_pod_is_told_its_charge_and_its_notice() -> None:
    world = World([tenant("chat", 4)], [node("a", 4)])
    (pod,) = world.run("chat", 2)
    world.now += 840
    notice = Notice("lab/big", "ReclaimPolicy/defaults", world.now, world.now + 60)
    world.state.put_pod(replace(pod, notice=notice, version="3"))
    lines = told(scene(world, pod))
    assert lines[1] == "released 14m ago"
    assert line(lines, "charge") == "2 GPUs of chat, within its guarantee"
    assert line(lines, "notice").endswith("for lab/big (ReclaimPolicy/defaults)")
    found = plain(scene(world, pod))
    assert (found["phase"], found["charge"]["milli"]) == ("Live", 2000)


@pytest.mark.parametrize(
    ("change", "gates", "text"),
    [
        ({"phase": Phase.HELD}, ("example.com/x",), "waits for gates of others (example.com/x)"),
        ({"phase": Phase.LIVE}, (), "was never charged; it counts for chat all the same"),
        ({"phase": Phase.WAITING, "deleted_at": 5}, (), "is being deleted; it counts for chat"),
        ({"phase": Phase.ENDED}, (), "ended"),
    ],
)
def test_every_other_pod_is_told_why_no_quota_holds_it(
    change: dict[str, Any], gates: tuple[str, ...], text: str
) -> None:
    world = World([tenant("chat", 4)], [node("a", 4)])
    (pod,) = world.wait("chat", 1)
    world.state.put_pod(replace(pod, **change))
    assert text in told(scene(world, pod, CLAIM, *gates))[1]


def test_what_a_request_became_is_told() -> None:
    world = World([tenant("chat", 4)], [node("a", 4)])
    (pod,) = world.wait("chat", 1)
    mig = "nvidia.com/mig-1g.10gb"
    claim = replace(
        CLAIM,
        exclusive=False,
        policy=None,
        profiles={"main": "h100-1g.10gb"},
        asked={"main": Original({GPU: "1"}, {})},
        given={"main": {mig: 1}},
    )
    assert told(scene(world, pod, claim))[0].endswith(
        f"asked 1 GPU -> {mig} 1   h100-1g.10gb   by no policy (generation 7c1f)"
    )
    assert told(scene(world, pod, None))[0].endswith("has 1 GPU and no decision of Sluice")


def test_an_ended_pod_has_nothing_more_to_be_told() -> None:
    world = World([tenant("chat", 4)], [node("a", 4)])
    (pod,) = world.wait("chat", 1)
    world.end(pod)
    assert told(scene(world, pod))[1].startswith("ended")


def among(world: World, pod: QuotaPod, *others: tuple[str, str, int]) -> Scene:
    """Return the scene of a pod that asks for GPUs, among the world's nodes and others' pods."""
    taken = [fleets.pod(name, where, {GPU: count}) for name, where, count in others]
    nodes = [
        fleets.ready(fleets_node(each.name, each.allocatable[GPU]))
        for each in world.state.nodes.values()
    ]
    placed = fleets.pod(pod.name, "", dict(pod.shape.gpus), namespace=pod.namespace)
    found = scene(world, pod)
    among = Among(
        fleets.fleet([*nodes, *taken]), Readers(catalog()).pod(placed).pod, PlacementSettings()
    )
    return replace(found, among=among)


def fleets_node(name: str, gpus: int) -> Json:
    """Return a raw node that the world's `node` is."""
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.count": str(gpus)}},
        "spec": {},
        "status": {"allocatable": {GPU: str(gpus), "cpu": "96", "pods": "110"}},
    }


def test_a_released_pod_is_told_what_becomes_of_every_node() -> None:
    world = World([tenant("chat", 8)], [node("a", 2), node("b", 4), node("c", 4), node("d", 1)])
    (pod,) = world.run("chat", 2)
    found = among(world, pod, ("x", "a", 1), ("y", "b", 2))
    lines = told(found)
    assert line(lines, "node") == "none yet"
    assert line(lines, "could go to") == "2 of 4 nodes, best first: b (10), c (9)"
    assert line(lines, "lost") == "1 node: GPU left"
    assert [each.strip() for each in lines if each.startswith("  out:")] == [
        f"out:           1 node: {GPU}: 1 of 1 free, needs 2",
        f"out:           1 node: {GPU}: 1 of 2 free, needs 2",
    ]
    nodes = plain(found)["nodes"]
    assert [each["name"] for each in nodes["standing"]] == ["b", "c"]
    assert nodes["standing"][1]["lostBy"] == "GPU left"
    assert nodes["out"][0] == {
        "reason": f"{GPU}: 1 of 1 free, needs 2",
        "byExtender": False,
        "nodes": ["d"],
    }


def test_a_bound_pod_is_told_its_node_and_how_the_others_would_do_now() -> None:
    world = World([tenant("chat", 8)], [node("a", 2), node("b", 4)])
    (pod,) = world.run("chat", 2)
    found = among(world, world.bind(pod, "b"))
    assert line(told(found), "node") == "b"
    assert "2 of 2 nodes" in line(told(found), "could go to")
    assert plain(found)["node"] == "b"


def test_a_pod_that_waits_is_told_which_nodes_could_hold_it() -> None:
    world = World([tenant("chat", 1, 1)], [node("a", 2), node("b", 4)])
    world.run("chat", 1)
    (pod,) = world.wait("chat", 1)
    lines = told(among(world, pod, ("x", "a", 2)))
    assert line(lines, "could go to") == "1 of 2 nodes, best first: b (10)"
    assert not [each for each in lines if each.startswith("  out:")]


def test_where_no_node_will_do_the_reasons_are_told() -> None:
    world = World([tenant("chat", 8)], [node("a", 2), node("b", 2)])
    (pod,) = world.run("chat", 2)
    lines = told(among(world, pod, ("x", "a", 1), ("y", "b", 1)))
    assert line(lines, "could go to") == "none of 2 nodes"
    assert line(lines, "out") == f"2 nodes: {GPU}: 1 of 2 free, needs 2"


def test_a_long_list_of_nodes_is_cut_off() -> None:
    world = World([tenant("chat", 8)], [node(f"n{number}", 2) for number in range(7)])
    (pod,) = world.run("chat", 2)
    assert line(told(among(world, pod)), "could go to").endswith("n4 (4), ...")
