# SPDX-License-Identifier: Apache-2.0
"""Only the mutating pass was not called: the validating one finds it, and no raw GPU ever runs."""

import time
from collections.abc import Iterator

import pytest

from tests.integration.sluice.objects import (
    MIG,
    SHARED,
    container,
    gpus,
    plain_pod,
    pod,
    void_containers,
    workload,
)
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team, until

_KIND = "MutatingWebhookConfiguration"
_POLICY_KINDS = ("MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy")
_SKIPPED = "[RewriteMissing] the pod was not rewritten, since Sluice's mutating webhook was not"


def _is_mutated(team: Team) -> bool:
    return team.apply(pod(name="probe"), dry_run=True).ok


@pytest.fixture
def unmutated(sluice: Running, team_a: Team) -> Iterator[Running]:
    """Sluice without its mutating entry, which comes back in the end at the latest."""
    sluice.installed.delete(_KIND)
    try:
        until(lambda: not _is_mutated(team_a), "the mutating entry being out of use")
        yield sluice
    finally:
        sluice.installed.apply(_KIND)
        until(lambda: _is_mutated(team_a), "the mutating entry being in use again")


def test_a_gpu_pod_is_refused_and_told_to_try_again(unmutated: Running, team_a: Team) -> None:
    answer = team_a.apply(pod(container(gpus=1), initContainers=[container("first", gpus=1)]))

    assert not answer.ok
    assert _SKIPPED in answer.error
    assert answer.error.endswith("Try again")
    assert "spec.containers[main].resources" in answer.error
    assert "spec.initContainers[first].resources" in answer.error
    assert team_a.pods() == []


def test_a_share_asked_for_by_name_is_refused_too(unmutated: Running, team_a: Team) -> None:
    answer = team_a.apply(pod(container(gpus=1, resource=SHARED)))

    assert _SKIPPED in answer.error


def test_pods_without_gpus_start_and_get_void(unmutated: Running, team_a: Team) -> None:
    team_a.create(plain_pod())

    assert void_containers(team_a.running("plain")) == {"main"}


def test_a_hand_made_rewrite_without_its_decision_is_refused(
    unmutated: Running, team_a: Team
) -> None:
    by_hand = pod(
        container(gpus=1, resource=SHARED),
        schedulingGates=[{"name": "sluice.dev/quota"}],
        nodeSelector={
            "nvidia.com/gpu.sharing-strategy": "time-slicing",
            "nvidia.com/gpu.replicas": "4",
        },
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    )

    assert _SKIPPED in team_a.apply(by_hand).error


def test_a_deployment_made_meanwhile_runs_rewritten_afterwards(
    sluice: Running, team_m: Team
) -> None:
    sluice.installed.delete(_KIND)
    try:
        until(lambda: not _is_mutated(team_m), "the mutating entry being out of use")
        team_m.create(workload("Deployment", pod()))
        team_m.event("FailedCreate", _SKIPPED)
        assert team_m.pods() == []
    finally:
        sluice.installed.apply(_KIND)

    (made,) = team_m.placed()
    assert gpus(made) == {"main": {MIG: "1"}}
    assert made["spec"]["nodeName"] == "h100-mig"


def test_pods_that_slip_by_while_the_entry_goes_and_comes_are_never_raw(
    sluice: Running, team_a: Team
) -> None:
    made = refused = 0
    deadline = time.monotonic() + 20
    sluice.installed.delete(_KIND)
    try:
        while not refused or not made:
            assert time.monotonic() < deadline, f"{made} made, {refused} refused"
            answer = team_a.apply(pod(name=f"gpu-{made}-{refused}"))
            assert answer.ok or _SKIPPED in answer.error
            made, refused = made + answer.ok, refused + (not answer.ok)
            if refused == 1:
                sluice.installed.apply(_KIND)
    finally:
        sluice.installed.apply(_KIND)
        until(lambda: _is_mutated(team_a), "the mutating entry being in use again")

    assert len(team_a.pods()) == made
    assert all(gpus(pod) == {"main": {SHARED: "1"}} for pod in team_a.pods())


def test_without_the_policy_that_sets_void_pods_are_refused_rather_than_left_open(
    sluice: Running, team_a: Team
) -> None:
    for kind in _POLICY_KINDS:
        sluice.installed.delete(kind)
    try:
        error = until(
            lambda: team_a.apply(plain_pod(), dry_run=True).error,
            "the mutating policy being out of use",
        )
    finally:
        for kind in reversed(_POLICY_KINDS):
            sluice.installed.apply(kind)
        until(lambda: team_a.apply(plain_pod("probe"), dry_run=True).ok, "the policy's return")

    assert "sluice: [DeviceVariable] container main asks for no GPU" in error
