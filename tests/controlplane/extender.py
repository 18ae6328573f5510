# SPDX-License-Identifier: Apache-2.0
"""A scheduler extender as a process of its own, and what kube-scheduler is told of it.

It can be killed and started any number of times, at the same port.
"""

import http.client
import ssl
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from certs.files import ensure, read_ca_bundle
from certs.names import LOOPBACK
from policies.vendors import build_catalog
from reconciler.manifests.scheduler_config import Calls, extender_entry, managed_resources
from tests.controlplane.errors import ComponentError
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.processes import POLL_SECONDS, Command, Process, ProcessGroup
from tests.controlplane.replica import ROOT

_READY_SECONDS = 40.0
_STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ExtenderLaunch:
    """How an extender differs from the plain one, which is alone and so needs no Lease.

    `calls` is how often the scheduler asks it about a pod.
    """

    arguments: tuple[str, ...] = ("--lease-name", "")
    environment: Mapping[str, str] = field(default_factory=dict)
    is_tls: bool = True
    calls: Calls = Calls.TWO


class ExtenderProcess:
    """One extender. Use as a context manager; it is there before the cluster that it serves."""

    def __init__(self, directory: Path, launch: ExtenderLaunch | None = None) -> None:
        """Start nothing yet; everything that it writes goes to `directory`."""
        self._directory = directory
        self._launch = launch or ExtenderLaunch()
        self._port = free_ports(1)[0]
        self._group: ProcessGroup | None = None
        self._process: Process | None = None
        self._kubeconfig: Path | None = None

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"{'https' if self._launch.is_tls else 'http'}://{HOST}:{self._port}"

    @property
    def log(self) -> Path:
        """Where it logs."""
        return self._directory / "extender.log"

    @property
    def ca(self) -> Path:
        """The CA of its certificate."""
        return self._directory / "certificates" / "ca.crt"

    def entry(self, calls: Calls | None = None) -> dict[str, object]:
        """Return what the scheduler's configuration says of it, as the manifests render it."""
        bundle = read_ca_bundle(self.ca) if self._launch.is_tls else None
        url, resources = f"{self.url}/scheduler", managed_resources(build_catalog())
        return extender_entry(url, resources, bundle, calls=calls or self._launch.calls)

    def start(self, kubeconfig: Path | None = None) -> None:
        """Start it for the cluster of a kubeconfig, the same as before, and wait until ready."""
        self.launch(kubeconfig)
        self.wait_ready()

    def launch(self, kubeconfig: Path | None = None) -> None:
        """Start it, and do not wait."""
        self._kubeconfig = kubeconfig or self._kubeconfig
        if self._group is None or self._kubeconfig is None:
            raise RuntimeError("an extender is started in its context, for a cluster")
        environment = self._launch.environment
        self._process = Process.start(self._command(), self.log, self._group, ROOT, environment)

    def wait_ready(self) -> None:
        """Wait until it is ready."""
        if self._process is None:
            raise RuntimeError("the extender has not been started")
        self._process.wait_healthy(self._tls, "", _READY_SECONDS)

    def wait_answering(self, text: str) -> None:
        """Wait until it says a text of its readiness."""
        deadline = time.monotonic() + _READY_SECONDS
        while text not in (said := self._readiness()):
            if time.monotonic() > deadline:
                raise ComponentError(f"the extender does not say {text!r} but {said!r}")
            time.sleep(POLL_SECONDS)

    @property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def _readiness(self) -> str:
        connection = http.client.HTTPSConnection(HOST, self._port, timeout=2, context=self._tls)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            return str(error)
        finally:
            connection.close()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def stop(self) -> None:
        """Stop it as a rollout would."""
        if self._process is not None:
            self._process.end(_STOP_SECONDS)
            self._process = None

    def __enter__(self) -> Self:
        ensure(self._directory / "certificates", LOOPBACK, datetime.now(UTC))
        self._group = ProcessGroup()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._group is not None:
            self._group.close()
            self._group = None

    def _command(self) -> Command:
        tls = ("--certificates", str(self.ca.parent)) if self._launch.is_tls else ()
        arguments = (
            *(sys.executable, str(ROOT / "sluice.py"), "extender"),
            *("--kubeconfig", str(self._kubeconfig)),
            *("--host", HOST, "--port", str(self._port), "--grace", "0.2"),
            *tls,
            *self._launch.arguments,
        )
        return Command("extender", arguments, self._port, "/readyz", is_tls=self._launch.is_tls)
