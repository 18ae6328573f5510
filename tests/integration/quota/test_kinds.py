# SPDX-License-Identifier: Apache-2.0
"""Pools, work that is never taken back, and reservations, by the real scheduler's nodes."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from policies.quota.charge import read_charge
from reconciler.kube.client import Client
from reconciler.kube.resources import PODS, Resource, Selection, Target
from tests.controlplane import ControlPlane, nodes
from tests.integration.conftest import MakeNamespace
from tests.support.candidates import candidates

_GATE: Final = "sluice.dev/quota"
_NODES: Final = Resource("", "v1", "nodes")
_PRODUCT: Final = "nvidia.com/gpu.product"
_LONG_GRACE: Final = 100_000
_RESERVED_SECONDS: Final = 2.5
"""More than reserveAfter, and than what timestamps leave out."""

_SECONDS: Final = 30.0

_POOLS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: {{names: [{name}]}}
  quota:
    gpus: {{guarantee: 0, ceiling: 0}}
    pools:
      a100: {{guarantee: 1, ceiling: 1}}
      h100: {{guarantee: 1, ceiling: 1}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {{name: a100}}
spec: {{nodes: {{selector: {{matchLabels: {{nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}}}}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {{name: h100}}
spec: {{nodes: {{selector: {{matchLabels: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}}}}}}}
"""
_BORROWING: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: {{names: [{name}]}}
  quota: {{gpus: {{guarantee: 1, ceiling: 3}}}}
"""
_RESERVING: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: {{names: [{name}]}}
  quota: {{gpus: {{guarantee: 8, ceiling: 8}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {{name: cluster}}
spec: {{queue: {{reserveAfter: 1s}}}}
"""


@pytest.fixture
def pair(control_plane: ControlPlane) -> Iterator[str]:
    """A node of two GPUs that ends with the test."""
    name = f"pair-{secrets.token_hex(4)}"
    control_plane.create_nodes([nodes.whole(name, count=2)])
    yield name
    control_plane.kubectl("delete", "node", name, "--ignore-not-found")


async def create(client: Client, namespace: str, name: str, gpus: int = 1, **parts: Any) -> None:
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "main", "image": "registry.test/image", "resources": limits}
    spec = {
        "containers": [container],
        "schedulingGates": [{"name": _GATE}],
        "tolerations": [{"operator": "Exists"}],
        **parts,
    }
    body = {"metadata": {"name": name}, "spec": spec}
    await client.create(Target(PODS, namespace=namespace), body)


Pods = Mapping[str, Mapping[str, Any]]


async def until(client: Client, namespace: str, holds: Callable[[Pods], bool]) -> Pods:
    found: Pods = {}
    try:
        async with asyncio.timeout(_SECONDS):
            while True:
                page: Any = await client.list_page(Selection(PODS, namespace), limit=100)
                found = {pod["metadata"]["name"]: pod for pod in page.items}
                if holds(found):
                    return found
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not so within {_SECONDS} s: { {n: reason(p) for n, p in found.items()} }")


def is_waiting(pod: Mapping[str, Any]) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def reason(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("annotations", {}).get("state.sluice.dev/reason", ""))


def pool(pod: Mapping[str, Any]) -> str:
    charge = read_charge(pod["metadata"]["annotations"]["state.sluice.dev/charge"])
    assert charge is not None
    return charge.pool


async def test_each_pod_is_pinned_to_the_pool_that_it_is_charged_to(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    namespace = make_namespace()
    async with candidates(control_plane, tmp_path) as standing:
        standing.serve(_POOLS.format(name=namespace))
        await standing.stand()
        for number in range(3):
            await create(client, namespace, f"p{number}")
        pods = await until(
            client,
            namespace,
            lambda pods: (
                sum(bool(pod["spec"].get("nodeName")) for pod in pods.values()) == 2
                and any(reason(pod) for pod in pods.values())
            ),
        )
        placed = {pool(p): p["spec"]["nodeName"] for p in pods.values() if not is_waiting(p)}
        assert placed.keys() == {"a100", "h100"}
        for name, node in placed.items():
            labels: Any = (await client.get(Target(_NODES, node)))["metadata"]
            assert name.upper() in labels["labels"][_PRODUCT]
        (waits,) = (pod for pod in pods.values() if is_waiting(pod))
        assert reason(waits).startswith("Ceiling: ")


async def test_what_may_never_be_taken_back_goes_within_the_guarantee_and_the_rest_may_borrow(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    namespace = make_namespace()
    async with candidates(control_plane, tmp_path) as standing:
        standing.serve(_BORROWING.format(name=namespace))
        await standing.stand()
        await create(client, namespace, "firm", terminationGracePeriodSeconds=_LONG_GRACE)
        await until(client, namespace, lambda pods: not is_waiting(pods["firm"]))
        await create(client, namespace, "firmer", terminationGracePeriodSeconds=_LONG_GRACE)
        pods = await until(client, namespace, lambda pods: bool(reason(pods["firmer"])))
        assert reason(pods["firmer"]).startswith("FixedGuarantee: ")
        await create(client, namespace, "loose")
        pods = await until(client, namespace, lambda pods: not is_waiting(pods["loose"]))
        assert is_waiting(pods["firmer"])
        for name in ("firm", "firmer"):
            control_plane.kubectl(
                "delete", "pod", name, "-n", namespace, "--force", "--grace-period=0"
            )


async def test_room_is_kept_for_a_large_pod_that_has_waited_long_and_small_ones_wait_behind_it(
    control_plane: ControlPlane,
    client: Client,
    make_namespace: MakeNamespace,
    pair: str,
    tmp_path: Path,
) -> None:
    namespace = make_namespace()
    there: Any = {"nodeSelector": {"kubernetes.io/hostname": pair}}
    async with candidates(control_plane, tmp_path) as standing:
        standing.serve(_RESERVING.format(name=namespace))
        await standing.stand()
        await create(client, namespace, "first", **there)
        await until(client, namespace, lambda pods: bool(pods["first"]["spec"].get("nodeName")))
        await create(client, namespace, "large", gpus=2, **there)
        await until(client, namespace, lambda pods: waited(pods["large"]) > _RESERVED_SECONDS)
        await create(client, namespace, "small", **there)
        pods = await until(client, namespace, lambda pods: bool(reason(pods["small"])))
        assert reason(pods["small"]).startswith("Reserved: ")
        assert reason(pods["small"]).endswith(f"kept for pod {namespace}/large")
        await client.delete(Target(PODS, "first", namespace))
        pods = await until(client, namespace, lambda pods: not is_waiting(pods["large"]))
        assert is_waiting(pods["small"])
        await client.delete(Target(PODS, "large", namespace))
        await until(client, namespace, lambda pods: not is_waiting(pods["small"]))


def waited(pod: Mapping[str, Any]) -> float:
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return (datetime.now(UTC) - created).total_seconds()
