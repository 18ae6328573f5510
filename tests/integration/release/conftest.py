# SPDX-License-Identifier: Apache-2.0
"""Sluice installed, a tenant whose pods wait, and people who break the glass."""

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.replica import ROOT
from tests.integration.sluice.objects import HOLD, Json, container, pod
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, new_team, until

TENANT: Final = "waiting"
_SECONDS: Final = 60
_REASON: Final = "state.sluice.dev/reason"

DOCUMENTS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: waiting}
spec:
  namespaces: {selector: {matchLabels: {tenant: waiting}}}
  quota: {gpus: {ceiling: 1}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: h100}
spec: {mode: Exclusive, products: [NVIDIA-H100-80GB-HBM3]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: whole-h100}
spec: {order: 1, rewrite: {profile: h100}}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command printed, its exit code, and the lines of its audit log."""

    code: int
    out: str
    error: str
    audit: tuple[Json, ...]


class Release(Protocol):
    """Runs `sluice release` as a person does, who answers `answer` to what they are asked."""

    def __call__(
        self, *arguments: str, kubeconfig: Path | None = None, answer: str = ""
    ) -> Done: ...


@pytest.fixture(scope="package")
def sluice(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InstalledSluice]:
    """Sluice as its manifests install it; a test that stops it starts it again."""
    directory = tmp_path_factory.mktemp("release")
    (directory / "policies").mkdir()
    (directory / "policies" / "all.yaml").write_text(DOCUMENTS, encoding="utf-8")
    with InstalledSluice(control_plane, directory / "policies", directory / "run") as installed:
        yield installed


@pytest.fixture
def team(sluice: InstalledSluice, control_plane: ControlPlane, rest: Rest) -> Iterator[Team]:
    """A fresh namespace in which `first` runs, and `second` and `third` wait for its quota."""
    sluice.check()
    made = waiting_team(control_plane, rest)
    yield made
    made.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=true")
    rest.request("DELETE", made.path)


def waiting_team(control_plane: ControlPlane, rest: Rest) -> Team:
    """Make such a namespace, which stays; `third` has a gate of others too."""
    made = new_team(control_plane, rest, TENANT)
    made.create(pod(name="first"))
    made.running("first")
    gates = [{"name": HOLD}]
    made.create(pod(name="second"), pod(container(gpus=1), name="third", schedulingGates=gates))
    until(lambda: annotation(made.pod("second"), _REASON), "the reason of a pod that waits")
    return made


@pytest.fixture
def release(control_plane: ControlPlane, tmp_path: Path) -> Release:
    """By default as the cluster's admin."""
    return releasing(control_plane, tmp_path)


def releasing(control_plane: ControlPlane, directory: Path) -> Release:
    """Return what runs the command in a directory, by default as the cluster's admin."""

    def run(*arguments: str, kubeconfig: Path | None = None, answer: str = "") -> Done:
        log = directory / f"{secrets.token_hex(4)}.jsonl"
        argv = [sys.executable, str(ROOT / "sluice.py"), "release", f"--audit={log}", *arguments]
        access = str(kubeconfig or control_plane.kubeconfig)
        environment = {"KUBECONFIG": access, "PATH": "", "COLUMNS": "200"}
        done = subprocess.run(
            argv,
            input=answer,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=directory,
            timeout=_SECONDS,
        )
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        audit = tuple(json.loads(line) for line in lines)
        return Done(done.returncode, done.stdout, done.stderr, audit)

    return run


@pytest.fixture
def without_sluice(sluice: InstalledSluice) -> Iterator[Callable[[], None]]:
    """A function that ends Sluice; it is there again after the test."""

    def stop() -> None:
        sluice.stop()

    yield stop
    if not sluice.is_started:
        sluice.start()
        sluice.wait_registered()


def annotation(item: Mapping[str, Any], key: str) -> str:
    """Return an annotation of an object, empty where it has none."""
    found: str = item["metadata"].get("annotations", {}).get(key, "")
    return found


def gates(item: Mapping[str, Any]) -> list[str]:
    """Return the names of a pod's gates."""
    return [gate["name"] for gate in item["spec"].get("schedulingGates", [])]
