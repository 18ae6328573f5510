# SPDX-License-Identifier: Apache-2.0
"""Namespaces that another tenant owns than before, as the leader's picture shows and tells them."""

from dataclasses import replace
from typing import Any

import pytest

from policies.model.keys import QUOTA_GATE
from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.policyset import PolicySet
from policies.model.tenant import Tenant
from reconciler.cluster import LiveCluster, Move
from reconciler.kube.client import Client
from reconciler.kube.events import EventType, Regarding
from reconciler.quota.moved import MoveTeller, note_of
from tests.support.builders import catalog, container, pod
from tests.support.fake_apiserver import FakeApiServer
from tests.support.planning import base, tenant
from tests.support.running import running
from tests.support.waiting import until

NAMESPACES, PODS = "/api/v1/namespaces", "/api/v1/pods"


def selecting(name: str) -> Tenant:
    wanted = LabelSelector((Expression("tenant", Operator.IN, (name,)),))
    return replace(tenant(name, 8, 8), namespaces=frozenset(), selector=wanted)


class Cluster:
    """A picture of a server with one pod, in a namespace that labels give to tenants."""

    def __init__(self, fake: FakeApiServer, client: Client) -> None:
        self.fake = fake
        self.policies = self.of("a", "b")
        self.live = LiveCluster(client, lambda: self.policies, catalog())
        self.moves: list[Move] = []
        self.live.on_move(self.moves.append)

    def of(self, *names: str, owned: Tenant | None = None) -> PolicySet:
        tenants = tuple(map(selecting, names))
        by_name = {each.name: each for each in (*tenants, *([owned] if owned else ()))}
        named = dict.fromkeys(owned.namespaces, owned) if owned else {}
        return replace(
            base(), tenants=by_name, tenant_by_namespace=named, selecting_tenants=tenants
        )

    def label(self, namespace: str, **labels: str) -> None:
        self.fake.put(NAMESPACES, {"metadata": {"name": namespace, "labels": labels}})

    def wait(self, namespace: str) -> None:
        raw: dict[str, Any] = pod(container(gpus="1"), namespace=namespace)
        raw["metadata"]["uid"] = f"uid-{namespace}"
        raw["spec"]["schedulingGates"] = [{"name": QUOTA_GATE}]
        self.fake.put(PODS, raw)

    def counts_for(self, name: str) -> bool:
        return self.live.state.ledger.waiting(name).count == 1


@pytest.fixture
def cluster(fake: FakeApiServer, client: Client) -> Cluster:
    made = Cluster(fake, client)
    made.label("ns", tenant="a")
    made.wait("ns")
    return made


async def test_pods_count_for_the_tenant_that_a_namespace_is_moved_to_and_it_is_told(
    cluster: Cluster,
) -> None:
    async with running(cluster.live.run()):
        await cluster.live.wait_synced()
        assert cluster.counts_for("a")
        assert not cluster.moves
        cluster.label("ns", tenant="a", other="label")
        cluster.label("ns", tenant="b")
        await until(lambda: cluster.counts_for("b"))
        cluster.label("ns")
        await until(lambda: len(cluster.moves) > 1)
    assert cluster.moves == [Move("ns", "a", "b"), Move("ns", "b", "")]


async def test_policies_that_give_a_namespace_to_another_tenant_move_it(cluster: Cluster) -> None:
    async with running(cluster.live.run()):
        await cluster.live.wait_synced()
        cluster.policies = cluster.of("a", "b", owned=tenant("ns", 1, 1))
        cluster.live.refresh_policies()
        assert cluster.counts_for("ns")
        both = selecting("a")
        cluster.policies = replace(
            cluster.of("a", "b"), selecting_tenants=(both, replace(both, name="b"))
        )
        cluster.live.refresh_policies()
    assert cluster.moves == [Move("ns", "a", "ns"), Move("ns", "ns", "", ("a", "b"))]


async def test_a_namespace_that_appears_or_goes_or_has_no_pods_has_not_moved(
    cluster: Cluster,
) -> None:
    async with running(cluster.live.run()):
        await cluster.live.wait_synced()
        cluster.label("empty", tenant="a")
        cluster.label("empty", tenant="b")
        cluster.wait("late")
        await until(lambda: "late" in cluster.live.state.inhabited)
        cluster.label("late", tenant="b")
        await until(lambda: cluster.counts_for("b"))
        cluster.fake.remove(NAMESPACES, "ns")
        await until(lambda: not cluster.counts_for("a"))
    assert not cluster.moves


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[Regarding, str, str, EventType]] = []

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        type: EventType,  # noqa: A002 - the API's own name
        action: str,
    ) -> None:
        self.events.append((regarding, reason, note, type))


def test_the_event_stands_among_those_of_the_namespace() -> None:
    recorder = Recorder()
    MoveTeller(recorder).tell(Move("ns", "a", "b"))
    MoveTeller(recorder).tell(Move("ns", "b", ""))
    regarding = Regarding("Namespace", "ns", "ns", "")
    note = "belonged to tenant a; all of its GPU pods count for tenant b now"
    assert recorder.events[0] == (regarding, "TenantChanged", note, EventType.NORMAL)
    assert recorder.events[1][3] is EventType.WARNING


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (Move("ns", "", "b"), "belonged to no tenant; all of its GPU pods count for tenant b"),
        (Move("ns", "a", ""), "belonged to tenant a and belongs to no tenant now: what was"),
        (Move("ns", "a", "", ("b", "c")), "tenant a and is claimed by tenants b and c now: what"),
    ],
)
def test_the_note_names_both_tenants(move: Move, said: str) -> None:
    assert said in note_of(move)
