# SPDX-License-Identifier: Apache-2.0
"""Where the real scheduler puts rewritten pods: on the nodes that give what policy gave."""

import pytest

from tests.integration.sluice.conftest import MakeTeam
from tests.integration.sluice.objects import (
    GPU,
    MIG,
    SHARED,
    Json,
    container,
    decision,
    gpus,
    pod,
    void_containers,
)
from tests.integration.sluice.team import Team

_TRAINING = {"workload": "training"}


@pytest.mark.parametrize(
    ("tenant", "asked", "given", "node"),
    [
        ("team-a", pod(), {SHARED: "1"}, "h100-shared"),
        ("team-m", pod(), {MIG: "1"}, "h100-mig"),
        ("team-t", pod(), {SHARED: "1"}, "h100-shared"),
        ("team-t", pod(container(gpus=2), labels=_TRAINING), {GPU: "2"}, "h100-whole"),
    ],
    ids=["time-slice", "mig", "time-slice-beside-training", "exclusive"],
)
def test_a_pod_runs_on_a_node_of_its_form(
    make_team: MakeTeam, tenant: str, asked: Json, given: dict[str, str], node: str
) -> None:
    team = make_team(tenant)

    team.create(asked)

    running = team.running()
    assert gpus(running) == {"main": given}
    assert running["spec"]["nodeName"] == node


def test_two_containers_get_a_share_each(team_a: Team) -> None:
    team_a.create(pod(container("first", gpus=1), container("second", gpus="1")))

    running = team_a.running()
    assert gpus(running) == {"first": {SHARED: "1"}, "second": {SHARED: "1"}}
    assert running["spec"]["nodeName"] == "h100-shared"


def test_an_init_container_gets_the_same_form_as_the_app(team_m: Team) -> None:
    warm_up = container("warm-up", gpus=1)
    team_m.create(pod(container(gpus=1), container("log"), initContainers=[warm_up]))

    running = team_m.running()
    assert gpus(running) == {"warm-up": {MIG: "1"}, "main": {MIG: "1"}}
    assert void_containers(running) == {"log"}
    assert running["spec"]["nodeName"] == "h100-mig"


def test_a_gpu_in_an_init_container_alone_is_rewritten(team_a: Team) -> None:
    team_a.create(pod(container(), initContainers=[container("convert", gpus=1)]))

    running = team_a.running()
    assert gpus(running) == {"convert": {SHARED: "1"}}
    assert void_containers(running) == {"main"}
    assert running["spec"]["nodeName"] == "h100-shared"


def test_a_sidecar_gets_a_share_beside_the_app(team_m: Team) -> None:
    sidecar = container("metrics", gpus=1, restartPolicy="Always")
    team_m.create(pod(container(gpus=1), initContainers=[sidecar]))

    running = team_m.running()
    assert gpus(running) == {"metrics": {MIG: "1"}, "main": {MIG: "1"}}
    assert '"metrics"' in (decision(running) or "")


def test_requests_and_limits_that_agree_are_both_rewritten(team_a: Team) -> None:
    both = {"limits": {GPU: "1", "memory": "4Gi"}, "requests": {GPU: 1, "memory": "1Gi"}}
    team_a.create(pod(container(resources=both)))

    (main,) = team_a.running()["spec"]["containers"]
    assert main["resources"] == {
        "limits": {SHARED: "1", "memory": "4Gi"},
        "requests": {SHARED: "1", "memory": "1Gi"},
    }


def test_a_users_own_affinity_stands_beside_what_the_form_needs(team_a: Team) -> None:
    zone = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    team_a.create(pod(affinity=affinity, nodeSelector={"kubernetes.io/os": "linux"}))

    spec = team_a.running()["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert zone in required["nodeSelectorTerms"][0]["matchExpressions"]
    assert spec["nodeSelector"]["kubernetes.io/os"] == "linux"
    assert spec["nodeName"] == "h100-shared"


def test_a_zero_is_no_gpu(team_a: Team) -> None:
    team_a.create(pod(container(gpus=0)))

    running = team_a.running()
    assert gpus(running) == {"main": {GPU: "0"}}
    assert void_containers(running) == {"main"}
    assert running["spec"]["nodeName"] == "cpu"
