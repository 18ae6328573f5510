# SPDX-License-Identifier: Apache-2.0
"""Ways around policy that are mended rather than refused: they lead nowhere."""

import json

import pytest

from policies.model.keys import MIRROR_ANNOTATION
from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import (
    DECISION,
    GATE,
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
)
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team

_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_LITERAL = [{"name": _VARIABLE, "value": "all"}]
_TWICE = [*_LITERAL, {"name": "A", "value": "b"}, {"name": _VARIABLE, "value": "0"}]
_FROM_FIELD = [{"name": _VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]


@pytest.mark.parametrize("env", [_LITERAL, _TWICE, _FROM_FIELD], ids=["all", "twice", "from-field"])
def test_visible_devices_without_a_request_become_void(team_a: Team, env: list[Json]) -> None:
    team_a.create(plain_pod(initContainers=[container("first", env=env)]))

    running = team_a.running("plain")
    (first,) = running["spec"]["initContainers"]
    values = [entry for entry in first["env"] if entry["name"] == _VARIABLE]
    assert values
    assert all(entry.get("value") == "void" for entry in values)
    assert void_containers(running) == {"main", "first"}


def _claim(**changes: object) -> str:
    added = {"nodeSelector": {}, "expressions": [], "affinityCreated": False, "tolerations": []}
    claim = {
        "v": 1,
        "generation": "0",
        "policy": "training-exclusive",
        "profiles": {"main": "whole"},
        "exclusive": True,
        "asked": {"main": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}},
        "given": {"main": {GPU: 1}},
        "added": added,
    }
    return json.dumps({**claim, **changes})


@pytest.mark.parametrize(
    "forged",
    [
        _claim(),
        _claim(asked={"main": {"limits": {SHARED: "1"}, "requests": {SHARED: "1"}}}),
        "not even JSON",
    ],
    ids=["as-if-exclusive", "as-if-a-share-was-asked", "garbage"],
)
def test_a_forged_decision_gives_nothing(team_a: Team, forged: str) -> None:
    labels = {"state.sluice.dev/charge": "0"}
    team_a.create(pod(annotations={DECISION: forged}, labels=labels))

    running = team_a.running()
    assert gpus(running) == {"main": {SHARED: "1"}}
    assert json.loads(decision(running) or "")["profiles"] == {"main": "slice-4"}
    assert "state.sluice.dev/charge" not in running["metadata"].get("labels", {})
    assert running["spec"]["nodeName"] == "h100-shared"


def test_another_scheduler_and_labels_change_nothing(team_a: Team) -> None:
    labels = {"sluice.dev/ignore": "true", "hami.io/webhook": "ignore"}
    team_a.create(pod(schedulerName="somebody-elses", labels=labels))

    assert gpus(team_a.pod()) == {"main": {SHARED: "1"}}


def test_sluices_gate_on_a_pod_without_gpus_is_taken_off(team_a: Team) -> None:
    team_a.create(plain_pod(schedulingGates=[{"name": GATE}]))

    assert gates(team_a.running("plain")) == []


def _mirror(node: str) -> Json:
    return pod(nodeName=node, annotations={MIRROR_ANNOTATION: "1"})


@pytest.fixture
def kubelet(control_plane: ControlPlane, team_a: Team) -> str:
    """The user of one node's kubelet, which may make pods in the namespace."""
    user = "system:node:h100-whole"
    control_plane.add_user(user, ("system:nodes",))
    granted = team_a.kubectl(
        "create", "rolebinding", "kubelet", "--clusterrole=admin", f"--user={user}"
    )
    assert granted.ok, granted.error
    return user


def test_a_mirror_pod_of_its_own_node_is_let_through_and_counted(
    team_a: Team, kubelet: str, sluice: Running
) -> None:
    answer = team_a.kubectl("create", "--filename=-", stdin=_mirror("h100-whole"), user=kubelet)

    assert answer.ok, answer.error
    lines = sluice.audited(team_a.namespace, lambda line: line["user"] == kubelet)
    assert lines[0]["asked"] == {GPU: 1}
    assert lines[0]["allowed"]


def test_a_kubelet_cannot_make_mirror_pods_of_other_nodes(team_a: Team, kubelet: str) -> None:
    answer = team_a.kubectl("create", "--filename=-", stdin=_mirror("a100-whole"), user=kubelet)

    assert "[NodeName]" in answer.error


def test_nobody_else_can_make_mirror_pods(team_a: Team) -> None:
    answer = team_a.kubectl("create", "--filename=-", stdin=_mirror("h100-whole"))

    assert "[NodeName]" in answer.error
    assert team_a.pods() == []
