# SPDX-License-Identifier: Apache-2.0
"""Shares that are found by a need, limited, kept apart and spared, on the real scheduler."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.integration.sluice.conftest import MakeTeam
from tests.integration.sluice.objects import GPU, MIG, SHARED, Json, container, gates, gpus, pod
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until

_TENANT: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: {name}}}
spec: {{namespaces: {{selector: {{matchLabels: {{tenant: {name}}}}}}}}}
---
"""
_FIT, _ONE, _OTHER, _BENCH = "fit-team", "secret-one", "secret-other", "bench-team"
_DOCUMENTS: Final = (
    "".join(_TENANT.format(name=name) for name in (_FIT, _ONE, _OTHER, _BENCH))
    + """
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: mps-8}
spec: {mode: MPS, replicas: 8, products: [NVIDIA-A100-SXM4-80GB]}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: own-halves}
spec: {mode: TimeSlice, replicas: 2, products: [NVIDIA-H100-80GB-HBM3], shareWith: Tenant}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: by-mps}
spec:
  order: 20
  match: {tenants: [fit-team], labels: {matchLabels: {serve: mps}}}
  rewrite: {fit: {memory: {annotation: sluice.dev/gpu-memory}, candidates: [mps-8]}}
  memoryLimit: {fromFit: true, minimumStrength: Process}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: by-need}
spec:
  order: 30
  match: {tenants: [fit-team]}
  rewrite:
    fit:
      memory: {annotation: sluice.dev/gpu-memory}
      candidates: [slice-4, h100-1g.10gb, h100-2g.20gb, h100-3g.40gb, whole]
  memoryLimit: {fromFit: true, minimumStrength: Process}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: on-own-nodes}
spec:
  order: 30
  match: {tenants: [secret-one, secret-other, bench-team]}
  rewrite: {profile: own-halves}
"""
)
_EXEMPTION: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Exemption
metadata: {{name: benchmark}}
spec:
  policies: [on-own-nodes]
  match: {{namespaces: [{namespace}]}}
  reason: The comparison needs whole cards
  expiresAt: "2099-01-01T00:00:00Z"
"""
_FILE, _EXEMPTION_FILE = "shares.yaml", "exemption.yaml"


@pytest.fixture(scope="module")
def shares(sluice: Running, control_plane: ControlPlane) -> Iterator[Running]:
    """Sluice with these documents, and nodes of MPS and of halves; both go with the module."""
    names = ("a100-mps", "h100-halves")
    control_plane.create_nodes(
        [nodes.mps("a100-mps"), nodes.time_sliced("h100-halves", replicas=2)]
    )
    try:
        sluice.write(_FILE, _DOCUMENTS)
        sluice.follow()
        yield sluice
    finally:
        for file in (_FILE, _EXEMPTION_FILE):
            (sluice.policies / file).unlink(missing_ok=True)
        sluice.follow()
        control_plane.kubectl("delete", "node", *names)


@pytest.fixture
def fit_team(shares: Running, make_team: MakeTeam) -> Team:
    """A namespace where a pod gets the smallest share that holds what it states."""
    return make_team(_FIT)


def _states(memory: str, **parts: Any) -> Json:
    return pod(annotations={"sluice.dev/gpu-memory": memory}, **parts)


@pytest.mark.parametrize(
    ("memory", "given"),
    [("8Gi", MIG), ("8589934592", MIG), ("30Gi", "nvidia.com/mig-3g.40gb")],
)
def test_a_pod_runs_on_the_smallest_instance_that_holds_what_it_states(
    fit_team: Team, memory: str, given: str
) -> None:
    fit_team.create(_states(memory))

    running = fit_team.running()
    assert gpus(running) == {"main": {given: "1"}}
    assert running["spec"]["nodeName"] == "h100-mig"


def test_what_fits_nowhere_is_refused_with_the_largest_share(fit_team: Team) -> None:
    answer = fit_team.apply(_states("90Gi"))

    assert not answer.ok
    assert (
        "sluice: [NoCandidateFits] container main needs 90 GiB on each GPU: the largest share here "
        "has 79 GiB (whole); state less, or use several GPUs" in answer.error
    )
    assert fit_team.pods() == []


def test_an_mps_share_runs_on_its_node_with_the_limit_of_each_process(fit_team: Team) -> None:
    asked = _states("6Gi", labels={"serve": "mps"})
    # Sluice may not have seen the new node yet.
    until(lambda: fit_team.apply(asked, dry_run=True).ok, "Sluice's notice of the MPS node")

    fit_team.create(asked)

    running = fit_team.running()
    (main,) = running["spec"]["containers"]
    assert gpus(running) == {"main": {SHARED: "1"}}
    assert {"name": "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "value": "0=6144M"} in main["env"]
    assert running["spec"]["nodeName"] == "a100-mps"


def test_tenants_that_share_with_nobody_never_sit_on_one_node(
    shares: Running, make_team: MakeTeam
) -> None:
    one, other = make_team(_ONE), make_team(_OTHER)
    one.create(pod(name="first"), pod(name="second"))
    assert {one.running(name)["spec"]["nodeName"] for name in ("first", "second")} == {
        "h100-halves"
    }

    other.create(pod())

    other.event("FailedScheduling", "anti-affinity")
    assert gates(other.pod()) == []
    assert "nodeName" not in other.pod()["spec"]
    assert one.kubectl("delete", "pod", "--all", "--wait=true").ok
    assert other.running()["spec"]["nodeName"] == "h100-halves"


def test_an_exempt_namespace_gets_whole_gpus_and_the_others_of_its_tenant_do_not(
    shares: Running, make_team: MakeTeam
) -> None:
    exempt, usual = make_team(_BENCH), make_team(_BENCH)
    shares.write(_EXEMPTION_FILE, _EXEMPTION.format(namespace=exempt.namespace))
    shares.follow()
    two = pod(container(gpus=2))

    answer = exempt.apply(two)

    assert answer.ok, answer.error
    assert "sluice: exempt from policy on-own-nodes until 2099-01-01 by benchmark" in (
        answer.warnings
    )
    running = exempt.running()
    assert gpus(running) == {"main": {GPU: "2"}}
    assert running["spec"]["nodeName"] == "h100-whole"
    assert "[MultipleShares]" in usual.apply(two).error
