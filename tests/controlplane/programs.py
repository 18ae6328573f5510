# SPDX-License-Identifier: Apache-2.0
"""Which programs a control plane and its monitoring consist of, and at which versions.

The go.mod files beside this module are the one place where versions are pinned; the cache key is
derived from them, so that a changed pin is never served by an old binary. Nothing here runs a
program.
"""

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
_GO_DIRECTIVE = re.compile(r"^go (\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Module:
    """A folder with a go.mod that pins one upstream module; `go build` runs there."""

    directory: Path
    path: str
    tags: tuple[str, ...] = ()
    """Build tags of upstream's own."""

    @property
    def name(self) -> str:
        """The folder's name, which says what comes from there."""
        return self.directory.name

    @property
    def version(self) -> str:
        """The pinned version with its leading v, such as v1.37.2."""
        pin = re.compile(rf"^(?:require |\t){re.escape(self.path)} (v\S+)", re.MULTILINE)
        found = pin.search(self._go_mod)
        if found is None:
            raise ValueError(f"{self.directory / 'go.mod'} does not require {self.path}")
        return found[1]

    @property
    def go_version(self) -> tuple[int, int]:
        """The oldest Go release that builds it, as (major, minor)."""
        found = _GO_DIRECTIVE.search(self._go_mod)
        if found is None:
            raise ValueError(f"{self.directory / 'go.mod'} has no go directive")
        return int(found[1]), int(found[2])

    @property
    def _go_mod(self) -> str:
        return (self.directory / "go.mod").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Program:
    """One binary: the Go package that it is built from, and how long that takes the first time."""

    name: str
    module: Module
    package: str
    cold_build_seconds: int


KUBERNETES = Module(HERE / "kubernetes", "k8s.io/kubernetes")
ETCD = Module(HERE / "etcd", "go.etcd.io/etcd/server/v3")
KWOK = Module(HERE / "kwok", "sigs.k8s.io/kwok")

MODULES = (KUBERNETES, ETCD, KWOK)

# In this order the programs of Kubernetes share most of what the first one compiled. Times are for
# two cores.
PROGRAMS = (
    Program("kube-apiserver", KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver", 400),
    Program(
        "kube-controller-manager", KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager", 140
    ),
    Program("kube-scheduler", KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler", 20),
    Program("kubectl", KUBERNETES, "k8s.io/kubernetes/cmd/kubectl", 35),
    Program("etcd", ETCD, "go.etcd.io/etcd/server/v3", 35),
    Program("kwok", KWOK, "sigs.k8s.io/kwok/cmd/kwok", 100),
)


# Without discovery in clouds, whose SDKs are most of what would be built; file and HTTP stay.
PROMETHEUS = Module(HERE / "prometheus", "github.com/prometheus/prometheus", ("remove_all_sd",))


@dataclass(frozen=True, slots=True)
class Kit:
    """Programs that are built and kept together; another kit's pins do not make them stale."""

    name: str
    title: str
    modules: tuple[Module, ...]
    programs: tuple[Program, ...]


CONTROL_PLANE = Kit("controlplane", "control plane", MODULES, PROGRAMS)
MONITORING = Kit(
    "monitoring",
    "monitoring",
    (PROMETHEUS,),
    (
        Program("prometheus", PROMETHEUS, "github.com/prometheus/prometheus/cmd/prometheus", 100),
        Program("promtool", PROMETHEUS, "github.com/prometheus/prometheus/cmd/promtool", 45),
    ),
)
KITS = (CONTROL_PLANE, MONITORING)


def cache_key(modules: tuple[Module, ...] = MODULES) -> str:
    """Name a set of binaries: their versions, the architecture, and a hash of every pin."""
    pins = hashlib.sha256()
    for module in modules:
        for name in ("go.mod", "go.sum"):
            pins.update((module.directory / name).read_bytes())
    versions = "-".join(f"{module.name}-{module.version.removeprefix('v')}" for module in modules)
    return f"{versions}-{platform.machine()}-{pins.hexdigest()[:12]}"
