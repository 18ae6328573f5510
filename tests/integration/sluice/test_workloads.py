# SPDX-License-Identifier: Apache-2.0
"""Pods that controllers make: they are rewritten like any, and the workload's user is told."""

import pytest

from tests.integration.sluice.objects import SHARED, Json, container, decision, gpus, pod, workload
from tests.integration.sluice.team import Team

_EACH = "nvidia.com/gpu 1 -> nvidia.com/gpu.shared 1 (1/4 of a GPU, no memory limit)"
_SHARED_NODE = {
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
}
_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("work", "pods"),
    [
        (workload("Deployment", pod(), replicas=2), 2),
        (workload("ReplicaSet", pod(), replicas=2), 2),
        (workload("StatefulSet", pod(), replicas=2, serviceName="work"), 2),
        (workload("Job", pod(), parallelism=2, completions=2), 2),
        # Its controller looks at the template: what is to run on GPU nodes says so there.
        (workload("DaemonSet", pod(nodeSelector=_SHARED_NODE, tolerations=[_TOLERATION])), 1),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_the_pods_of_a_workload_are_rewritten_and_its_user_is_told_at_apply(
    team_a: Team, work: Json, pods: int
) -> None:
    answer = team_a.apply(work)

    assert answer.ok, answer.error
    assert len(answer.warnings) == (2 if work["kind"] == "Job" else 1)
    assert answer.warnings[0].startswith(f"sluice: pods of {work['kind'].lower()} work: {_EACH}")
    for made in team_a.placed(pods):
        assert gpus(made) == {"main": {SHARED: "1"}}
        assert decision(made)
        assert made["spec"]["nodeName"] == "h100-shared"


_GANG: Json = {"labels": {"sluice.dev/gang": "ring"}, "annotations": {"sluice.dev/gang-size": "4"}}


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (
            workload("Job", pod(), activeDeadlineSeconds=3600),
            "job work: activeDeadlineSeconds 3600 runs while its pods wait for quota",
        ),
        (workload("Job", pod()), "job work: a pod taken back from borrowed GPUs counts as failed"),
        (
            workload("StatefulSet", pod(**_GANG), replicas=4, serviceName="work"),
            "statefulset work: its pods are a gang of 4, and OrderedReady makes the second only",
        ),
    ],
    ids=["deadline", "disruptions", "ordered gang"],
)
def test_what_would_go_wrong_with_the_pods_of_a_workload_is_told_at_apply(
    team_a: Team, work: Json, told: str
) -> None:
    answer = team_a.apply(work, dry_run=True)

    assert answer.ok, answer.error
    assert [text for text in answer.warnings if text.startswith(f"sluice: {told}")], answer.warnings


def test_the_pods_of_a_cron_jobs_job_are_rewritten(team_a: Team) -> None:
    answer = team_a.apply(workload("CronJob", pod()))
    started = team_a.kubectl("create", "job", "now", "--from=cronjob/work")

    assert answer.warnings[0].startswith(f"sluice: pods of cronjob work: {_EACH}")
    assert started.ok, started.error
    (made,) = team_a.placed()
    assert gpus(made) == {"main": {SHARED: "1"}}
    assert made["spec"]["nodeName"] == "h100-shared"
    assert team_a.kubectl("wait", "job/now", "--for=condition=Complete", "--timeout=20s").ok


def test_a_rolling_update_replaces_rewritten_pods_by_rewritten_pods(team_a: Team) -> None:
    team_a.create(workload("Deployment", pod(), replicas=2))
    first = {made["metadata"]["name"] for made in team_a.placed(2)}

    answer = team_a.kubectl("set", "image", "deployment/work", "main=registry.test/image:2")
    assert answer.ok, answer.error
    done = team_a.kubectl("rollout", "status", "deployment/work", "--timeout=20s")

    assert done.ok, done.error
    live = [made for made in team_a.pods() if "deletionTimestamp" not in made["metadata"]]
    assert len(live) == 2
    assert first.isdisjoint(made["metadata"]["name"] for made in live)
    assert all(gpus(made) == {"main": {SHARED: "1"}} for made in live)


def test_scaling_a_workload_tells_nobody_again(team_a: Team) -> None:
    team_a.create(workload("Deployment", pod(), replicas=1))

    answer = team_a.kubectl("scale", "deployment/work", "--replicas=2")

    assert answer.ok, answer.error
    assert answer.warnings == ()
    assert len(team_a.placed(2)) == 2


def test_a_dry_run_of_a_workload_tells_the_same(team_a: Team) -> None:
    work = workload("Deployment", pod(), replicas=2)

    dry, real = team_a.apply(work, dry_run=True), team_a.apply(work)

    assert dry.lasting == real.lasting != ()


def test_a_workload_without_gpus_is_no_business_of_sluice(team_a: Team) -> None:
    answer = team_a.apply(workload("Deployment", pod(container())))

    assert answer.ok, answer.error
    assert answer.warnings == ()
    (made,) = team_a.placed()
    assert made["spec"]["nodeName"] == "cpu"
