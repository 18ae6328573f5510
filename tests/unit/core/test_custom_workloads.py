# SPDX-License-Identifier: Apache-2.0
"""What is told of objects with several pod templates, and how it is put."""

from typing import Any

import pytest

from policies.model.decision import Decision
from policies.model.facts import NodeFacts
from policies.model.reasons import Reason
from policies.model.request import Operation, Phase
from tests.support.builders import (
    EXCLUSIVE,
    REFERENCE,
    Json,
    container,
    facts,
    mutate,
    pod,
    policy_set,
)
from tests.support.workloads import kind_of, workload

JOB = kind_of("PyTorchJob")
SLICE = "nvidia.com/gpu 1 -> nvidia.com/gpu.shared 1 (1/4 of a GPU, no memory limit)"
BY = f"{SLICE} by policy no-raw-gpu"


def template(*containers: Json, **parts: Any) -> Json:
    made = pod(*containers, **parts)
    return {"metadata": {"annotations": parts.get("annotations", {})}, "spec": made["spec"]}


def job(specs: Json, name: str = "llm") -> Json:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": specs},
    }


def apply(found: Json, **changes: Any) -> Decision:
    given = {"phase": Phase.VALIDATE, "group": JOB.group, "resource": JOB.resource}
    return mutate(found, changes.pop("policies", None), **{"namespace": "chat", **given, **changes})


def test_templates_of_which_the_same_is_said_share_a_line() -> None:
    specs = {
        name: {"replicas": replicas, "template": template()}
        for name, replicas in (("Master", 1), ("Worker", 5))
    }
    decision = apply(job(specs))

    assert decision.warnings == (
        f"sluice: pods of pytorchjob llm (Master, Worker): {BY}; 6 pods need 1.5 GPUs",
    )


def test_templates_of_which_something_else_is_said_have_lines_of_their_own() -> None:
    specs = {
        "Master": {"template": template(container(gpus=2))},
        "Worker": {"replicas": 4, "template": template()},
        "Launcher": {"template": template(container())},
    }
    decision = apply(job(specs))

    assert decision.allowed
    refused, given = decision.warnings
    assert refused.startswith("sluice: pods of pytorchjob llm (Master) will be refused: [Multiple")
    assert given == f"sluice: pods of pytorchjob llm (Worker): {BY}; 4 replicas need 1 GPU"
    assert decision.reasons == (Reason.MULTIPLE_SHARES,)
    assert decision.violations[0].message.startswith("Master: container main: ")


def test_of_many_templates_some_are_named() -> None:
    specs = {f"group-{n}": {"template": template()} for n in range(9)}
    (told,) = apply(job(specs)).warnings

    assert told.startswith("sluice: pods of pytorchjob llm (group-0, group-1, group-2 and 6 more):")
    assert told.endswith("; 9 pods need 2.25 GPUs")


def test_a_total_that_makes_a_line_too_long_has_its_own() -> None:
    specs = {"n" * 90: {"replicas": 12, "template": template()}}
    first, second = apply(job(specs, "l" * 63)).warnings

    of = f"sluice: pods of pytorchjob {'l' * 63} ({'n' * 63})"
    assert first == f"{of}: {BY}"
    assert second == f"{of}: 12 replicas need 3 GPUs"
    assert len(first) <= 256 < len(f"{first}; 12 replicas need 3 GPUs")


def test_shares_of_all_pods_are_rounded_up_together() -> None:
    thirds = policy_set(REFERENCE.replace("replicas: 4", "replicas: 3"))
    specs = {"Worker": {"replicas": 6, "template": template()}}
    (told,) = apply(job(specs), policies=thirds).warnings

    assert told.endswith("; 6 replicas need 2 GPUs")


@pytest.mark.parametrize("replicas", [None, 1, 0, "many"])
def test_what_one_pod_needs_is_not_repeated(replicas: object) -> None:
    specs = {"Worker": {"replicas": replicas, "template": template()}}

    assert apply(job(specs)).warnings == (f"sluice: pods of pytorchjob llm (Worker): {BY}",)


def test_that_all_pods_need_more_than_the_ceiling_is_told_though_nothing_is_rewritten() -> None:
    whole = template(container(gpus=8), annotations={EXCLUSIVE: "true"})
    few, many = (
        apply(job({"Worker": {"replicas": n, "template": whole}}), namespace="lab") for n in (2, 3)
    )

    assert few.warnings == ()
    assert many.allowed
    need = "3 replicas need 24 GPUs, above research's ceiling of 16"
    assert many.warnings == (f"sluice: pods of pytorchjob llm (Worker): {need}",)


def test_what_else_is_to_be_said_of_a_pod_comes_after_its_rewrite() -> None:
    specs = {"Worker": {"replicas": 2, "template": template()}}
    nowhere = facts(nodes=[NodeFacts("cpu", {}, {})])
    rewrite, waits = apply(job(specs), facts=nowhere).warnings

    assert rewrite.endswith("; 2 replicas need 0.5 GPUs")
    assert waits.startswith("sluice: pods of pytorchjob llm (Worker): no node offers ")


def test_one_template_that_could_never_run_refuses_the_object_and_is_named() -> None:
    specs = {
        "Master": {"template": template()},
        "Worker": {"template": template(container(gpus="500m"))},
    }
    decision = apply(job(specs))

    assert not decision.allowed
    assert decision.message.startswith("sluice: [InvalidQuantity] Worker: container main: ")
    assert decision.warnings == ()


def test_a_hopeless_template_that_was_there_before_is_not_held_against_another() -> None:
    hopeless = {"replicas": 1, "template": template(container(gpus="500m"))}
    old = job({"Master": {"template": template()}, "Worker": hopeless})
    new = job({"Master": {"template": template(container("b", gpus=1))}, "Worker": hopeless})
    update = {"operation": Operation.UPDATE, "old_object": old}

    assert apply(new, **update).warnings == (f"sluice: pods of pytorchjob llm (Master): {BY}",)
    added = job({**new["spec"]["pytorchReplicaSpecs"], "More": hopeless})
    assert not apply(added, **update).allowed


def test_templates_without_a_name_are_compared_all_the_same() -> None:
    group = {"replicas": 1, "template": template(container(gpus="500m"))}
    kind = kind_of("RayCluster")
    old: Json = {"metadata": {"name": "a"}, "spec": {"workerGroupSpecs": [group, group]}}
    new: Json = {"metadata": {"name": "a"}, "spec": {**old["spec"], "rayVersion": "3"}}
    decision = apply(
        new,
        group=kind.group,
        resource=kind.resource,
        operation=Operation.UPDATE,
        old_object=old,
    )

    assert decision.allowed
    assert decision.warnings == ()


NO_MORE = (
    "[TooManyContainers] more than 500 containers or 200 templates: from here on none is looked at"
)


def test_a_review_looks_at_so_many_containers_and_says_so() -> None:
    many = template(container(gpus=1), *(container(f"c{n}") for n in range(299)))
    specs = {name: {"template": many} for name in ("One", "Two", "Three")}
    decision = apply(job(specs))

    assert decision.allowed
    first, second = decision.warnings
    assert first.startswith("sluice: pods of pytorchjob llm (One, Two): nvidia.com/gpu 1 -> ")
    assert second == f"sluice: pods of pytorchjob llm (Three): {NO_MORE}"


@pytest.mark.parametrize("filling", [{}, {"spec": {}}, 1, {"spec": {"containers": "later"}}])
@pytest.mark.parametrize("is_update", [False, True])
def test_a_review_looks_at_so_many_templates_whatever_they_are(
    filling: object, is_update: bool
) -> None:
    specs: Json = {f"t{n}": {"template": filling} for n in range(200)}
    old = {"operation": Operation.UPDATE, "old_object": job(specs)} if is_update else {}
    some = apply(job({**specs, "t0": {"template": template()}}), **old)
    more = apply(job({**specs, "last": {"template": template()}}), **old)

    assert some.allowed
    assert some.warnings[0] == f"sluice: pods of pytorchjob llm (t0): {BY}"
    assert more.allowed
    assert more.warnings[-1] == f"sluice: pods of pytorchjob llm (last): {NO_MORE}"


def test_one_template_of_too_many_containers_refuses() -> None:
    many = template(*(container(f"c{n}") for n in range(501)))
    decision = apply(job({"One": {"template": many}}))

    assert not decision.allowed
    assert decision.reasons == (Reason.TOO_MANY_CONTAINERS,)


def test_what_is_no_template_is_told_and_refuses_nothing() -> None:
    specs = {"Master": {"template": "later"}, "Worker": {"template": template()}}
    decision = apply(job(specs))

    assert decision.allowed
    fault = "[MalformedObject] the template is not that of a pod: template is not an object"
    assert decision.warnings == (
        f"sluice: pods of pytorchjob llm (Master): {fault}",
        f"sluice: pods of pytorchjob llm (Worker): {BY}",
    )


def test_an_object_that_will_get_its_name_later_is_called_by_its_beginning() -> None:
    found = job({"Worker": {"template": template()}})
    found["metadata"] = {"generateName": "llm-"}

    assert apply(found).warnings == (f"sluice: pods of pytorchjob llm-* (Worker): {BY}",)


def test_policies_see_the_controller_that_makes_the_pods() -> None:
    by_owner = policy_set(
        f"""{REFERENCE}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: jobs-only}}
spec:
  order: 1
  match:
    ownerKinds: [PyTorchJob]
    when:
    - name: by-its-operator
      expression: >-
        request.userInfo.username == "system:serviceaccount:kubeflow:training-operator"
        && "system:serviceaccounts:kubeflow" in request.userInfo.groups
  validate: [{{name: never, expression: "false", message: seen}}]
"""
    )
    found = workload(JOB, pod())

    assert "jobs-only/never: seen" in apply(found, policies=by_owner).warnings[0]
