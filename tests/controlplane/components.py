# SPDX-License-Identifier: Apache-2.0
"""What each component of the control plane is told on its command line.

Pure: from ports, files and options to Commands. Flags are those of Kubernetes 1.37, etcd 3.7 and
KWOK 0.8. Starting and stopping is not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tests.controlplane.ports import HOST
from tests.controlplane.processes import Command

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"

ADMIN_USER = "admin"
CONTROLLER_MANAGER_USER = "system:kube-controller-manager"
SCHEDULER_USER = "system:kube-scheduler"

_SERVICE_RANGE = "10.0.0.0/24"
_NODE_ADDRESS = "10.1.0.1"


@dataclass(frozen=True, slots=True)
class Options:
    """How a control plane differs from the plain one.

    `scheduler_config` replaces top-level fields of the KubeSchedulerConfiguration (`profiles`,
    `extenders`, ...). Arguments are added after the harness's own, so that the last one wins.
    """

    apiserver_arguments: tuple[str, ...] = ()
    scheduler_arguments: tuple[str, ...] = ()
    scheduler_config: Mapping[str, object] = field(default_factory=dict)
    controller_manager_qps: int = 200
    start_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of one control plane."""

    etcd_client: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int
    kwok: int


@dataclass(frozen=True, slots=True)
class Files:
    """Where one control plane keeps its files, all below one directory."""

    directory: Path

    @property
    def etcd_data(self) -> Path:
        return self.directory / "etcd"

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.directory / "server.crt"

    @property
    def key(self) -> Path:
        return self.directory / "server.key"

    @property
    def signing_key(self) -> Path:
        return self.directory / "service-account.key"

    @property
    def verifying_key(self) -> Path:
        return self.directory / "service-account.pub"

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.csv"

    @property
    def scheduler_config(self) -> Path:
        return self.directory / "kube-scheduler.yaml"

    @property
    def stages(self) -> Path:
        return self.directory / "kwok-stages.yaml"

    def kubeconfig(self, user: str) -> Path:
        return self.directory / f"{quote(user, safe='')}.kubeconfig"

    def log(self, component: str) -> Path:
        return self.directory / f"{component}.log"


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that the command lines are made from."""

    binaries: Mapping[str, Path]
    ports: Ports
    files: Files
    options: Options


def etcd(layout: Layout) -> Command:
    """The store; without fsync, since nothing here must survive the machine."""
    client = f"http://{HOST}:{layout.ports.etcd_client}"
    peer = f"http://{HOST}:{layout.ports.etcd_peer}"
    arguments = (
        f"--data-dir={layout.files.etcd_data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    )
    return _command(layout, ETCD, arguments, layout.ports.etcd_client, "/health", is_tls=False)


def apiserver(layout: Layout) -> Command:
    """The API server, with RBAC, the token file and client certificates of our CA."""
    files = layout.files
    arguments = (
        f"--etcd-servers=http://{HOST}:{layout.ports.etcd_client}",
        *_serving(layout, layout.ports.apiserver),
        f"--advertise-address={HOST}",
        f"--client-ca-file={files.ca}",
        f"--token-auth-file={files.tokens}",
        # Without these the controllers and the scheduler fill their logs with complaints.
        f"--requestheader-client-ca-file={files.ca}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        f"--service-account-key-file={files.verifying_key}",
        f"--service-account-signing-key-file={files.signing_key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        *layout.options.apiserver_arguments,
    )
    return _command(layout, APISERVER, arguments, layout.ports.apiserver, "/readyz")


def controller_manager(layout: Layout) -> Command:
    """The controllers of Deployments, Jobs, namespaces and so on."""
    files = layout.files
    qps = layout.options.controller_manager_qps
    arguments = (
        *_client(layout, CONTROLLER_MANAGER_USER),
        *_serving(layout, layout.ports.controller_manager),
        f"--service-account-private-key-file={files.signing_key}",
        f"--root-ca-file={files.ca}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--kube-api-qps={qps}",
        f"--kube-api-burst={2 * qps}",
    )
    port = layout.ports.controller_manager
    return _command(layout, CONTROLLER_MANAGER, arguments, port, "/healthz")


def scheduler(layout: Layout) -> Command:
    """The real scheduler, with the file that holds `scheduler_config`."""
    kubeconfig = layout.files.kubeconfig(SCHEDULER_USER)
    arguments = (
        f"--config={layout.files.scheduler_config}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        *_serving(layout, layout.ports.scheduler),
        *layout.options.scheduler_arguments,
    )
    return _command(layout, SCHEDULER, arguments, layout.ports.scheduler, "/readyz")


def kwok(layout: Layout) -> Command:
    """The kubelet of every simulated node."""
    arguments = (
        f"--kubeconfig={layout.files.kubeconfig(ADMIN_USER)}",
        f"--config={layout.files.stages}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--node-ip={_NODE_ADDRESS}",
        f"--server-address={HOST}:{layout.ports.kwok}",
    )
    return _command(layout, KWOK, arguments, layout.ports.kwok, "/healthz", is_tls=False)


def scheduler_config(layout: Layout) -> dict[str, object]:
    """The KubeSchedulerConfiguration with the options' fields in place of the harness's own."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(layout.files.kubeconfig(SCHEDULER_USER)),
            "qps": 1000,
            "burst": 2000,
        },
        **layout.options.scheduler_config,
    }


def _command(
    layout: Layout,
    name: str,
    arguments: tuple[str, ...],
    port: int,
    health: str,
    *,
    is_tls: bool = True,
) -> Command:
    return Command(name, (str(layout.binaries[name]), *arguments), port, health, is_tls=is_tls)


def _serving(layout: Layout, port: int) -> tuple[str, ...]:
    return (
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        f"--tls-cert-file={layout.files.certificate}",
        f"--tls-private-key-file={layout.files.key}",
        f"--cert-dir={layout.files.directory}",
    )


def _client(layout: Layout, user: str) -> tuple[str, ...]:
    kubeconfig = layout.files.kubeconfig(user)
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    )
