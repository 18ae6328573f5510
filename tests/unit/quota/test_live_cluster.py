# SPDX-License-Identifier: Apache-2.0
"""What the leader's picture takes up when answers and watches overtake each other."""

import asyncio
from typing import Any

import pytest

from policies.model.keys import QUOTA_GATE
from policies.quota.pods import Phase
from reconciler.cluster import HistoryError, LiveCluster
from reconciler.kube.client import Client
from reconciler.kube.store import Key
from tests.support.builders import catalog, container, pod, policy_set
from tests.support.fake_apiserver import FakeApiServer
from tests.support.running import running
from tests.support.waiting import until

PODS = "/api/v1/pods"
KEY = Key("chat", "llm")


def stored(*gates: str) -> dict[str, Any]:
    raw = pod(container(gpus="1"), schedulingGates=[{"name": gate} for gate in gates])
    raw["metadata"]["uid"] = "uid-1"
    return raw


def phase(cluster: LiveCluster) -> Phase | None:
    found = cluster.state.pod("uid-1")
    return None if found is None else found.phase


@pytest.fixture
def cluster(client: Client) -> LiveCluster:
    return LiveCluster(client, policy_set, catalog())


async def test_an_answer_counts_before_the_watch_shows_it_and_older_events_do_not(
    fake: FakeApiServer, cluster: LiveCluster
) -> None:
    fake.put(PODS, stored(QUOTA_GATE))
    async with running(cluster.run()):
        await cluster.wait_synced()
        fake.is_silent = True
        fake.put(PODS, stored(QUOTA_GATE))
        answer = fake.put(PODS, stored())
        cluster.absorb(answer)
        assert phase(cluster) is Phase.LIVE
        fake.is_silent = False
        await until(lambda: (p := cluster.pod(KEY)) is not None and p.phase is Phase.LIVE)
        assert phase(cluster) is Phase.LIVE


@pytest.mark.parametrize("version", ["", "x1", "٣"])
async def test_an_answer_without_a_version_is_left_to_the_watch(
    fake: FakeApiServer, cluster: LiveCluster, version: str
) -> None:
    answer = fake.put(PODS, stored(QUOTA_GATE))
    async with running(cluster.run()):
        await cluster.wait_synced()
        answer["spec"]["schedulingGates"] = []
        answer["metadata"]["resourceVersion"] = version
        cluster.absorb(answer)
        assert phase(cluster) is Phase.WAITING


async def test_all_begins_anew_when_the_server_has_gone_back_in_time(
    fake: FakeApiServer, cluster: LiveCluster
) -> None:
    """Else what was absorbed would hide the pod, gated again, for as long as versions are lower."""
    fake.version = 9000
    fake.put(PODS, stored(QUOTA_GATE))
    task = asyncio.create_task(cluster.run())
    await cluster.wait_synced()
    await fake.wait_watches(3)
    cluster.absorb(fake.put(PODS, stored()))
    fake.compact()
    fake.version = 500
    fake.put(PODS, stored(QUOTA_GATE))
    fake.cut()
    with pytest.raises(BaseExceptionGroup) as raised:
        await asyncio.wait_for(task, 5.0)
    assert raised.group_contains(HistoryError)
