# SPDX-License-Identifier: Apache-2.0
"""Gangs that are declared by upstream's PodGroups, on an API server that serves them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from reconciler.kube.client import Client
from reconciler.kube.resources import PODS, Resource, Selection, Target
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.components import Options
from tests.support.candidates import candidates

_NAMESPACE: Final = "default"
_GATE: Final = "sluice.dev/quota"
_REASON: Final = "state.sluice.dev/reason"
_GROUPS: Final = Resource("scheduling.k8s.io", "v1beta1", "podgroups")
_SERVED: Final = Options(
    apiserver_arguments=(
        "--feature-gates=GenericWorkload=true",
        "--runtime-config=scheduling.k8s.io/v1beta1=true",
    )
)
_SECONDS: Final = 30.0


@pytest.fixture(scope="module")
def control_plane(binaries: Mapping[str, Path]) -> Iterator[ControlPlane]:
    with ControlPlane(binaries, _SERVED) as started:
        started.create_nodes([nodes.whole("node")])
        account = ("--for=create", "serviceaccount/default", "-n", _NAMESPACE, "--timeout=30s")
        started.kubectl("wait", *account)
        yield started


async def create(client: Client, name: str, group: str) -> None:
    limits = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "registry.test/image", "resources": {"limits": limits}}
    spec = {
        "containers": [container],
        "schedulingGates": [{"name": _GATE}],
        "schedulingGroup": {"podGroupName": group},
        "tolerations": [{"operator": "Exists"}],
    }
    body = {"metadata": {"name": name}, "spec": spec}
    await client.create(Target(PODS, namespace=_NAMESPACE), body)


async def gated(client: Client) -> dict[str, str]:
    """Return the pods that wait, each with why."""
    page: Any = await client.list_page(Selection(PODS, _NAMESPACE), limit=100)
    return {
        pod["metadata"]["name"]: pod["metadata"].get("annotations", {}).get(_REASON, "")
        for pod in page.items
        if pod["spec"].get("schedulingGates")
    }


async def until_gated(client: Client, holds: Callable[[Mapping[str, str]], bool]) -> dict[str, str]:
    async with asyncio.timeout(_SECONDS):
        while True:
            found = await gated(client)
            if holds(found):
                return found
            await asyncio.sleep(0.05)


async def test_a_pod_group_is_released_when_as_many_are_there_as_it_says_and_never_before(
    control_plane: ControlPlane, client: Client, tmp_path: Path
) -> None:
    policy = {"gang": {"minCount": 3}}
    group = {"metadata": {"name": "trio"}, "spec": {"schedulingPolicy": policy}}
    await client.create(Target(_GROUPS, namespace=_NAMESPACE), group)
    async with candidates(control_plane, tmp_path) as standing:
        standing.allow(_NAMESPACE, 4)
        await standing.stand()
        await create(client, "one", "trio")
        await create(client, "two", "trio")
        found = await until_gated(client, lambda pods: all(pods.values()))
        assert found.keys() == {"one", "two"}
        assert all("2 of 3" in reason for reason in found.values()), found
        await create(client, "three", "trio")
        await until_gated(client, lambda pods: not pods)
