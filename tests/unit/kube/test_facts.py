# SPDX-License-Identifier: Apache-2.0
"""The picture of the cluster, from watches of a fake API server."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from policies.model.facts import NamespaceFacts, NodeFacts
from reconciler.kube.client import Client
from reconciler.kube.facts import (
    ClusterWatch,
    FactsSettings,
    namespace_facts,
    node_view,
    watch_cluster,
)
from tests.support.fake_apiserver import FakeApiServer, Fault
from tests.support.running import running
from tests.support.waiting import until

NAMESPACES = "/api/v1/namespaces"
NODES = "/api/v1/nodes"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def is_gpu(name: str) -> bool:
    return name.startswith("nvidia.com/")


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "status": {"phase": "Active"}}


def node(name: str, gpus: object = "8", heartbeat: str = "", **labels: str) -> dict[str, Any]:
    allocatable = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": gpus}
    return {
        "metadata": {"name": name, "labels": labels, "managedFields": [{"manager": "kubelet"}]},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "lastHeartbeatTime": heartbeat}],
        },
    }


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(client: Client, clock: Clock) -> ClusterWatch:
    return watch_cluster(client, is_gpu, FactsSettings(clock=clock))


async def test_facts_hold_namespaces_and_nodes(fake: FakeApiServer, watch: ClusterWatch) -> None:
    item = namespace("team", tier="gold")
    item["metadata"]["annotations"] = {"owner": "x"}
    fake.put(NAMESPACES, item)
    fake.put(NODES, node("n2", zone="b"))
    fake.put(NODES, node("n1"))
    async with running(watch.run()):
        await watch.wait_synced()
        facts = watch.facts(NOW)
    assert facts.cluster.namespaces == {
        "team": NamespaceFacts("team", {"tier": "gold"}, {"owner": "x"})
    }
    assert facts.cluster.nodes == (
        NodeFacts("n1", {}, {"nvidia.com/gpu": 8}),
        NodeFacts("n2", {"zone": "b"}, {"nvidia.com/gpu": 8}),
    )
    assert (facts.now, facts.stale_seconds) == (NOW, None)


async def test_before_the_first_list_nothing_is_known_and_facts_say_so(
    watch: ClusterWatch, clock: Clock
) -> None:
    clock.ahead = 7.5
    facts = watch.facts(NOW)
    assert not watch.is_synced
    assert (facts.cluster.namespaces, facts.cluster.nodes) == ({}, None)
    assert facts.stale_seconds == 7


async def test_a_cluster_without_nodes_is_known_to_have_none(
    fake: FakeApiServer, watch: ClusterWatch
) -> None:
    assert watch.cluster().nodes is None
    async with running(watch.run()):
        await watch.wait_synced()
        assert watch.cluster().nodes == ()


async def test_heartbeats_make_no_new_picture_and_relevant_changes_do(
    fake: FakeApiServer, watch: ClusterWatch
) -> None:
    fake.put(NODES, node("n1", heartbeat="1"))
    async with running(watch.run()):
        await watch.wait_synced()
        await fake.wait_watches(2)
        before = watch.cluster()
        fake.put(NODES, node("n1", heartbeat="2"))
        await until(lambda: watch.counters["nodes"].events == 1)
        assert watch.cluster() is before
        fake.put(NODES, node("n1", gpus="7"))
        await until(lambda: watch.cluster() is not before)
        assert watch.cluster().nodes == (NodeFacts("n1", {}, {"nvidia.com/gpu": 7}),)
        later = watch.cluster()
        fake.put(NAMESPACES, namespace("team"))
        await until(lambda: watch.cluster() is not later)


async def test_facts_are_stale_once_a_watch_is_out_of_touch_for_too_long(
    fake: FakeApiServer, watch: ClusterWatch, clock: Clock
) -> None:
    fake.put(NODES, node("n1"))
    async with running(watch.run()):
        await watch.wait_synced()
        await fake.wait_watches(2)
        fake.faults.append(Fault("GET", NODES, 503, "down", times=1_000_000))
        fake.cut()
        clock.ahead = 29.0
        assert watch.facts(NOW).stale_seconds is None
        clock.ahead = 45.0
        stale = watch.facts(NOW)
        assert stale.stale_seconds is not None
        assert 45 <= stale.stale_seconds < 60
        assert stale.cluster.nodes == (NodeFacts("n1", {}, {"nvidia.com/gpu": 8}),)


async def test_one_watch_that_ends_in_an_error_of_ours_ends_both(
    fake: FakeApiServer, client: Client
) -> None:
    def broken(name: str) -> bool:
        raise RuntimeError(name)

    fake.put(NODES, node("n1"))
    with pytest.raises(ExceptionGroup):
        await watch_cluster(client, broken).run()


@pytest.mark.parametrize(
    ("value", "count"),
    [("8", 8), (8, 8), ("8k", 8000), ("7.9", 7), ("0", 0), ("-1", 0), ("x", 0), (None, 0), ([], 0)],
)
def test_allocatable_counts_are_whole_and_what_cannot_be_one_is_none(
    value: object, count: int
) -> None:
    seen = node_view(is_gpu)(node("n1", gpus=value))
    assert seen is not None
    assert seen.allocatable == {"nvidia.com/gpu": count}


@pytest.mark.parametrize("item", [{}, {"metadata": None}, {"metadata": {"labels": []}}])
def test_odd_objects_do_not_break_the_views(item: dict[str, Any]) -> None:
    assert namespace_facts(item) == NamespaceFacts("", {}, {})
    assert node_view(is_gpu)(item) == NodeFacts("", {}, {})
