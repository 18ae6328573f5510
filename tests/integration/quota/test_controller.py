# SPDX-License-Identifier: Apache-2.0
"""The quota controller and its election on the real control plane, without the webhook."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from policies.quota.charge import ChargeRecord, read_charge
from reconciler.kube.client import Client
from reconciler.kube.errors import ConflictError
from reconciler.kube.resources import PODS, Selection, Target
from reconciler.quota.patches import release_patch
from tests.controlplane import ControlPlane
from tests.integration.conftest import MakeNamespace
from tests.support.candidates import candidates

GATE: Final = "sluice.dev/quota"
OTHER: Final = "example.com/topology"
LONG: Final = 30.0


async def create(client: Client, namespace: str, name: str, *gates: str, gpus: int = 1) -> None:
    limits = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "registry.test/image", "resources": {"limits": limits}}
    body = {
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "schedulingGates": [{"name": gate} for gate in gates or (GATE,)],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    await client.create(Target(PODS, namespace=namespace), body)


async def look(client: Client, namespace: str) -> dict[str, dict[str, Any]]:
    page: Any = await client.list_page(Selection(PODS, namespace), limit=5000)
    return {item["metadata"]["name"]: item for item in page.items}


def charge(pod: Mapping[str, Any]) -> ChargeRecord | None:
    return read_charge(pod["metadata"].get("annotations", {}).get("state.sluice.dev/charge"))


def is_released(pod: Mapping[str, Any]) -> bool:
    return not pod["spec"].get("schedulingGates")


async def until_pods(
    client: Client, namespace: str, holds: Callable[[dict[str, dict[str, Any]]], bool]
) -> dict[str, dict[str, Any]]:
    pods: dict[str, dict[str, Any]] = {}
    try:
        async with asyncio.timeout(LONG):
            while True:
                pods = await look(client, namespace)
                if holds(pods):
                    return pods
                await asyncio.sleep(0.05)
    except TimeoutError:
        shown = {
            name: (is_released(p), p["metadata"].get("annotations")) for name, p in pods.items()
        }
        pytest.fail(f"not so within {LONG} s: {shown}")


def released(pods: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {name for name, pod in pods.items() if is_released(pod)}


async def test_pods_go_up_to_the_ceiling_with_their_charge_and_the_next_when_one_ends(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    namespace = make_namespace()
    async with candidates(control_plane, tmp_path) as standing:
        standing.allow(namespace, 3)
        await standing.stand()
        for number in range(5):
            await create(client, namespace, f"p{number}")
        pods = await until_pods(client, namespace, lambda pods: len(released(pods)) >= 3)
        pods = await until_pods(
            client,
            namespace,
            lambda pods: all(
                is_released(p) or "state.sluice.dev/reason" in p["metadata"].get("annotations", {})
                for p in pods.values()
            ),
        )
        assert len(released(pods)) == 3
        charged = [charge(pods[name]) for name in released(pods)]
        assert [c.amount.milli for c in charged if c] == [1000] * 3
        waiting = next(p for name, p in pods.items() if name not in released(pods))
        reason = waiting["metadata"]["annotations"]["state.sluice.dev/reason"]
        assert reason.startswith("Ceiling: ")
        gone = released(pods).pop()
        await client.delete(Target(PODS, gone, namespace))
        pods = await until_pods(
            client, namespace, lambda pods: gone not in pods and len(released(pods)) == 3
        )
        for name in released(pods):
            assert "state.sluice.dev/reason" not in pods[name]["metadata"]["annotations"]


async def test_a_pod_with_a_gate_of_others_waits_for_it_and_takes_no_quota(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    namespace = make_namespace()
    async with candidates(control_plane, tmp_path) as standing:
        standing.allow(namespace, 1)
        await standing.stand()
        await create(client, namespace, "held", OTHER, GATE)
        await create(client, namespace, "free")
        pods = await until_pods(client, namespace, lambda pods: is_released(pods["free"]))
        assert charge(pods["held"]) is None
        await client.delete(Target(PODS, "free", namespace))
        await client.patch_merge(
            Target(PODS, "held", namespace), {"spec": {"schedulingGates": [{"name": GATE}]}}
        )
        await until_pods(client, namespace, lambda pods: is_released(pods["held"]))


async def test_of_several_candidates_one_leads_and_when_it_ends_another_goes_on(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    namespace = make_namespace()
    async with candidates(control_plane, tmp_path) as standing:
        standing.allow(namespace, 4)
        async with candidates(control_plane, tmp_path, standing.lease) as first:
            first.policies = standing.policies
            await first.stand()
            await create(client, namespace, "early")
            await until_pods(client, namespace, lambda pods: is_released(pods["early"]))
            await standing.stand()
            await standing.stand()
        await create(client, namespace, "late")
        pods = await until_pods(client, namespace, lambda pods: is_released(pods["late"]))
        assert charge(pods["late"]) is not None


async def test_a_raised_ceiling_lets_waiting_pods_go_and_a_lowered_one_takes_none_back(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    namespace = make_namespace()
    async with candidates(control_plane, tmp_path) as standing:
        standing.allow(namespace, 1)
        await standing.stand()
        for number in range(3):
            await create(client, namespace, f"p{number}")
        await until_pods(client, namespace, lambda pods: len(released(pods)) == 1)
        standing.allow(namespace, 2)
        await until_pods(client, namespace, lambda pods: len(released(pods)) == 2)
        standing.allow(namespace, 1)
        await create(client, namespace, "more")
        pods = await until_pods(
            client,
            namespace,
            lambda pods: (
                "state.sluice.dev/reason" in pods["more"]["metadata"].get("annotations", {})
            ),
        )
        assert len(released(pods)) == 2


async def test_a_release_made_for_an_older_pod_is_a_conflict(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = make_namespace()
    await create(client, namespace, "moved")
    target = Target(PODS, "moved", namespace)
    before: Any = await client.get(target)
    version = before["metadata"]["resourceVersion"]
    await client.patch_merge(target, {"metadata": {"labels": {"moved": "on"}}})
    record = read_charge(
        '{"v":1,"tenant":"t","pool":"","parts":{"1":1},"mib":0,"counts":{},"generation":"g",'
        '"at":1,"exclusive":false,"reclaimable":true,"borrowed":false}'
    )
    assert record is not None
    with pytest.raises(ConflictError):
        await client.patch_merge(
            target,
            release_patch(version, record, {"nodeSelector": {"pool": "a"}}, "Ceiling: x", None),
        )
    after: Any = await client.get(target)
    version = after["metadata"]["resourceVersion"]
    landed: Any = await client.patch_merge(
        target, release_patch(version, record, {"nodeSelector": {"pool": "a"}}, "Ceiling: x", None)
    )
    assert is_released(landed)
    assert landed["spec"]["nodeSelector"] == {"pool": "a"}
    with pytest.raises(ConflictError):
        await client.patch_merge(target, release_patch(version, record, {}, "Ceiling: x", None))
