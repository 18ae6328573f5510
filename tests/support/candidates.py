# SPDX-License-Identifier: Apache-2.0
"""Processes' worth of controllers that stand for one Lease, in one loop, without a webhook."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from policies.documents.source import SourceText
from policies.model.policyset import PolicySet
from reconciler.kube.access import KubeconfigAccess
from reconciler.kube.client import Client
from reconciler.kube.elector import ElectorSettings
from reconciler.kube.resources import LEASES, Target
from reconciler.manager import CONTROLLERS, run_controllers
from reconciler.runtime.audit import AuditLog
from reconciler.runtime.documents import DocumentState
from reconciler.runtime.loading import Compiler
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.surroundings import Surroundings
from tests.controlplane import ControlPlane
from tests.support.running import running

_WITHOUT_DOCUMENTS: Final = tuple(item for item in CONTROLLERS if item[0] != "mirror")
_TENANT: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {namespace}}}
spec:
  namespaces: {{names: [{namespaces}]}}
  quota: {{gpus: {{guarantee: {gpus}, ceiling: {gpus}}}}}
"""


class Candidates:
    """Processes' worth of controllers that stand for one Lease, in one event loop."""

    def __init__(
        self, control_plane: ControlPlane, directory: Path, stack: AsyncExitStack, lease: str
    ) -> None:
        self._access = KubeconfigAccess(str(control_plane.kubeconfig))
        self._directory = directory
        self._stack = stack
        self._compiler = Compiler()
        self.lease = lease
        self.policies: PolicySet | None = None

    @property
    def state(self) -> DocumentState:
        return DocumentState(self.policies)

    def current(self) -> PolicySet | None:
        return self.policies

    def subscribe(self, subscriber: Callable[[DocumentState], None]) -> Callable[[], None]:
        return lambda: None

    def allow(self, namespace: str, gpus: int, *more: str) -> None:
        """Have a tenant of that name own the namespace, and more of them."""
        names = ", ".join((namespace, *more))
        self.serve(_TENANT.format(namespace=namespace, namespaces=names, gpus=gpus))

    def serve(self, text: str) -> None:
        """Have these documents be the ones in force."""
        result = self._compiler.load([SourceText("t.yaml", text.encode())])
        assert result.policy_set is not None, result.problems
        self.policies = result.policy_set

    async def stand(self) -> Metrics:
        metrics = Metrics()
        client = await self._stack.enter_async_context(Client(self._access))
        audit = AuditLog(str(self._directory / f"audit-{secrets.token_hex(4)}.jsonl"), metrics)
        self._stack.callback(audit.close, 5.0)
        around = Surroundings(self._access, client, self, self._compiler.catalog, metrics, audit)
        election = ElectorSettings("default", self.lease, secrets.token_hex(4))
        await self._stack.enter_async_context(
            running(run_controllers(around, election, _WITHOUT_DOCUMENTS))
        )
        return metrics


@asynccontextmanager
async def candidates(
    control_plane: ControlPlane, directory: Path, lease: str = ""
) -> AsyncIterator[Candidates]:
    async with AsyncExitStack() as stack:
        name = lease or f"lease-{secrets.token_hex(4)}"
        if not lease:
            # As the manifests make it: where there is none, one may have been deleted.
            client = await stack.enter_async_context(
                Client(KubeconfigAccess(str(control_plane.kubeconfig)))
            )
            body = {"metadata": {"name": name}, "spec": {"leaseDurationSeconds": 1}}
            await client.create(Target(LEASES, namespace="default"), body)
        yield Candidates(control_plane, directory, stack, name)
