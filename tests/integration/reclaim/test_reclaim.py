# SPDX-License-Identifier: Apache-2.0
"""Reclaim on the real control plane: notices, Evictions, disruption budgets, who gets the room."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from policies.documents.source import SourceText
from policies.model.policyset import PolicySet
from policies.quota.notice import read_notice
from reconciler.kube.access import KubeconfigAccess
from reconciler.kube.client import Client
from reconciler.kube.elector import ElectorSettings
from reconciler.kube.resources import (
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Selection,
    Target,
)
from reconciler.manager import CONTROLLERS, run_controllers
from reconciler.runtime.audit import AuditLog
from reconciler.runtime.documents import DocumentState
from reconciler.runtime.loading import Compiler
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.surroundings import Surroundings
from tests.controlplane import ControlPlane, nodes
from tests.integration.conftest import MakeNamespace
from tests.support.running import running

GATE: Final = "sluice.dev/quota"
GPU: Final = "nvidia.com/gpu"
LONG: Final = 40.0

_BOTH: Final = tuple(item for item in CONTROLLERS if item[0] in ("quota", "reclaim"))
"""Release and reclaim, as one leader does."""

_DOCUMENTS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {owner}}}
spec:
  namespaces: {{names: [{owner}]}}
  quota: {{gpus: {{guarantee: 2, ceiling: 2}}}}
  cohort: main
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {borrower}}}
spec:
  namespaces: {{names: [{borrower}]}}
  quota: {{gpus: {{ceiling: 9}}}}
  cohort: main
---
apiVersion: sluice.dev/v1alpha1
kind: ReclaimPolicy
metadata: {{name: quick}}
spec: {{cohorts: [main], notice: 2s, pdbTimeout: {pdb_timeout}}}
"""


class Scene:
    """A node of two GPUs, an owner who is guaranteed both, and a borrower."""

    def __init__(self, client: Client, owner: str, borrower: str, audit: Path) -> None:
        self.client = client
        self.owner = owner
        self.borrower = borrower
        self.node = f"reclaim-{secrets.token_hex(4)}"
        self.audit = audit

    async def create(self, namespace: str, name: str, **more: Any) -> None:
        limits = {"limits": {GPU: str(more.get("gpus", 1))}}
        container = {"name": "main", "image": "registry.test/image", "resources": limits}
        metadata = {
            "name": name,
            "labels": more.get("labels", {}),
            "annotations": more.get("annotations", {}),
        }
        spec = {
            "containers": [container],
            "schedulingGates": [{"name": GATE}],
            "tolerations": [{"operator": "Exists"}],
            "nodeSelector": {"kubernetes.io/hostname": self.node},
        }
        await self.client.create(
            Target(PODS, namespace=namespace), {"metadata": metadata, "spec": spec}
        )

    async def protect(self, namespace: str, app: str, **spec: Any) -> None:
        body = {
            "metadata": {"name": app},
            "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
        }
        await self.client.create(Target(POD_DISRUPTION_BUDGETS, namespace=namespace), body)

    async def look(self, namespace: str) -> dict[str, dict[str, Any]]:
        page: Any = await self.client.list_page(Selection(PODS, namespace), limit=500)
        return {item["metadata"]["name"]: item for item in page.items}

    async def until(
        self, namespace: str, holds: Callable[[dict[str, dict[str, Any]]], bool]
    ) -> dict[str, dict[str, Any]]:
        pods: dict[str, dict[str, Any]] = {}
        try:
            async with asyncio.timeout(LONG):
                while True:
                    pods = await self.look(namespace)
                    if holds(pods):
                        return pods
                    await asyncio.sleep(0.05)
        except TimeoutError:
            shown = {name: p["metadata"].get("annotations") for name, p in pods.items()}
            pytest.fail(f"not so within {LONG} s: {shown}\n{self.audit_text()}")

    async def runs(self, namespace: str, *names: str) -> dict[str, dict[str, Any]]:
        return await self.until(
            namespace,
            lambda pods: all(
                n in pods and pods[n]["status"].get("phase") == "Running" for n in names
            ),
        )

    def audit_text(self) -> str:
        return self.audit.read_text() if self.audit.exists() else ""

    async def audited(self, **wanted: str) -> dict[str, Any]:
        async with asyncio.timeout(LONG):
            while True:
                for line in map(json.loads, self.audit_text().splitlines()):
                    if line.items() >= wanted.items():
                        return dict(line)
                await asyncio.sleep(0.05)


class Fixed:
    """Documents that never change."""

    def __init__(self, policies: PolicySet) -> None:
        self._policies = policies

    @property
    def state(self) -> DocumentState:
        return DocumentState(self._policies)

    def current(self) -> PolicySet | None:
        return self._policies

    def subscribe(self, subscriber: Callable[[DocumentState], None]) -> Callable[[], None]:
        return lambda: None


@asynccontextmanager
async def reclaiming(
    control_plane: ControlPlane,
    client: Client,
    make_namespace: MakeNamespace,
    directory: Path,
    pdb_timeout: str = "10m",
    more: str = "",
) -> AsyncIterator[Scene]:
    scene = Scene(client, make_namespace(), make_namespace(), directory / "audit.jsonl")
    text = _DOCUMENTS.format(owner=scene.owner, borrower=scene.borrower, pdb_timeout=pdb_timeout)
    text += more
    compiler, metrics = Compiler(), Metrics()
    policies = compiler.load([SourceText("t.yaml", text.encode())]).policy_set
    assert policies is not None
    await asyncio.to_thread(control_plane.create_nodes, [nodes.whole(scene.node, count=2)])
    lease = f"lease-{secrets.token_hex(4)}"
    body = {"metadata": {"name": lease}, "spec": {"leaseDurationSeconds": 1}}
    await client.create(Target(LEASES, namespace="default"), body)
    access = KubeconfigAccess(str(control_plane.kubeconfig))
    audit = AuditLog(str(scene.audit), metrics)
    try:
        async with Client(access) as own:
            around = Surroundings(access, own, Fixed(policies), compiler.catalog, metrics, audit)
            election = ElectorSettings("default", lease, "one")
            async with running(run_controllers(around, election, _BOTH)):
                yield scene
    finally:
        audit.close(5.0)
        await client.delete(Target(NODES, scene.node))


def annotation(pod: Mapping[str, Any], key: str) -> str | None:
    found = pod["metadata"].get("annotations", {}).get(key)
    return found if isinstance(found, str) else None


async def test_a_guarantee_comes_back_after_a_notice_and_everyone_can_read_why(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name)
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.create(scene.owner, "w")
        pods = await scene.until(
            scene.borrower,
            lambda pods: any(annotation(p, "state.sluice.dev/notice") for p in pods.values()),
        )
        (told,) = [n for n, p in pods.items() if annotation(p, "state.sluice.dev/notice")]
        notice = read_notice(annotation(pods[told], "state.sluice.dev/notice"))
        assert notice is not None
        assert (notice.beneficiary, notice.rule) == (f"{scene.owner}/w", "ReclaimPolicy/quick")
        assert notice.evict_at == notice.at + 2
        async with asyncio.timeout(LONG):
            shown = ""
            while "ReclaimNotice" not in shown:
                answer = await control_plane.kubectl_async(
                    "describe", "pod", told, "--namespace", scene.borrower
                )
                shown = answer.stdout
        assert f"for {scene.owner}/w of tenant {scene.owner}" in shown
        await scene.until(scene.borrower, lambda pods: told not in pods)
        await scene.runs(scene.owner, "w")
        left = await scene.look(scene.borrower)
        assert len(left) == 1
        assert not any(annotation(p, "state.sluice.dev/notice") for p in left.values())
        line = await scene.audited(action="Evict", outcome="Done", name=told)
        assert line["beneficiary"]["name"] == f"{scene.owner}/w"
        assert line["giver"]["beforeMilli"] == 2000
        assert line["giver"]["afterMilli"] == 1000
        assert line["noticedAt"] is not None


async def test_another_pod_goes_where_a_budget_allows_none(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        await scene.create(scene.borrower, "old")
        await scene.runs(scene.borrower, "old")
        # The younger one would go first.
        await scene.create(scene.borrower, "kept", labels={"app": "kept"})
        await scene.runs(scene.borrower, "kept")
        await scene.protect(scene.borrower, "kept", minAvailable=1)
        await scene.create(scene.owner, "w")
        await scene.runs(scene.owner, "w")
        assert set(await scene.look(scene.borrower)) == {"kept"}


async def test_a_pod_that_a_budget_never_lets_go_is_deleted_in_the_end(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(
        control_plane, client, make_namespace, tmp_path, pdb_timeout="5s"
    ) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name, labels={"app": "web"})
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.protect(scene.borrower, "web", maxUnavailable=0)
        await scene.create(scene.owner, "w")
        refused = await scene.audited(action="Evict", outcome="Refused")
        assert "disruption budget" in refused["message"]
        await scene.runs(scene.owner, "w")
        line = await scene.audited(action="Delete", outcome="Done")
        assert line["name"] == refused["name"]
        assert line["refusedSince"] is not None
        assert len(await scene.look(scene.borrower)) == 1


async def test_several_budgets_on_one_pod_are_refusals_like_any(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(
        control_plane, client, make_namespace, tmp_path, pdb_timeout="5s"
    ) as scene:
        await scene.create(scene.borrower, "b", gpus=2, labels={"app": "web"})
        await scene.runs(scene.borrower, "b")
        await scene.protect(scene.borrower, "web", minAvailable=0)
        body = {
            "metadata": {"name": "too"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 0},
        }
        await client.create(Target(POD_DISRUPTION_BUDGETS, namespace=scene.borrower), body)
        await scene.create(scene.owner, "w")
        refused = await scene.audited(action="Evict", outcome="Refused")
        assert "more than one PodDisruptionBudget" in refused["message"]
        await scene.runs(scene.owner, "w")


async def test_a_victim_may_take_its_grace_and_nobody_else_goes_meanwhile(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    slow = {"pod-delete.stage.kwok.x-k8s.io/delay": "4s"}
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name, annotations=slow)
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.create(scene.owner, "w")
        await scene.audited(action="Evict", outcome="Done")
        await scene.runs(scene.owner, "w")
        assert len(await scene.look(scene.borrower)) == 1
        assert scene.audit_text().count('"action":"Evict"') == 1


async def test_a_notice_is_taken_off_when_the_beneficiary_goes(
    control_plane: ControlPlane, client: Client, make_namespace: MakeNamespace, tmp_path: Path
) -> None:
    async with reclaiming(control_plane, client, make_namespace, tmp_path) as scene:
        for name in ("b0", "b1"):
            await scene.create(scene.borrower, name)
        await scene.runs(scene.borrower, "b0", "b1")
        await scene.create(scene.owner, "w")
        await scene.audited(action="Notify", outcome="Done")
        await client.delete(Target(PODS, "w", scene.owner))
        await scene.audited(action="Withdraw", outcome="Done")
        pods = await scene.look(scene.borrower)
        assert set(pods) == {"b0", "b1"}
        assert not any(annotation(p, "state.sluice.dev/notice") for p in pods.values())
