# SPDX-License-Identifier: Apache-2.0
"""A node, tenants who share it, and a leader that releases and takes back, for real."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from policies.documents.source import SourceText
from policies.model.policyset import PolicySet
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
NOTICE: Final = "state.sluice.dev/notice"
REASON: Final = "state.sluice.dev/reason"
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
spec: {{cohorts: [main], notice: {notice}, pdbTimeout: {pdb_timeout}}}
"""


class Scene:
    """A node, an owner who is guaranteed some of it, and borrowers."""

    def __init__(self, client: Client, owner: str, borrowers: Sequence[str], audit: Path) -> None:
        self.client = client
        self.owner = owner
        self.borrowers = borrowers
        self.node = f"reclaim-{secrets.token_hex(4)}"
        self.audit = audit

    @property
    def borrower(self) -> str:
        """The first of them."""
        return self.borrowers[0]

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
            **more.get("spec", {}),
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
            shown = {
                name: (
                    p["metadata"].get("annotations"),
                    p["status"].get("conditions"),
                    p["spec"].get("affinity"),
                    p["spec"].get("nodeSelector"),
                )
                for name, p in pods.items()
            }
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

    def audit_lines(self, **wanted: str) -> list[dict[str, Any]]:
        """Return the lines that say so, in order."""
        lines = map(json.loads, self.audit_text().splitlines())
        return [line for line in lines if line.items() >= wanted.items()]

    async def audited(self, count: int = 1, **wanted: str) -> list[dict[str, Any]]:
        """Return the lines that say so once there are so many: they are written in their time."""
        try:
            async with asyncio.timeout(LONG):
                while True:
                    lines = self.audit_lines(**wanted)
                    if len(lines) >= count:
                        return lines
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"fewer than {count} lines with {wanted}:\n{self.audit_text()}")


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
    """Have a node of two GPUs, an owner who is guaranteed both, and a borrower."""
    scene = Scene(client, make_namespace(), [make_namespace()], directory / "audit.jsonl")
    text = documents(scene, pdb_timeout=pdb_timeout)
    async with playing(control_plane, scene, text + more):
        yield scene


def documents(scene: Scene, notice: str = "2s", pdb_timeout: str = "10m") -> str:
    """Return an owner who is guaranteed two GPUs, a borrower, and how reclaim goes about it."""
    return _DOCUMENTS.format(
        owner=scene.owner, borrower=scene.borrower, notice=notice, pdb_timeout=pdb_timeout
    )


@asynccontextmanager
async def playing(
    control_plane: ControlPlane,
    scene: Scene,
    text: str,
    gpus: int = 2,
    adjust: Callable[[PolicySet], PolicySet] = lambda policies: policies,
) -> AsyncIterator[None]:
    """Have a scene's node of so many GPUs, and a leader that goes by these documents.

    `adjust` may set times that are shorter than documents can say.
    """
    client = scene.client
    compiler, metrics = Compiler(), Metrics()
    result = compiler.load([SourceText("t.yaml", text.encode())])
    assert result.policy_set is not None, result.problems
    policies = adjust(result.policy_set)
    await asyncio.to_thread(control_plane.create_nodes, [nodes.whole(scene.node, count=gpus)])
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
                yield
    finally:
        audit.close(5.0)
        await client.delete(Target(NODES, scene.node))


def annotation(pod: Mapping[str, Any], key: str) -> str | None:
    found = pod["metadata"].get("annotations", {}).get(key)
    return found if isinstance(found, str) else None
