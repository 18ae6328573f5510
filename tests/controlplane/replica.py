# SPDX-License-Identifier: Apache-2.0
"""One process of an installed Sluice, with port, kubeconfig, audit log and log of its own.

What is installed for it in the cluster is in `installed`.
"""

import os
import signal
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.processes import Command, Process, ProcessGroup

ROOT = Path(__file__).resolve().parents[2]
_READY_SECONDS = 30.0
_STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Launch:
    """What a process is given beyond what every process of Sluice is told.

    `command` is `run`, `serve` or `reconcile`.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str = "run"


class Replica:
    """A process that can be started, stopped, killed and frozen any number of times."""

    def __init__(
        self,
        directory: Path,
        policies: Path,
        certificates: Path,
        launch: Launch | None = None,
        port: int | None = None,
    ) -> None:
        """Start nothing yet; everything that it writes goes to `directory`."""
        self.certificates = certificates
        self.port = port or free_ports(1)[0]
        self._directory = directory
        self._policies = policies
        self._launch = launch or Launch()
        self._process: Process | None = None
        self._is_frozen = False

    @property
    def audit(self) -> Path:
        """Where the audit log is written."""
        return self._directory / "audit.jsonl"

    @property
    def log(self) -> Path:
        """Where the process logs."""
        return self._directory / "sluice.log"

    @property
    def kubeconfig(self) -> Path:
        """What the process reaches the API server with."""
        return self._directory / "kubeconfig"

    @property
    def is_started(self) -> bool:
        """Whether the process was started, and not ended by a method."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._running.pid

    def start(self, group: ProcessGroup) -> None:
        """Start the process and wait until it is ready."""
        environment = self._launch.environment
        self._process = Process.start(self._command(), self.log, group, ROOT, environment)
        tls = ssl.create_default_context(cafile=str(self.certificates / "ca.crt"))
        self._process.wait_healthy(tls, "", _READY_SECONDS)

    def stop(self) -> None:
        """Stop the process as a rollout would, and wait for its end."""
        if self._process is not None:
            self.thaw()
            self._process.end(_STOP_SECONDS)
            self._process = None

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process = None
            self._is_frozen = False

    def freeze(self) -> None:
        """Have the process stand still, so that it takes calls and answers none."""
        os.kill(self._running.pid, signal.SIGSTOP)
        self._is_frozen = True

    def thaw(self) -> None:
        """Have it go on where it stood."""
        if self._is_frozen:
            os.kill(self._running.pid, signal.SIGCONT)
            self._is_frozen = False

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it stand still during the block."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def check(self) -> None:
        """Raise ComponentError if the process has ended."""
        if self._process is not None:
            self._process.check()

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise ControlPlaneError("Sluice is not running")
        return self._process

    def _command(self) -> Command:
        launch, answers_reviews = self._launch, self._launch.command != "reconcile"
        arguments = (
            *(sys.executable, str(ROOT / "sluice.py"), launch.command),
            *("--kubeconfig", str(self.kubeconfig)),
            *("--policies", str(self._policies)),
            *("--audit", str(self.audit)),
            *("--host", HOST),
            *("--port", str(self.port)),
            *(
                ("--certificates", str(self.certificates), "--grace", "0.2")
                if answers_reviews
                else ()
            ),
            *launch.arguments,
        )
        return Command("sluice", arguments, self.port, "/readyz", is_tls=answers_reviews)
