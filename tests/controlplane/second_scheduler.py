# SPDX-License-Identifier: Apache-2.0
"""The second scheduler that the manifests render, run as a process by its own Deployment.

What its container is told is taken from the objects that a cluster would be given; only what a
kubelet would add is added here: where the API server is, the account's token, and free ports.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.processes import Command, Process, ProcessGroup

_HEALTHY_SECONDS = 40.0
_END_SECONDS = 10.0
_MOUNTED = "config"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A second scheduler among rendered objects, by its name."""

    objects: tuple[Mapping[str, Any], ...]
    name: str

    def of(self, kind: str) -> Any:
        """Return its object of a kind."""
        for found in self.objects:
            if found["kind"] == kind and found["metadata"]["name"] == self.name:
                return found
        raise ControlPlaneError(f"no {kind} {self.name} is rendered")

    @property
    def container(self) -> Any:
        """Return the only container of its Deployment."""
        (container,) = self.of("Deployment")["spec"]["template"]["spec"]["containers"]
        return container


class SecondScheduler:
    """One replica, for as long as the block lasts; everything it reads is in `directory`."""

    def __init__(self, rendered: Rendered, binary: Path, directory: Path) -> None:
        self._rendered = rendered
        self._binary = binary
        self._directory = directory
        self._port = free_ports(1)[0]
        self._group: ProcessGroup | None = None
        self._process: Process | None = None

    @property
    def log(self) -> Path:
        """Where it logs."""
        return self._directory / "second-scheduler.log"

    def start(self, kubeconfig: Path) -> None:
        """Start it with the kubeconfig of its account, and wait until it is healthy."""
        if self._group is None:
            raise RuntimeError("a scheduler is started in its context")
        command = self._command(kubeconfig)
        self._process = Process.start(command, self.log, self._group, self._directory)
        tls = ssl.create_default_context()
        # Its certificate is made as it starts, and signed by itself.
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        self._process.wait_healthy(tls, "", _HEALTHY_SECONDS)

    def check(self) -> None:
        """Raise a ComponentError with the end of its log if it has ended."""
        if self._process is not None:
            self._process.check()

    def __enter__(self) -> Self:
        self._group = ProcessGroup()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.end(_END_SECONDS)
        if self._group is not None:
            self._group.close()

    def _command(self, kubeconfig: Path) -> Command:
        container = self._rendered.container
        (mount,) = [m for m in container["volumeMounts"] if m["name"] == _MOUNTED]
        told: list[str] = container["command"] + container["args"]
        if told[0] != self._binary.name:
            raise ControlPlaneError(f"the container runs {told[0]}, not {self._binary.name}")
        self._write_configuration(kubeconfig)
        mounted = [each.replace(mount["mountPath"], str(self._directory)) for each in told[1:]]
        added = (
            f"--bind-address={HOST}",
            f"--secure-port={self._port}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        )
        probe = container["livenessProbe"]["httpGet"]["path"]
        return Command(
            self._rendered.name, (str(self._binary), *mounted, *added), self._port, probe
        )

    def _write_configuration(self, kubeconfig: Path) -> None:
        for name, text in self._rendered.of("ConfigMap")["data"].items():
            configuration = yaml.safe_load(text)
            # In a pod it would be found by itself.
            configuration["clientConnection"] = {"kubeconfig": str(kubeconfig)}
            (self._directory / name).write_text(yaml.safe_dump(configuration), encoding="utf-8")
