# SPDX-License-Identifier: Apache-2.0
"""Sluice is down: pods that touch no GPU must not notice, and no GPU pod gets through."""

import json

from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import (
    DECISION,
    GPU,
    HOLD,
    IMAGE,
    SHARED,
    container,
    decision,
    gates,
    gpus,
    plain_pod,
    pod,
    void_containers,
    workload,
)
from tests.integration.sluice.rest import Rest
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until

_NO_ANSWER = 'failed calling webhook "validate.sluice.dev"'


def test_pods_without_gpus_start_and_get_void(sluice: Running, team_a: Team) -> None:
    asks_for_all = container("init", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])
    debug = ("debug", "plain", f"--image={IMAGE}", "--attach=false", "--container=debugger")
    with sluice.stopped():
        team_a.create(plain_pod(initContainers=[asks_for_all]), workload("Deployment", plain_pod()))

        assert void_containers(team_a.running("plain")) == {"init", "main"}
        for made in team_a.placed(2):
            assert "main" in void_containers(made)
        debugged = team_a.kubectl(*debug)
        assert debugged.ok, debugged.error
        assert "debugger" in void_containers(team_a.pod("plain"))


def test_gpu_pods_are_refused_and_all_works_when_it_is_back(sluice: Running, team_a: Team) -> None:
    with sluice.stopped():
        for dry_run in (True, False):
            refused = team_a.apply(pod(), dry_run=dry_run)
            assert not refused.ok
            assert _NO_ANSWER in refused.error
        assert team_a.pods() == []

    team_a.create(pod())
    assert gpus(team_a.running()) == {"main": {SHARED: "1"}}


def test_a_sluice_that_hangs_stops_no_other_pods_and_lets_no_gpu_pod_in(
    sluice: Running, team_a: Team
) -> None:
    """The mutating call runs out of time and is ignored; so does the validating one, and fails."""
    with sluice.installed.frozen():
        team_a.create(plain_pod())
        assert void_containers(team_a.running("plain")) == {"main"}

        refused = team_a.apply(pod())

    assert not refused.ok
    assert _NO_ANSWER in refused.error
    assert "context deadline exceeded" in refused.error
    assert [made["metadata"]["name"] for made in team_a.pods()] == ["plain"]
    team_a.create(pod())
    assert gpus(team_a.running()) == {"main": {SHARED: "1"}}


def test_a_deployment_made_meanwhile_gets_its_pods_afterwards(
    sluice: Running, team_a: Team
) -> None:
    with sluice.stopped():
        answer = team_a.apply(workload("Deployment", pod()))
        assert answer.ok, answer.error
        assert answer.warnings == ()
        team_a.event("FailedCreate", _NO_ANSWER)

    (made,) = team_a.placed()
    assert gpus(made) == {"main": {SHARED: "1"}}


def test_pods_of_the_cluster_itself_start_whatever_they_ask_for(
    sluice: Running, control_plane: ControlPlane, rest: Rest
) -> None:
    system = Team(control_plane, rest, "kube-system")
    tolerations = [{"key": GPU, "operator": "Exists"}]
    driver = container(gpus=1, securityContext={"privileged": True})
    try:
        with sluice.stopped():
            system.create(pod(driver, name="driver", tolerations=tolerations, hostPID=True))
            assert gpus(system.running("driver")) == {"main": {GPU: "1"}}
    finally:
        system.kubectl("delete", "pod/driver", "--ignore-not-found")


def test_sluices_own_pods_start(sluice: Running, control_plane: ControlPlane, rest: Rest) -> None:
    own = Team(control_plane, rest, "sluice")
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    try:
        with sluice.stopped():
            own.create(pod(container(securityContext=restricted), name="replica"))
            own.running("replica")
    finally:
        own.kubectl("delete", "pod/replica", "--ignore-not-found")


def test_gpu_pods_that_run_can_be_labelled_and_deleted(sluice: Running, team_a: Team) -> None:
    kept = pod()
    kept["metadata"]["finalizers"] = ["example.test/keep"]
    team_a.create(kept)
    team_a.running()
    with sluice.stopped():
        for arguments in (
            ("label", "pod/gpu", "workload=inference"),
            ("annotate", "pod/gpu", "example.test/team=a"),
            ("delete", "pod/gpu", "--wait=false"),
            ("patch", "pod/gpu", "--type=merge", '--patch={"metadata":{"finalizers":[]}}'),
        ):
            answer = team_a.kubectl(*arguments)
            assert answer.ok, answer.error
        until(lambda: not team_a.pods(), "the pod's end")


def test_gpu_pods_that_run_can_be_evicted(sluice: Running, team_a: Team) -> None:
    team_a.create(pod())
    team_a.running()
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "gpu"}}
    path = f"/api/v1/namespaces/{team_a.namespace}/pods/gpu/eviction"
    with sluice.stopped():
        answer = team_a.kubectl("create", f"--raw={path}", "--filename=-", stdin=eviction)

        assert answer.ok, answer.error
        until(lambda: not team_a.pods(), "the pod's end")


def test_what_sluice_owns_stays_its_own(sluice: Running, team_a: Team) -> None:
    team_a.create(pod(schedulingGates=[{"name": HOLD}]))
    before = team_a.pod()
    metadata = json.dumps({"metadata": {"annotations": {DECISION: "mine"}}})
    no_gates = json.dumps([{"op": "replace", "path": "/spec/schedulingGates", "value": []}])
    with sluice.stopped():
        for arguments in (
            ("--type=merge", f"--patch={metadata}"),
            ("--type=merge", f"--patch={metadata}", "--subresource=status"),
            ("--type=json", f"--patch={no_gates}"),
        ):
            assert not team_a.kubectl("patch", "pod/gpu", *arguments).ok
    after = team_a.pod()
    assert decision(after) == decision(before) is not None
    assert gates(after) == gates(before)


def test_a_pod_gated_before_is_released_afterwards(sluice: Running, team_a: Team) -> None:
    team_a.create(pod(schedulingGates=[{"name": HOLD}]))
    index = gates(team_a.pod()).index(HOLD)
    no_hold = json.dumps([{"op": "remove", "path": f"/spec/schedulingGates/{index}"}])
    with sluice.stopped():
        pass

    answer = team_a.kubectl("patch", "pod/gpu", "--type=json", f"--patch={no_hold}")

    assert answer.ok, answer.error
    assert gates(team_a.running()) == []
