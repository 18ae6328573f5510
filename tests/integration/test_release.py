# SPDX-License-Identifier: Apache-2.0
"""The release loop on a real control plane: pods lose the gate and its scheduler binds them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from reconciler.kube.access import KubeconfigAccess
from reconciler.kube.client import Client
from reconciler.kube.errors import ApiError
from reconciler.kube.reflector import Reflector
from reconciler.kube.resources import PODS, Selection, Target
from reconciler.quota.plan import GatedPod
from reconciler.quota.release import ReleaseHooks, ReleaseLoop
from reconciler.quota.view import UNSCHEDULED_PODS, gated_pod
from tests.controlplane import ControlPlane
from tests.support.running import running
from tests.support.waiting import until

GATE = "sluice.dev/quota"
OTHER = "example.com/topology"
LONG = 30.0


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(KubeconfigAccess(str(control_plane.kubeconfig))) as opened:
        yield opened


class Releases:
    """What the loops of a test have done."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.failures: list[ApiError] = []

    def hooks(self) -> ReleaseHooks:
        return ReleaseHooks(
            lambda pod: self.names.append(pod.name), lambda _, error: self.failures.append(error)
        )


@asynccontextmanager
async def releasing(
    control_plane: ControlPlane, namespace: str, loops: int = 1
) -> AsyncIterator[tuple[Releases, list[Reflector[GatedPod]]]]:
    """So many replicas of the loop, each with its own client and watch, for one namespace."""
    releases, reflectors = Releases(), list[Reflector[GatedPod]]()
    async with AsyncExitStack() as stack:
        for _ in range(loops):
            source = KubeconfigAccess(str(control_plane.kubeconfig))
            own = await stack.enter_async_context(Client(source))
            pods = Reflector(own, UNSCHEDULED_PODS, gated_pod)
            loop = ReleaseLoop(own, pods, namespace.__eq__, hooks=releases.hooks())
            await stack.enter_async_context(running(pods.run()))
            await stack.enter_async_context(running(loop.run()))
            reflectors.append(pods)
        for pods in reflectors:
            await pods.synced.wait()
        yield releases, reflectors


async def create(client: Client, namespace: str, name: str, *gates: str) -> None:
    container = {"name": "main", "image": "registry.test/image"}
    body = {
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "schedulingGates": [{"name": gate} for gate in gates],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    await client.create(Target(PODS, namespace=namespace), body)


async def look(client: Client, namespace: str) -> dict[str, dict[str, Any]]:
    page: Any = await client.list_page(Selection(PODS, namespace), limit=5000)
    return {item["metadata"]["name"]: item for item in page.items}


async def wait_bound(client: Client, namespace: str, names: list[str]) -> None:
    async with asyncio.timeout(LONG):
        while True:
            pods = await look(client, namespace)
            if all(pods[name]["spec"].get("nodeName") for name in names):
                return
            await asyncio.sleep(0.1)


async def test_gated_pods_are_released_and_bound_by_the_scheduler(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    await create(client, namespace, "before", GATE)
    async with releasing(control_plane, namespace) as (releases, [pods]):
        await create(client, namespace, "after", GATE)
        await wait_bound(client, namespace, ["before", "after"])
        await until(lambda: sorted(releases.names) == ["after", "before"])
        await until(lambda: len(pods) == 0)
    found = await look(client, namespace)
    assert not any(pod["spec"].get("schedulingGates") for pod in found.values())
    assert releases.failures == []


async def test_pods_with_gates_of_others_wait_until_ours_is_the_last(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    await create(client, namespace, "both", OTHER, GATE)
    await create(client, namespace, "foreign", OTHER)
    async with releasing(control_plane, namespace) as (releases, _):
        await create(client, namespace, "probe", GATE)
        await wait_bound(client, namespace, ["probe"])
        found = await look(client, namespace)
        assert [gate["name"] for gate in found["both"]["spec"]["schedulingGates"]] == [OTHER, GATE]
        assert found["foreign"]["spec"]["schedulingGates"] == [{"name": OTHER}]
        remove = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
        await client.patch_json(Target(PODS, "both", namespace), remove)
        await wait_bound(client, namespace, ["both"])
    assert releases.names == ["probe", "both"]


async def test_namespaces_that_are_not_guarded_are_left_alone(
    control_plane: ControlPlane, client: Client, make_namespace: Any
) -> None:
    guarded, other = make_namespace(), make_namespace()
    await create(client, other, "mine", GATE)
    async with releasing(control_plane, guarded) as (releases, [pods]):
        await create(client, guarded, "probe", GATE)
        await wait_bound(client, guarded, ["probe"])
        assert [pod.name for pod in pods.values()] == ["mine"]
    found = await look(client, other)
    assert found["mine"]["spec"]["schedulingGates"] == [{"name": GATE}]
    assert releases.names == ["probe"]


async def test_a_pod_that_is_being_deleted_keeps_its_gate(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    """A finalizer keeps it; an unbound pod would else be gone at once."""
    await create(client, namespace, "ending", GATE)
    hold = [{"op": "add", "path": "/metadata/finalizers", "value": ["sluice.test/hold"]}]
    ending = Target(PODS, "ending", namespace)
    await client.patch_json(ending, hold)
    await client.delete(ending)
    async with releasing(control_plane, namespace) as (releases, _):
        await create(client, namespace, "probe", GATE)
        await wait_bound(client, namespace, ["probe"])
        found = await look(client, namespace)
        assert found["ending"]["spec"]["schedulingGates"] == [{"name": GATE}]
        await client.patch_json(ending, [{"op": "remove", "path": "/metadata/finalizers"}])
    assert releases.names == ["probe"]


async def test_several_replicas_release_each_of_many_pods_exactly_once(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    names = [f"p{number}" for number in range(200)]
    limit = asyncio.Semaphore(16)

    async def one(name: str) -> None:
        async with limit:
            await create(client, namespace, name, GATE)

    async with releasing(control_plane, namespace, loops=3) as (releases, reflectors):
        await asyncio.gather(*(one(name) for name in names))
        await wait_bound(client, namespace, names)
        await until(lambda: not any(len(pods) for pods in reflectors))
    assert sorted(releases.names) == sorted(names)
    assert releases.failures == []


async def test_a_restarted_api_server_stops_no_release(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    names = [f"p{number}" for number in range(30)]
    async with releasing(control_plane, namespace) as (releases, _):
        for name in names:
            await create(client, namespace, name, GATE)
            if name == "p15":
                await asyncio.to_thread(control_plane.components.kill_component, "kube-apiserver")
                await asyncio.to_thread(control_plane.components.start_component, "kube-apiserver")
        await wait_bound(client, namespace, names)
    assert set(releases.names) <= set(names)
