# SPDX-License-Identifier: Apache-2.0
"""Sluice installed without any certificate: leader and webhooks as processes, real permissions.

The webhooks are reached through one port, whose connections are given to them in turn.
"""

import asyncio
import base64
import contextlib
import json
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cryptography import x509

from policies.vendors import build_catalog
from reconciler.manifests.access import accounts
from reconciler.manifests.options import ManifestOptions, Processes
from reconciler.manifests.render import render_groups
from tests.controlplane import ControlPlane
from tests.controlplane.access import Server, write_kubeconfig
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.processes import Command, Process, ProcessGroup
from tests.controlplane.replica import ROOT
from tests.support.waiting import until

SERVING: Final = "sluice-tls"
AUTHORITY: Final = "sluice-authority"
NAMESPACE: Final = "sluice"
KINDS: Final = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")

_GROUPS: Final = ("crds", "namespace", "access", "admission-policies", "webhooks")
_POLICIES: Final = Path(__file__).parents[1] / "sluice" / "policies"
_READY_SECONDS: Final = 40.0
_STOP_SECONDS: Final = 20.0

Json = dict[str, Any]


class Installation:
    """An installation in a running control plane; its processes are started by tests.

    Where they are apart, each has the account that is rendered for it.
    """

    def __init__(self, control_plane: ControlPlane, directory: Path, processes: Processes) -> None:
        self.control_plane = control_plane
        self.front = free_ports(1)[0]
        self.ports: dict[str, int] = {}
        self._directory = directory
        self._group = ProcessGroup()
        self._processes: dict[str, Process] = {}
        self.options = ManifestOptions(
            build_catalog(), url=f"https://{HOST}:{self.front}", processes=processes
        )
        self._objects = self._render()

    def install(self) -> None:
        """Apply the manifests, as people do."""
        shutil.copytree(_POLICIES, self._directory / "policies", dirs_exist_ok=True)
        self.apply(self._objects)
        self.control_plane.wait_kinds(_names(self._objects, "CustomResourceDefinition"))
        for account in accounts(self.options):
            token = self.control_plane.kubectl(
                "create", "token", account.name, "-n", NAMESPACE, "--duration=24h"
            ).stdout.strip()
            server = Server(self.control_plane.url, self.control_plane.ca_bundle)
            write_kubeconfig(self._directory / account.name, server, "sluice", token)

    def apply_webhooks(self, ca_bundle: bytes | None = None) -> None:
        """Apply the webhook configurations, again; `ca_bundle` as if it were from files."""
        rendered = self._render(ca_bundle)
        self.apply([item for item in rendered if _is_webhook(item)])

    def _render(self, ca_bundle: bytes | None = None) -> list[Json]:
        groups = render_groups(replace(self.options, ca_bundle=ca_bundle))
        return [item for name in _GROUPS for item in groups[name]]

    def apply(self, items: Iterable[Json]) -> None:
        """Apply objects as their manager."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(items)}
        self.control_plane.kubectl(
            "apply", "--server-side", "--force-conflicts", "--filename=-", stdin=listed
        )

    def start(self, name: str, command: str) -> None:
        """Start a process: `run`, `serve` or `reconcile`; it need not be ready yet."""
        port = self.ports[name] = free_ports(1)[0]
        arguments = (
            *("--kubeconfig", str(self._directory / self._account(command))),
            *("--policies", str(self._directory / "policies")),
            *("--certificates-secret", f"{NAMESPACE}/{SERVING}"),
            *("--audit", str(self._directory / f"{name}.jsonl")),
            *("--host", HOST, "--port", str(port)),
            *(() if command == "reconcile" else ("--grace", "0.2")),
            *(() if command == "serve" else ("--identity", name)),
        )
        program = (sys.executable, str(ROOT / "sluice.py"), command)
        is_tls = command != "reconcile"
        started = Command(name, (*program, *arguments), port, "/readyz", is_tls)
        self._processes[name] = Process.start(started, self.log_of(name), self._group, ROOT)

    def _account(self, command: str) -> str:
        return self.options.webhook_account if command == "serve" else self.options.name

    def log_of(self, name: str) -> Path:
        """Where a process logs."""
        return self._directory / f"{name}.log"

    async def wait_ready(self, *names: str) -> None:
        """Wait until processes are ready, whatever they serve with."""
        for name in names:
            process = self._processes[name]
            unverified = ssl._create_unverified_context()  # noqa: S323 - the leaf is looked at later
            await asyncio.to_thread(process.wait_healthy, unverified, "", _READY_SECONDS)

    def kill(self, name: str) -> None:
        """End a process at once."""
        self._processes.pop(name).kill()

    def stop(self, name: str) -> None:
        """Stop a process as a rollout would."""
        self._processes.pop(name).end(_STOP_SECONDS)

    def check(self) -> None:
        """Raise if a process has ended by itself."""
        for process in self._processes.values():
            process.check()

    def close(self) -> None:
        """End everything, and take it out of the cluster."""
        listed = {"apiVersion": "v1", "kind": "List", "items": self._objects[::-1]}
        try:
            for process in self._processes.values():
                process.end(_STOP_SECONDS)
            self.control_plane.kubectl(
                "delete", "--ignore-not-found", "--filename=-", stdin=listed, check=False
            )
        finally:
            self._group.close()

    @property
    def leader(self) -> str:
        """Return the name of the process that leads."""
        lease = self.control_plane.get("lease", "sluice", "-n", NAMESPACE)
        return str(lease["spec"].get("holderIdentity", ""))

    # What is to be seen

    def secret(self, name: str) -> Json | None:
        """Return a Secret; None where there is none."""
        done = self.control_plane.kubectl(
            "get", "secret", name, "-n", NAMESPACE, "--ignore-not-found", "--output=json"
        )
        return None if not done.stdout else dict(json.loads(done.stdout))

    def certificates(self, name: str, key: str) -> tuple[x509.Certificate, ...]:
        """Return the certificates in a Secret; none where it is not there."""
        found = self.secret(name)
        text = (found or {}).get("data", {}).get(key, "")
        return parse(base64.b64decode(text))

    def leaf(self) -> x509.Certificate | None:
        """Return the certificate that replicas are to serve."""
        return next(iter(self.certificates(SERVING, "tls.crt")), None)

    def served(self, name: str) -> x509.Certificate:
        """Return what a process shows to whoever connects now."""
        pem = ssl.get_server_certificate((HOST, self.ports[name]))
        return x509.load_pem_x509_certificate(pem.encode())

    def bundles(self) -> list[tuple[x509.Certificate, ...]]:
        """Return what each entry of each configuration trusts."""
        return [
            parse(base64.b64decode(entry["clientConfig"].get("caBundle", "")))
            for kind in KINDS
            for entry in self.control_plane.get(kind, "sluice")["webhooks"]
        ]

    def is_trusted(self, authority: x509.Certificate) -> bool:
        """Tell whether every entry trusts it."""
        return all(authority in bundle for bundle in self.bundles())

    def annotate(self, name: str, annotation: str) -> None:
        """Annotate a Secret."""
        self.control_plane.kubectl("annotate", "secret", name, annotation, "-n", NAMESPACE)

    def events(self) -> list[tuple[str, str]]:
        """Return reason and object of the Events of certificates."""
        found = self.control_plane.get("events", "--all-namespaces")["items"]
        return [
            (event["reason"], event["involvedObject"]["name"])
            for event in found
            if event.get("action") == "ManageCertificates"
        ]

    async def wait(self, condition: Any, seconds: float = 60.0) -> None:
        """Wait for a condition on the cluster, which is asked without stopping the loop."""
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(condition):
                self.check()
                await asyncio.sleep(0.2)


class Front:
    """Gives the connections of the API server to webhooks in turn; counts those of each."""

    def __init__(self, ports: Iterable[int]) -> None:
        self.accepted = dict.fromkeys(ports, 0)
        self._turn = 0
        self._open: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def opened(self, port: int) -> AsyncIterator["Front"]:
        """Listen during the block."""
        server = await asyncio.start_server(self._accept, HOST, port)
        async with server:
            try:
                yield self
            finally:
                server.close()
                for writer in self._open:
                    writer.transport.abort()
                await until(lambda: not self._open)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports = tuple(self.accepted)
        port = ports[self._turn % len(ports)]
        self._turn += 1
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, port)
        except OSError:
            writer.transport.abort()
            return
        self.accepted[port] += 1
        ends = {writer, far_writer}
        self._open |= ends
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            self._open -= ends
            for each in ends:
                each.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


def parse(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a text; none of an empty one."""
    return tuple(x509.load_pem_x509_certificates(pem)) if pem.strip() else ()


def _names(items: Iterable[Json], kind: str) -> list[str]:
    return [item["metadata"]["name"] for item in items if item["kind"] == kind]


def _is_webhook(item: Json) -> bool:
    return str(item["kind"]).endswith("WebhookConfiguration")
