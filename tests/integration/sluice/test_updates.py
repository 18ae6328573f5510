# SPDX-License-Identifier: Apache-2.0
"""Changes of GPU pods: what Sluice owns in them is nobody else's, all the rest is their user's."""

import json

import pytest

from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import (
    DECISION,
    GATE,
    HOLD,
    SHARED,
    decision,
    gates,
    gpus,
    plain_pod,
    pod,
)
from tests.integration.sluice.team import Answer, Team, until

_HELD = pod(schedulingGates=[{"name": HOLD}])


@pytest.fixture
def dana(control_plane: ControlPlane, team_a: Team) -> str:
    """A person of the team, who may edit everything in its namespace."""
    user = f"dana-{team_a.namespace[-6:]}"
    control_plane.add_user(user)
    granted = team_a.kubectl(
        "create", "rolebinding", "dana", "--clusterrole=edit", f"--user={user}"
    )
    assert granted.ok, granted.error
    return user


def _remove_gate(team: Team, name: str, user: str) -> Answer:
    index = gates(team.pod()).index(name)
    patch = [{"op": "remove", "path": f"/spec/schedulingGates/{index}"}]
    return team.kubectl(
        "patch", "pod/gpu", "--type=json", f"--patch={json.dumps(patch)}", user=user
    )


def test_only_sluice_takes_its_gate_off(team_a: Team, dana: str) -> None:
    created = team_a.apply(_HELD, user=dana)
    assert created.ok, created.error
    assert set(gates(team_a.pod())) == {HOLD, GATE}

    refused = _remove_gate(team_a, GATE, dana)
    allowed = _remove_gate(team_a, HOLD, dana)

    assert not refused.ok
    assert (
        "sluice: [OwnedKey] scheduling gate sluice.dev/quota belongs to Sluice, which alone may"
        in refused.error
    )
    assert allowed.ok, allowed.error
    running = team_a.running()
    assert gates(running) == []
    assert running["spec"]["nodeName"] == "h100-shared"


def test_a_pod_with_a_gate_of_others_is_not_released(team_a: Team) -> None:
    team_a.create(_HELD, pod(name="free"))

    team_a.running("free")

    assert set(gates(team_a.pod())) == {HOLD, GATE}


@pytest.mark.parametrize(
    "change",
    [
        ("annotate", f"{DECISION}=mine"),
        ("annotate", f"{DECISION}-"),
        ("annotate", "state.sluice.dev/charge=0"),
        ("label", "state.sluice.dev/charge=0"),
    ],
    ids=" ".join,
)
def test_owned_keys_cannot_be_written(team_a: Team, dana: str, change: tuple[str, str]) -> None:
    team_a.create(pod())
    before = decision(team_a.running())
    verb, key = change

    answer = team_a.kubectl(verb, "pod/gpu", key, "--overwrite", user=dana)

    assert not answer.ok
    assert "[OwnedKey]" in answer.error
    assert decision(team_a.pod()) == before


def test_owned_keys_cannot_be_put_on_pods_without_gpus(team_a: Team) -> None:
    team_a.create(plain_pod())

    answer = team_a.kubectl("annotate", "pod/plain", f"{DECISION}=mine")

    assert "[OwnedKey]" in answer.error


@pytest.mark.parametrize("section", ["annotations", "labels"])
def test_owned_keys_cannot_be_changed_through_the_status(team_a: Team, section: str) -> None:
    team_a.create(pod())
    before = team_a.running()["metadata"]
    patch = {"metadata": {section: {"state.sluice.dev/decision": "mine"}}}

    answer = team_a.kubectl(
        "patch", "pod/gpu", "--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}"
    )

    assert not answer.ok
    assert "sluice: [OwnedKey] only Sluice may write" in answer.error
    after = team_a.pod()["metadata"]
    assert after.get(section) == before.get(section)


def test_a_status_and_other_keys_in_it_can_be_changed(team_a: Team) -> None:
    team_a.create(pod())
    team_a.running()
    patch = {"metadata": {"annotations": {"example.test/seen": "yes"}}, "status": {"message": "hm"}}

    answer = team_a.kubectl(
        "patch", "pod/gpu", "--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}"
    )

    assert answer.ok, answer.error


def test_a_user_can_change_all_else(team_a: Team, dana: str) -> None:
    team_a.create(pod())
    team_a.running()

    for arguments in (
        ("annotate", "pod/gpu", "example.test/team=a", "sluice.dev/gpu-memory=8Gi"),
        ("label", "pod/gpu", "workload=inference"),
        ("set", "image", "pod/gpu", "main=registry.test/image:2"),
        ("annotate", "pod/gpu", "example.test/team-"),
    ):
        answer = team_a.kubectl(*arguments, user=dana)
        assert answer.ok, answer.error
    assert gpus(team_a.pod()) == {"main": {SHARED: "1"}}


def test_a_finalizer_can_be_taken_off_a_pod_that_is_going(team_a: Team, dana: str) -> None:
    kept = pod()
    kept["metadata"]["finalizers"] = ["example.test/keep"]
    team_a.create(kept)
    team_a.running()
    team_a.kubectl("delete", "pod/gpu", "--wait=false", user=dana)

    answer = team_a.kubectl(
        "patch", "pod/gpu", "--type=merge", '--patch={"metadata":{"finalizers":[]}}', user=dana
    )

    assert answer.ok, answer.error
    until(lambda: not team_a.pods(), "the pod's end")
