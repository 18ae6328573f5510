# SPDX-License-Identifier: Apache-2.0
"""Mode Observe: everything is decided, logged and counted, and nothing is changed or refused."""

from collections.abc import Iterator

import pytest

from tests.integration.sluice.conftest import MakeTeam
from tests.integration.sluice.objects import (
    GPU,
    SHARED,
    Json,
    container,
    decision,
    gates,
    gpus,
    plain_pod,
    pod,
    void_containers,
    workload,
)
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until

_FILE = "settings.yaml"
_SETTINGS = """
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata:
  name: cluster
spec:
  mode: Observe
"""
_OBSERVED = "sluice: in mode Observe, nothing was changed or refused: "


@pytest.fixture(scope="module")
def observing(sluice: Running) -> Iterator[Running]:
    """Sluice installed to observe; it enforces again in the end."""
    sluice.write(_FILE, _SETTINGS)
    try:
        sluice.follow()
        sluice.installed.render_anew(observe=True)
        yield sluice
    finally:
        (sluice.policies / _FILE).unlink()
        sluice.follow()
        sluice.installed.render_anew(observe=False)
        sluice.installed.wait_registered()


@pytest.fixture
def team(observing: Running, make_team: MakeTeam) -> Team:
    """A namespace of a tenant, once the API server has followed."""
    made = make_team("team-a")
    until(lambda: _is_left_alone(made), "no more variables being set")
    return made


def _is_left_alone(team: Team) -> bool:
    asked = plain_pod("probe")
    answer = team.kubectl("create", "--dry-run=server", "-o=json", "-f=-", stdin=asked)
    return answer.ok and "void" not in answer.out


def test_a_pod_stays_as_it_was_written_and_its_user_is_told_what_would_be(team: Team) -> None:
    answer = team.apply(pod(container(gpus=1), container("beside")))

    assert answer.ok, answer.error
    (warning,) = answer.warnings
    assert warning.startswith(f"{_OBSERVED}nvidia.com/gpu 1 -> {SHARED} 1 (")
    made = team.pod()
    assert gpus(made) == {"main": {GPU: "1"}}
    assert gates(made) == []
    assert decision(made) is None
    assert void_containers(made) == set()
    assert "affinity" not in made["spec"]
    assert "nodeSelector" not in made["spec"]


_REFUSED: dict[str, tuple[Json, str]] = {
    "too-many-shares": (pod(container(gpus=2)), "MultipleShares"),
    "privileged": (
        pod(container(gpus=1, securityContext={"privileged": True})),
        "HostAccess",
    ),
    "device-path": (
        plain_pod("gpu", volumes=[{"name": "d", "hostPath": {"path": "/dev/nvidia0"}}]),
        "HostAccess",
    ),
}


@pytest.mark.parametrize(("asked", "reason"), _REFUSED.values(), ids=_REFUSED)
def test_what_would_be_refused_is_let_in_and_on_record(
    observing: Running, team: Team, asked: Json, reason: str
) -> None:
    def counted() -> float:
        labels = {"mode": "Observe", "verdict": "Denied", "reason": reason, "dry_run": "false"}
        return observing.metric("sluice_reviews_total", **labels)

    before = counted()

    answer = team.apply(asked)

    assert answer.ok, answer.error
    (warning,) = answer.warnings
    assert warning.startswith(f"{_OBSERVED}would be denied: [{reason}] ")
    lines = observing.audited(
        team.namespace, lambda line: line["name"] == "gpu" and not line["dryRun"], count=2
    )
    for line in lines:
        assert (line["mode"], line["verdict"], line["allowed"]) == ("Observe", "Denied", True)
        assert line["reasons"][0] == reason
    assert counted() == before + len(lines)


def test_the_audit_log_says_what_a_pod_would_have_become(observing: Running, team: Team) -> None:
    team.create(pod())

    lines = observing.audited(team.namespace, lambda line: not line["dryRun"], count=2)
    for line in lines:
        assert (line["mode"], line["verdict"], line["reasons"]) == ("Observe", "Allowed", [])
        assert (line["policy"], line["given"]) == ("quarter", {SHARED: 1})
    paths = {operation["path"] for operation in lines[0]["patch"]}
    assert paths >= {"/spec/schedulingGates", "/spec/nodeSelector"}


def test_a_workload_runs_as_it_was_written(team: Team) -> None:
    tolerations = [{"key": GPU, "operator": "Exists"}]
    answer = team.apply(workload("Deployment", pod(tolerations=tolerations)))

    assert answer.ok, answer.error
    assert answer.warnings[0].startswith(_OBSERVED)
    (made,) = team.placed()
    assert gpus(made) == {"main": {GPU: "1"}}
    assert made["spec"]["nodeName"] in {"h100-whole", "a100-whole"}


def test_a_gpu_outside_of_every_tenant_is_let_in(observing: Running, make_team: MakeTeam) -> None:
    stranger = make_team("none")

    answer = stranger.apply(pod())

    assert answer.ok, answer.error
    (warning,) = answer.warnings
    assert warning.startswith(f"{_OBSERVED}would be denied: [NoTenant] ")


def test_nothing_is_refused_while_sluice_is_down(observing: Running, team: Team) -> None:
    with observing.stopped():
        team.create(pod(), plain_pod())

    assert gpus(team.pod()) == {"main": {GPU: "1"}}
    assert void_containers(team.pod("plain")) == set()


def test_keys_of_sluice_are_nobodys_yet(team: Team) -> None:
    team.create(plain_pod())

    answer = team.kubectl("annotate", "pod/plain", "state.sluice.dev/decision=mine")

    assert answer.ok, answer.error
