# SPDX-License-Identifier: Apache-2.0
"""Workloads whose pods are refused: their user learns it at apply, and from Events later."""

from tests.integration.sluice.objects import container, pod, workload
from tests.integration.sluice.team import Team

_NOBODY = pod(labels={"owner": "nobody"})
_REFUSAL = "[PolicyViolation] owner-is-named/has-owner: asks for 1 GPU for nobody: name an owner"


def test_a_deployment_whose_pods_are_refused_warns_at_apply_and_says_why_in_events(
    team_m: Team,
) -> None:
    answer = team_m.apply(workload("Deployment", _NOBODY))

    assert answer.ok, answer.error
    assert answer.warnings == (f"sluice: pods of deployment work will be refused: {_REFUSAL}",)
    message = team_m.event("FailedCreate", _REFUSAL)
    assert "denied the request: sluice: " in message
    assert team_m.pods() == []


def test_a_deployment_tells_its_refusal_in_its_own_status(team_m: Team) -> None:
    team_m.create(workload("Deployment", _NOBODY))

    waited = team_m.kubectl(
        "wait", "deployment/work", "--for=condition=ReplicaFailure", "--timeout=20s"
    )

    assert waited.ok, waited.error
    conditions = team_m.get("deployment", "work")["status"]["conditions"]
    assert any(_REFUSAL in condition["message"] for condition in conditions)


def test_a_job_whose_pods_are_refused_warns_at_apply_and_says_why_in_events(team_m: Team) -> None:
    answer = team_m.apply(workload("Job", _NOBODY))

    assert answer.ok, answer.error
    assert answer.warnings == (f"sluice: pods of job work will be refused: {_REFUSAL}",)
    team_m.event("FailedCreate", _REFUSAL)


def test_a_corrected_deployment_runs(team_m: Team) -> None:
    team_m.create(workload("Deployment", _NOBODY))
    team_m.event("FailedCreate", _REFUSAL)

    answer = team_m.apply(workload("Deployment", pod(labels={"owner": "dana"})))

    assert len(answer.warnings) == 1
    assert "will be refused" not in answer.warnings[0]
    (made,) = team_m.placed()
    assert made["spec"]["nodeName"] == "h100-mig"


def test_a_deployment_that_asks_for_more_than_the_ceiling_is_refused_at_once(team_t: Team) -> None:
    training = pod(container(gpus=9), labels={"workload": "training"})

    answer = team_t.apply(workload("Deployment", training))

    assert not answer.ok
    assert "[OverCeiling] exceeded quota: tenant team-t has a ceiling of 8 GPUs" in answer.error
    assert team_t.get("deployments")["items"] == []


def test_a_deployment_that_asks_for_a_fraction_is_refused_at_once(team_a: Team) -> None:
    for fraction in ("0.5", "500m"):
        answer = team_a.apply(workload("Deployment", pod(container(gpus=fraction))))

        assert not answer.ok
        assert "must be an integer" in answer.error
    assert team_a.get("deployments")["items"] == []


def test_a_deployment_that_only_requests_a_gpu_is_refused_at_once(team_a: Team) -> None:
    resources = {"requests": {"nvidia.com/gpu": 1}}

    answer = team_a.apply(workload("Deployment", pod(container(resources=resources))))

    assert not answer.ok
    assert "Limit must be set for non overcommitable resources" in answer.error


def test_a_deployment_outside_of_every_tenant_warns_that_its_pods_have_no_gpus(
    stranger: Team,
) -> None:
    answer = stranger.apply(workload("Deployment", pod()))

    assert answer.ok, answer.error
    assert len(answer.warnings) == 1
    assert "pods of deployment work will be refused: [NoTenant]" in answer.warnings[0]
    stranger.event("FailedCreate", "[NoTenant]")


def test_a_refused_deployment_can_still_be_scaled_down(team_m: Team) -> None:
    team_m.create(workload("Deployment", _NOBODY, replicas=3))

    answer = team_m.kubectl("scale", "deployment/work", "--replicas=0")

    assert answer.ok, answer.error
    assert answer.warnings == ()
