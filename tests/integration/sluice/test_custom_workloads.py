# SPDX-License-Identifier: Apache-2.0
"""Custom kinds that make pods: their user is told at apply, and nothing of them is changed.

No operator runs here, so no pods are made of them.
"""

from copy import deepcopy
from typing import Any

import pytest

from policies.model.workload import WorkloadKind
from tests.integration.sluice.objects import Json, container, pod
from tests.integration.sluice.running import Running
from tests.integration.sluice.team import Team
from tests.support.workloads import kinds, workload

_EACH = (
    "nvidia.com/gpu 1 -> nvidia.com/gpu.shared 1 (1/4 of a GPU, no memory limit) by policy quarter"
)
_CUSTOM = [kind for kind in kinds() if not kind.is_built_in]


@pytest.fixture(autouse=True)
def known(custom_kinds: tuple[WorkloadKind, ...]) -> None:
    """Have the cluster know the kinds; Sluice was installed before."""


def job(gpus: object = 1, replicas: int = 12, **metadata: Any) -> Json:
    template = {"spec": {"containers": [container("pytorch", gpus=gpus)]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "pretrain", **metadata},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": replicas, "template": template}}},
    }


@pytest.mark.parametrize("kind", _CUSTOM, ids=lambda kind: kind.kind)
def test_the_rewrite_of_the_pods_of_every_kind_is_told_at_apply(
    team_a: Team, kind: WorkloadKind
) -> None:
    work = workload(kind, pod(container(gpus=1)))
    del work["metadata"]["namespace"]

    answer = team_a.apply(work)

    assert answer.ok, answer.error
    told, *advice = answer.warnings
    assert len(advice) == (kind.kind == "JobSet")
    assert told.startswith(f"sluice: pods of {kind.kind.lower()} llm")
    assert _EACH in told


def test_the_exact_rewrite_and_what_all_replicas_need_is_told(team_a: Team) -> None:
    answer = team_a.apply(job())

    assert answer.ok, answer.error
    assert answer.lasting == (
        f"sluice: pods of pytorchjob pretrain (Worker): {_EACH}; 12 replicas need 3 GPUs",
    )


def test_a_template_is_stored_as_it_was_written(team_a: Team) -> None:
    team_a.create(job())

    stored = team_a.get("pytorchjob", "pretrain")

    assert stored["spec"] == job()["spec"]


@pytest.mark.parametrize("gpus", [4, "4"])
def test_pods_that_will_be_refused_are_told_of_at_apply(team_a: Team, gpus: object) -> None:
    answer = team_a.apply(job(gpus))

    assert answer.ok, answer.error
    (told,) = answer.warnings
    assert told.startswith(
        "sluice: pods of pytorchjob pretrain (Worker) will be refused: [MultipleShares] "
        "container pytorch: asks for 4 of slice-4"
    )


def test_a_misspelt_name_gets_the_right_one_suggested_at_apply(team_a: Team) -> None:
    work = job()
    spec = work["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["containers"] = [container("pytorch", 1, "nvidia.com.gpu")]

    answer = team_a.apply(work)

    assert answer.ok, answer.error
    (told,) = answer.warnings
    assert told.endswith("nvidia.com.gpu is given by no profile: did you mean nvidia.com/gpu?")


@pytest.mark.parametrize("gpus", [0.5, "500m", -1])
def test_what_could_never_run_is_refused_at_once(team_a: Team, gpus: object) -> None:
    answer = team_a.apply(job(gpus))

    assert not answer.ok
    assert "denied the request: sluice: [InvalidQuantity] Worker: container pytorch" in answer.error
    assert team_a.get("pytorchjobs")["items"] == []


def test_only_changes_of_templates_are_told_of(team_a: Team) -> None:
    team_a.create(job())
    changed = job()
    worker = changed["spec"]["pytorchReplicaSpecs"]["Worker"]
    worker["template"]["spec"]["containers"][0]["image"] = "registry.test/image:2"

    labelled = team_a.kubectl("label", "pytorchjob", "pretrain", "a=b")
    scaled, rebuilt = team_a.apply(job(replicas=3)), team_a.apply(changed)

    assert (labelled.ok, labelled.warnings) == (True, ())
    assert (scaled.ok, scaled.warnings) == (True, ())
    assert len(rebuilt.warnings) == 1


def test_what_another_object_made_is_not_told_of_again(team_a: Team) -> None:
    team_a.create(job())
    uid = team_a.get("pytorchjob", "pretrain")["metadata"]["uid"]
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "pretrain", "uid": uid}
    part = job(name="part", ownerReferences=[{**owner, "controller": True}])

    answer = team_a.apply(part)

    assert (answer.ok, answer.warnings) == (True, ()), answer.error


def test_a_dry_run_tells_the_same(team_a: Team) -> None:
    dry, real = team_a.apply(job(), dry_run=True), team_a.apply(job())

    assert dry.lasting == real.lasting != ()


def test_an_object_without_gpus_is_no_business_of_sluice(team_a: Team) -> None:
    answer = team_a.apply(job(None))

    assert (answer.ok, answer.warnings) == (True, ()), answer.error


def test_a_large_object_is_told_of_when_it_is_made_and_when_it_is_changed(team_a: Team) -> None:
    steps = [
        {
            "name": f"step-{number}",
            "container": {
                "image": "registry.test/image",
                "env": [{"name": f"V{n}", "value": "x" * 20} for n in range(40)],
            },
        }
        for number in range(200)
    ]
    steps[0]["container"]["resources"] = {"limits": {"nvidia.com/gpu": 1}}  # type: ignore[index]  # an object
    work = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "large"},
        "spec": {"templates": steps},
    }
    changed: Json = deepcopy(work)
    changed["spec"]["templates"][0]["container"]["image"] = "registry.test/image:2"

    made = team_a.kubectl("create", "--filename=-", stdin=work)
    replaced = team_a.kubectl("replace", "--filename=-", stdin=changed)

    for answer in (made, replaced):
        assert answer.ok, answer.error
        assert answer.warnings == (f"sluice: pods of workflow large (step-0): {_EACH}",)


def test_with_sluice_down_custom_objects_are_made_as_ever(team_a: Team, sluice: Running) -> None:
    with sluice.stopped():
        answer = team_a.apply(job())

    assert (answer.ok, answer.warnings) == (True, ()), answer.error
