# SPDX-License-Identifier: Apache-2.0
"""Sluice installed with two tenants of one cohort, and a namespace of the one that is looked at."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.controlplane import ControlPlane
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.replica import ROOT
from tests.integration.sluice.objects import GATE, Json, pod
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.team import Team, new_team, until

NAME: Final = "seen"
LENDER: Final = "lender"

DOCUMENTS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: seen}
spec:
  namespaces: {selector: {matchLabels: {tenant: seen}}}
  quota: {gpus: {guarantee: 1, ceiling: 3}}
  cohort: main
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: lender}
spec:
  namespaces: {selector: {matchLabels: {tenant: lender}}}
  quota: {gpus: {guarantee: 2}}
  cohort: main
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


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("policies")
    (directory / "all.yaml").write_text(DOCUMENTS, encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def sluice(
    control_plane: ControlPlane, policies: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InstalledSluice]:
    directory = tmp_path_factory.mktemp("visible")
    with InstalledSluice(control_plane, policies, directory / "run") as installed:
        yield installed


@pytest.fixture
def team(sluice: InstalledSluice, control_plane: ControlPlane, rest: Rest) -> Iterator[Team]:
    """A fresh namespace of the tenant that is looked at; its pods end with the test."""
    sluice.check()
    made = new_team(control_plane, rest, NAME)
    yield made
    made.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=true")
    rest.request("DELETE", made.path)


def is_released(item: Json) -> bool:
    return GATE not in [gate["name"] for gate in item["spec"].get("schedulingGates", [])]


def status(rest: Rest, tenant: str = NAME) -> Json:
    code, answer = rest.request("GET", f"/apis/sluice.dev/v1alpha1/tenants/{tenant}")
    found: Json = answer.get("status", {}) if code == 200 else {}
    return found


def says(rest: Rest, tenant: str = NAME, **wanted: Any) -> Json:
    """Wait until the tenant's status says so, and return it."""
    return until(
        lambda: found if (found := status(rest, tenant)).items() >= wanted.items() else {},
        f"a status with {wanted}: {status(rest, tenant)}",
    )


def gpus(count: int, name: str) -> Json:
    limits = {"nvidia.com/gpu": count}
    return pod(
        {"name": "main", "image": "registry.test/image", "resources": {"limits": limits}}, name=name
    )


def command(
    sluice: InstalledSluice, *arguments: str, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run sluice.py as a person does, with the little that its account may do."""
    argv = [sys.executable, str(ROOT / "sluice.py"), *arguments]
    environment = {"KUBECONFIG": str(sluice.kubeconfig), "PATH": "", "COLUMNS": "200"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code, done.stderr
    return done
