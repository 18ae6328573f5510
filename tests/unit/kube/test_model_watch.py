# SPDX-License-Identifier: Apache-2.0
"""The model of placement is told of the cluster, and others are told who has left a node."""

from typing import Any

import pytest

from policies.placement.model import Model, Release
from reconciler.kube.client import Client
from reconciler.placement.watching import ModelWatch
from tests.support.fake_apiserver import FakeApiServer
from tests.support.running import running
from tests.support.waiting import until
from tests.unit.extender.building import CATALOG, READER, raw_pod, shared

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"


def on_node(name: str, phase: str = "Running") -> dict[str, Any]:
    raw = raw_pod(name)
    spec = {**raw["spec"], "nodeName": "n0"}
    return {**raw, "spec": spec, "status": {"phase": phase}}


@pytest.fixture
def model() -> Model:
    return Model(CATALOG)


@pytest.fixture
def watch(client: Client, model: Model) -> ModelWatch:
    return ModelWatch(client, model, READER)


async def test_who_leaves_a_node_is_told_once_whether_it_ends_or_is_deleted(
    fake: FakeApiServer, model: Model, watch: ModelWatch
) -> None:
    left: list[str] = []
    watch.on_left(left.append)
    fake.put(NODES, dict(shared("n0")))
    for name in ("ends", "goes", "stays"):
        fake.put(PODS, on_node(name))
    fake.put(PODS, raw_pod("waits"))
    async with running(watch.run()):
        await watch.wait_synced()
        assert left == []
        fake.put(PODS, on_node("ends", "Succeeded"))
        await until(lambda: left == ["n0"])
        fake.remove(PODS, "ends", "team-a")
        fake.remove(PODS, "waits", "team-a")
        fake.remove(PODS, "goes", "team-a")
        await until(lambda: len(left) > 1)
        assert left == ["n0", "n0"]
        occupancy = model.occupancy("n0")
        assert occupancy is not None
        assert set(occupancy.pods) == {raw_pod("stays")["metadata"]["uid"]}


@pytest.mark.parametrize("comes", [True, False])
async def test_a_pod_that_does_not_come_to_the_node_it_was_given_is_told_apart(
    fake: FakeApiServer, model: Model, watch: ModelWatch, *, comes: bool
) -> None:
    left: list[str] = []
    released: list[Release] = []
    watch.on_left(left.append)
    watch.on_released(released.append)
    for name in ("n0", "n1"):
        fake.put(NODES, dict(shared(name)))
    fake.put(PODS, raw_pod("p"))
    async with running(watch.run()):
        await watch.wait_synced()
        model.assume(READER.read(raw_pod("p")), "n1", now=100.0)
        if comes:
            fake.put(PODS, on_node("p"))
        else:
            fake.remove(PODS, "p", "team-a")
        await until(lambda: bool(released))
    assert released == [Release("n1", 100.0)]
    assert left == []
    assert model.node_of("uid-p") == ("n0" if comes else None)
