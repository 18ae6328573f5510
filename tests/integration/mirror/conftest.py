# SPDX-License-Identifier: Apache-2.0
"""The documents' kinds and Sluice's account in the cluster; the mirror itself runs in the test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.documents.kinds import Kind
from policies.vendors import build_catalog
from reconciler.kube.access import find_access
from reconciler.kube.client import Client
from reconciler.kube.document_resources import API_KINDS, plural, resource_of
from reconciler.kube.errors import NotFoundError
from reconciler.kube.resources import Selection, Target
from reconciler.kube.served import ServedSettings
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.render import render_groups
from reconciler.mirror.run import MirrorSettings, run_mirror
from reconciler.runtime.api_documents import ApiDocuments
from reconciler.runtime.documents import DocumentWatcher, Timing
from reconciler.runtime.loading import Compiler
from tests.controlplane import ControlPlane
from tests.controlplane.access import Server, write_kubeconfig

_SECONDS = 20.0
_POLL_SECONDS = 0.02
_NAME = "sluice-mirror"
_SERVED = ServedSettings(look_seconds=0.2)
_CRDS = [f"{plural(kind)}.sluice.dev" for kind in API_KINDS]


def as_list(objects: Any) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


@dataclass(frozen=True, slots=True)
class Account:
    """Sluice's account, with the permissions of its manifests and no others."""

    control_plane: ControlPlane
    kubeconfig: Path


@pytest.fixture(scope="module")
def account(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Account]:
    kubectl = control_plane.kubectl
    options = ManifestOptions(build_catalog(), name=_NAME, namespace=_NAME)
    groups = render_groups(options)
    objects = [item for name in ("crds", "namespace", "access") for item in groups[name]]
    kubectl("apply", "--server-side", "--filename=-", stdin=as_list(objects))
    control_plane.wait_kinds(_CRDS)
    kubeconfig = tmp_path_factory.mktemp("account") / "kubeconfig"
    token = kubectl("create", "token", _NAME, f"--namespace={_NAME}").stdout.strip()
    server = Server(control_plane.url, control_plane.ca_bundle)
    write_kubeconfig(kubeconfig, server, "sluice", token)
    yield Account(control_plane, kubeconfig)
    kubectl("delete", "--ignore-not-found", "--filename=-", stdin=as_list(reversed(objects)))


class Workplace:
    """A policy directory, and the cluster as its admin sees it."""

    def __init__(self, policies: Path, documents: DocumentWatcher, admin: Client) -> None:
        self.policies = policies
        self.documents = documents
        self.admin = admin

    def write(self, name: str, text: str) -> None:
        path = self.policies / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    async def find(self, kind: Kind, name: str) -> Any:
        """Return an object, or nothing."""
        try:
            return await self.admin.get(Target(resource_of(kind), name))
        except NotFoundError:
            return {}

    async def until(self, kind: Kind, name: str, condition: Callable[[Any], Any], what: str) -> Any:
        """Wait for an object to be as it must; {} is one that is not there."""
        async with asyncio.timeout(_SECONDS):
            while True:
                found = await self.find(kind, name)
                if condition(found):
                    return found
                await asyncio.sleep(_POLL_SECONDS)

    async def accepted(self, kind: Kind, name: str, *, reason: str, text: str = "") -> Any:
        """Wait for what an object says of its acceptance, and return the status."""

        def told(found: Any) -> bool:
            condition = acceptance(found)
            return (
                bool(condition) and condition["reason"] == reason and text in condition["message"]
            )

        return (await self.until(kind, name, told, reason))["status"]

    async def clear(self) -> None:
        for kind in API_KINDS:
            page = await self.admin.list_page(Selection(resource_of(kind)), limit=500)
            for item in page.items:
                metadata: Any = item["metadata"]
                await self.admin.delete(Target(resource_of(kind), metadata["name"]))


def acceptance(found: Any) -> Any:
    conditions = found.get("status", {}).get("conditions", [])
    return next((item for item in conditions if item["type"] == "Accepted"), {})


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


@asynccontextmanager
async def opened(account: Account, compiler: Compiler, policies: Path) -> AsyncIterator[Workplace]:
    """Run documents and mirror as the account, and take away all objects in the end."""
    access = find_access({}, kubeconfig=str(account.kubeconfig))
    as_admin = find_access({}, kubeconfig=str(account.control_plane.kubeconfig))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(access))
        admin = await stack.enter_async_context(Client(as_admin))
        api = ApiDocuments(client, _SERVED)
        timing = Timing(settle_seconds=0.02, tick_seconds=0.1, poll_seconds=0.1)
        documents = DocumentWatcher(policies, compiler.load, more=api, timing=timing)
        await documents.refresh()
        mirror = run_mirror(
            client, documents, settings=MirrorSettings(settle_seconds=0.02, served=_SERVED)
        )
        tasks = [asyncio.create_task(item) for item in (api.run(), documents.run(), mirror)]
        work = Workplace(policies, documents, admin)
        try:
            yield work
            for task in tasks:
                assert not task.done(), task
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
            await work.clear()


@pytest.fixture
async def work(account: Account, compiler: Compiler, tmp_path: Path) -> AsyncIterator[Workplace]:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "tenants.yaml").write_text(tenant("chat"), encoding="utf-8")
    async with opened(account, compiler, policies) as place:
        yield place


def tenant(name: str, more: str = "") -> str:
    return f"""\
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata:
  name: {name}
  labels: {{team: x}}
spec:
  namespaces: {{names: [{name}]}}
  {more}
"""
