# SPDX-License-Identifier: Apache-2.0
"""Sluice installed in a running control plane: real manifests, real permissions, a real process.

It runs each process as the service account that the manifests make, with nothing else allowed, so
that what works here works with those permissions. For tests and for `make cluster`.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from certs.files import ensure, read_ca_bundle
from certs.names import LOOPBACK
from policies.vendors import build_catalog
from reconciler.manifests.options import ManifestOptions, Processes
from reconciler.manifests.render import render_groups
from reconciler.manifests.telemetry import TelemetryOptions
from tests.controlplane.access import Server, write_kubeconfig
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.ports import HOST
from tests.controlplane.processes import POLL_SECONDS, ProcessGroup
from tests.controlplane.replica import ROOT, Launch, Replica

__all__ = ["ROOT", "InstalledSluice"]

# The policies come from a directory and the webhook runs here, so no workload is made.
_GROUPS = ("crds", "namespace", "access", "admission-policies", "webhooks")
_READY_SECONDS = 30.0
_TOKEN = "24h"


class InstalledSluice:
    """A context manager; leaving it takes everything away again.

    `policies` is a directory of documents that the process follows. `front` is the port where the
    API server reaches the webhook if not at the process itself. More processes are `add_replica`;
    where the first is launched as `serve`, the manifests are of processes that are apart.
    `telemetry` is what it is installed for; processes are told of it by their `launch`.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        policies: Path,
        directory: Path,
        launch: Launch | None = None,
        front: int | None = None,
        telemetry: TelemetryOptions | None = None,
    ) -> None:
        self._control_plane = control_plane
        self._telemetry = telemetry or TelemetryOptions()
        self._policies = policies
        self._directory = directory
        self._processes = (
            Processes.APART
            if launch is not None and launch.command == "serve"
            else Processes.TOGETHER
        )
        self._replica = Replica(directory, policies, self.certificates, launch)
        self._front = front or self._replica.port
        self._group: ProcessGroup | None = None
        self._further: list[Replica] = []
        self._objects: list[dict[str, object]] = []

    @property
    def replica(self) -> Replica:
        """The process that is there from the beginning."""
        return self._replica

    @property
    def group(self) -> ProcessGroup:
        """What ends with this installation."""
        if self._group is None:
            raise ControlPlaneError("Sluice is not installed")
        return self._group

    @property
    def port(self) -> int:
        """Where the process listens."""
        return self._replica.port

    @property
    def audit(self) -> Path:
        """Where the audit log is written."""
        return self._replica.audit

    @property
    def log(self) -> Path:
        """Where the process logs."""
        return self._replica.log

    @property
    def certificates(self) -> Path:
        """Where the certificates are that it serves with, and their authority."""
        return self._directory / "certificates"

    @property
    def kubeconfig(self) -> Path:
        """What the process reaches the API server with."""
        return self._replica.kubeconfig

    @property
    def is_started(self) -> bool:
        """Whether the process was started, and not ended by a method."""
        return self._replica.is_started

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._group = ProcessGroup()
        try:
            self._install()
            self.start()
            self.wait_registered()
        except BaseException:  # a keyboard interrupt must not leave anything behind either
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The webhooks go first: with the process gone they would refuse everything.
        try:
            if self._objects:
                self._kubectl_delete(list(reversed(self._objects)))
        finally:
            self._objects = []
            for replica in (self._replica, *self._further):
                replica.stop()
            if self._group is not None:
                self._group.close()
                self._group = None

    def leave_objects(self) -> None:
        """Leave everything in the cluster at the end: the cluster ends as well."""
        self._objects = []

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        self._replica.start(self.group)

    def add_replica(
        self, name: str, launch: Launch | None = None, port: int | None = None
    ) -> Replica:
        """Start a further process of the same account, and wait until it is ready."""
        directory = self._directory / name
        directory.mkdir()
        replica = Replica(directory, self._policies, self.certificates, launch, port)
        options = self._options()
        is_webhook = launch is not None and launch.command == "serve"
        account = options.webhook_account if is_webhook else options.name
        self._write_kubeconfig(replica.kubeconfig, account)
        self._further.append(replica)
        replica.start(self.group)
        return replica

    def stop(self) -> None:
        """Stop the process as a rollout would, and wait for its end."""
        self._replica.stop()

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self._replica.kill()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Have the process stand still, so that it takes calls and answers none."""
        with self._replica.frozen():
            yield

    def check(self) -> None:
        """Raise ComponentError if a process has ended by itself."""
        for replica in (self._replica, *self._further):
            replica.check()

    def delete(self, kind: str) -> None:
        """Take all installed objects of a kind away, such as one webhook configuration."""
        self._kubectl_delete([item for item in self._objects if item["kind"] == kind])

    def apply(self, kind: str) -> None:
        """Apply them again."""
        self._kubectl_apply([item for item in self._objects if item["kind"] == kind])

    def render_anew(self, *, observe: bool) -> None:
        """Apply the manifests with another choice, and delete what is no longer among them.

        It takes the API server a moment to follow.
        """
        before, self._objects = self._objects, self._render(self._options(observe=observe))
        kept = {_identity(item) for item in self._objects}
        self._kubectl_delete([item for item in before if _identity(item) not in kept])
        self._kubectl_apply(self._objects)

    def _options(self, *, observe: bool = False) -> ManifestOptions:
        files = ensure(self.certificates, LOOPBACK, datetime.now(UTC))
        return ManifestOptions(
            catalog=build_catalog(),
            url=f"https://{HOST}:{self._front}",
            ca_bundle=read_ca_bundle(files.ca_certificate),
            observe=observe,
            processes=self._processes,
            telemetry=self._telemetry,
        )

    def _render(self, options: ManifestOptions) -> list[dict[str, object]]:
        groups = render_groups(options)
        return [item for name in _GROUPS for item in groups[name]]

    def _install(self) -> None:
        options = self._options()
        self._objects = self._render(options)
        early = [item for item in self._objects if item["kind"] != "ValidatingWebhookConfiguration"]
        self._kubectl_apply(early)
        account = ("serviceaccount", options.webhook_account, "-n", options.namespace)
        self._control_plane.kubectl("wait", "--for=create", *account)
        self._write_kubeconfig(self.kubeconfig, options.webhook_account)
        self._kubectl_apply(self._objects)

    def _write_kubeconfig(self, path: Path, account: str) -> None:
        options = self._options()
        token = self._control_plane.kubectl(
            "create", "token", account, "-n", options.namespace, f"--duration={_TOKEN}"
        ).stdout.strip()
        server = Server(self._control_plane.url, self._control_plane.ca_bundle)
        write_kubeconfig(path, server, "sluice", token)

    def wait_registered(self) -> None:
        """Wait until the API server calls: new configurations take a moment to act."""
        deadline = time.monotonic() + _READY_SECONDS
        while not (self._refuses_strangers() and self._sets_void()):
            self.check()
            if time.monotonic() > deadline:
                raise ControlPlaneError("the API server does not call the webhook")
            time.sleep(POLL_SECONDS)

    def _refuses_strangers(self) -> bool:
        answer = self._dry_run({"nvidia.com/gpu": 1})
        return answer.returncode != 0 and "[NoTenant]" in answer.stderr

    def _sets_void(self) -> bool:
        answer = self._dry_run({})
        return answer.returncode == 0 and '"void"' in answer.stdout

    def _dry_run(self, limits: Mapping[str, object]) -> Any:
        container = {"name": "probe", "image": "probe", "resources": {"limits": dict(limits)}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "sluice-probe", "namespace": "default"},
            "spec": {"containers": [container]},
        }
        arguments = ("create", "--dry-run=server", "--output=json", "--filename=-")
        return self._control_plane.kubectl(*arguments, stdin=pod, check=False)

    def _kubectl_apply(self, objects: list[dict[str, object]]) -> None:
        self._control_plane.kubectl(
            "apply", "--server-side", "--force-conflicts", "--filename=-", stdin=_list(objects)
        )

    def _kubectl_delete(self, objects: list[dict[str, object]]) -> None:
        self._control_plane.kubectl(
            *("delete", "--ignore-not-found", "--wait=true", "--filename=-"),
            stdin=_list(objects),
            check=False,
        )


def _identity(item: dict[str, Any]) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def _list(objects: list[dict[str, object]]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": objects}
