# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes control plane on loopback, of real programs: start, use, break and stop it.

This module puts the parts together: what the components are told is in `components`, what they read
in `install`, who keeps them running is `supervisor`. No test framework may be imported here: people
run it too.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tests.controlplane.access import KubectlInput, write_kubeconfig
from tests.controlplane.components import ADMIN_USER, Options
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.install import Installation, install
from tests.controlplane.processes import POLL_SECONDS
from tests.controlplane.state import StateDirectory
from tests.controlplane.supervisor import Supervisor

if TYPE_CHECKING:
    import subprocess

_NOT_READY_TAINT = "node.kubernetes.io/not-ready"
_WAIT_SECONDS = 30


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK as a context manager.

    It is an async context manager too. Everything that it starts ends with `stop()`, and in any
    case with this process. Methods raise ControlPlaneError when something is not as it must be.
    """

    def __init__(
        self,
        binaries: Mapping[str, Path],
        options: Options | None = None,
        directory: Path | None = None,
    ) -> None:
        """Start nothing yet; `find_binaries` gives the binaries.

        State, logs and kubeconfigs go to `directory`, which stays, or to a temporary one.
        """
        self._options = options or Options()
        self._binaries = binaries
        self._chosen_directory = directory
        self._state: StateDirectory | None = None
        self._installation: Installation | None = None
        self._supervisor: Supervisor | None = None

    def start(self) -> Self:
        """Start all components and wait until they are healthy; a failure leaves nothing behind."""
        if self._state is not None:
            raise ControlPlaneError("this control plane has been started already")
        self._state = StateDirectory.claim(self._chosen_directory)
        try:
            made = install(self._options, self._binaries, self._state.path, datetime.now(UTC))
            self._installation = made
            self._supervisor = Supervisor(made.layout, made.server.ca_bundle, made.token)
            self._supervisor.start((self._state.path,) if self._state.is_temporary else ())
        except BaseException:  # a keyboard interrupt must not leave anything behind either
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all components and remove a temporary directory. Calling it again does nothing."""
        if self._supervisor is not None:
            self._supervisor.stop()
        if self._state is not None:
            self._state.release()
        self._supervisor = self._installation = self._state = None

    @property
    def url(self) -> str:
        """Where the API server is: https://127.0.0.1:<port>."""
        return self._made.server.url

    @property
    def ca_bundle(self) -> bytes:
        """The CA (PEM) of the API server's certificate."""
        return self._made.server.ca_bundle

    @property
    def token(self) -> str:
        """The bearer token of the cluster's admin."""
        return self._made.token

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self._made.layout.files.kubeconfig(ADMIN_USER)

    @property
    def directory(self) -> Path:
        """Where state and logs (`<component>.log`) are."""
        return self._made.layout.files.directory

    @property
    def components(self) -> "Supervisor":
        """The single components: their process numbers, and how to kill, stop and start one."""
        if self._supervisor is None:
            raise ControlPlaneError("the control plane is not running")
        return self._supervisor

    def kubectl(
        self,
        *arguments: str,
        stdin: KubectlInput | None = None,
        user: str = ADMIN_USER,
        check: bool = True,
    ) -> "subprocess.CompletedProcess[str]":
        """Run kubectl as `user`; a mapping as `stdin` is written as JSON (for `-f -`).

        A failure raises KubectlError with kubectl's output; `check=False` returns it instead.
        """
        kubeconfig = self._made.layout.files.kubeconfig(user)
        if not kubeconfig.exists():
            raise ControlPlaneError(f"there is no user {user!r}; add it with add_user()")
        return self._made.kubectl.run(kubeconfig, arguments, stdin, check=check)

    async def kubectl_async(
        self,
        *arguments: str,
        stdin: KubectlInput | None = None,
        user: str = ADMIN_USER,
        check: bool = True,
    ) -> "subprocess.CompletedProcess[str]":
        """`kubectl` for coroutines: the event loop, which may serve a webhook, goes on."""
        return await asyncio.to_thread(
            self.kubectl, *arguments, stdin=stdin, user=user, check=check
        )

    def get(self, *arguments: str) -> Any:
        """Return the parsed JSON of `kubectl get <arguments>`."""
        return json.loads(self.kubectl("get", *arguments, "--output=json").stdout)

    def add_user(self, name: str, groups: tuple[str, ...] = ()) -> Path:
        """Add a user that may do nothing yet (RBAC grants it), and return its kubeconfig."""
        keys = self._made.authority.client(name, groups, datetime.now(UTC))
        kubeconfig = self._made.layout.files.kubeconfig(name)
        write_kubeconfig(kubeconfig, self._made.server, name, keys)
        return kubeconfig

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and wait until pods can be made in it."""
        metadata = {"name": name, "labels": dict(labels or {})}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        self.kubectl("create", "--filename=-", stdin=namespace)
        # Pods are refused until the controllers have made the default service account.
        timeout = f"--timeout={_WAIT_SECONDS}s"
        self.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, timeout)

    def wait_kinds(self, names: Iterable[str]) -> None:
        """Wait until kinds, named `plural.group`, can be read and made.

        A kind that is deleted while its storage still begins, which is after it is Established,
        stays for minutes: the API server tries again ever later.
        """
        found = tuple(names)
        definitions = [f"crd/{name}" for name in found]
        timeout = f"--timeout={_WAIT_SECONDS}s"
        self.kubectl("wait", "--for=condition=Established", timeout, *definitions)
        self.kubectl("get", ",".join(found), "--all-namespaces")

    def create_nodes(self, nodes: Iterable[Mapping[str, object]]) -> None:
        """Create Node objects and wait until KWOK has made all nodes of the cluster Ready."""
        items = [dict(node) for node in nodes]
        self.kubectl("create", "--filename=-", stdin=_list_of(items))
        self.wait_nodes_ready()

    def wait_nodes_ready(self) -> None:
        """Wait until every node is Ready and the scheduler may use it."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while waiting := [
            _name(node) for node in self.get("nodes")["items"] if not _is_ready(node)
        ]:
            self.components.check()
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f"nodes are not Ready after {_WAIT_SECONDS} s: {', '.join(waiting)}"
                )
            time.sleep(POLL_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    @property
    def _made(self) -> Installation:
        if self._installation is None:
            raise ControlPlaneError("the control plane is not running")
        return self._installation


def _list_of(items: list[dict[str, object]]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _name(node: Any) -> str:
    return str(node["metadata"]["name"])


def _is_ready(node: Any) -> bool:
    conditions = node["status"].get("conditions", [])
    is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return is_ready and all(t["key"] != _NOT_READY_TAINT for t in node["spec"].get("taints", []))
