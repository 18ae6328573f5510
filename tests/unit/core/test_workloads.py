# SPDX-License-Identifier: Apache-2.0
"""What is told to the person who applies a workload, long before its pods are made."""

from copy import deepcopy
from typing import Any

import pytest

from policies.model.decision import Decision
from policies.model.reasons import Reason
from policies.model.request import Operation, Phase
from policies.model.workload import WorkloadKind
from tests.support.builders import (
    GPU,
    REFERENCE,
    Json,
    container,
    mutate,
    pod,
    policy_set,
)
from tests.support.workloads import kind_of, kinds, workload

BY_OWNER = policy_set(
    f"""{REFERENCE}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: jobs-only}}
spec:
  order: 1
  match:
    ownerKinds: [Job]
    when:
    - name: by-its-controller
      expression: >-
        request.userInfo.username == "system:serviceaccount:kube-system:job-controller"
        && request.kind.kind == "Pod" && request.resource.resource == "pods"
        && request.operation == "CREATE" && request.name == ""
        && "system:serviceaccounts" in request.userInfo.groups
  validate: [{{name: never, expression: "false", message: seen}}]
"""
)

DEPLOYMENT = kind_of("Deployment")
KINDS = pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
BUILT_IN = pytest.mark.parametrize(
    "kind", [kind for kind in kinds() if kind.is_built_in], ids=lambda kind: kind.kind
)


def _workload(kind: WorkloadKind, *containers: Json, **metadata: Any) -> Json:
    made = pod(*containers, labels={"app": "llm"})
    return workload(kind, made, **metadata)


def _apply(kind: WorkloadKind, found: Json, **changes: Any) -> Decision:
    given = {"phase": Phase.VALIDATE, "group": kind.group, "resource": kind.resource}
    return mutate(found, changes.pop("policies", None), **{**given, **changes})


@BUILT_IN
def test_the_rewrite_of_its_pods_is_told_as_a_warning(kind: WorkloadKind) -> None:
    decision = _apply(kind, _workload(kind))

    assert decision.allowed
    assert decision.patch == ()
    about_pods, *advice = decision.warnings
    assert all("DisruptionTarget" in line for line in advice)
    assert about_pods == (
        f"sluice: pods of {kind.kind.lower()} llm: nvidia.com/gpu 1 -> nvidia.com/gpu.shared 1 "
        "(1/4 of a GPU, no memory limit) by policy no-raw-gpu"
    )
    assert decision.asked == {GPU: 1}


@KINDS
def test_a_template_is_never_changed(kind: WorkloadKind) -> None:
    decision = _apply(kind, _workload(kind), phase=Phase.MUTATE)

    assert decision.allowed
    assert (decision.patch, decision.warnings) == ((), ())


def test_what_could_never_run_is_refused() -> None:
    for amount in ("500m", "17", "-1"):
        found = _workload(DEPLOYMENT, container(gpus=amount), namespace="lab")
        found["spec"]["template"]["metadata"]["annotations"] = {"nvidia.com/gpu-exclusive": "true"}
        assert not _apply(DEPLOYMENT, found, namespace="lab").allowed


@pytest.mark.parametrize(
    ("asking", "namespace", "reason"),
    [
        (container(gpus="2"), "chat", Reason.MULTIPLE_SHARES),
        (container(gpus="1"), "other", Reason.NO_TENANT),
        (container(gpus="1"), "unseen", Reason.NAMESPACE_UNKNOWN),
        (container(gpus="1", securityContext={"privileged": True}), "chat", Reason.HOST_ACCESS),
    ],
)
def test_a_refusal_that_something_else_may_lift_is_a_warning(
    asking: Json, namespace: str, reason: Reason
) -> None:
    decision = _apply(DEPLOYMENT, _workload(DEPLOYMENT, asking), namespace=namespace)

    assert decision.allowed
    assert decision.reasons == (reason,)
    assert len(decision.warnings) == 1
    assert decision.warnings[0].startswith(
        f"sluice: pods of deployment llm will be refused: [{reason}] "
    )


def test_a_workload_without_gpus_is_not_spoken_of() -> None:
    decision = _apply(DEPLOYMENT, _workload(DEPLOYMENT, container()))

    assert decision.allowed
    assert not decision.warnings
    assert not decision.touches_gpus


def test_an_update_speaks_only_where_the_template_changes() -> None:
    old = _workload(DEPLOYMENT, container(gpus="500m"))
    scaled = {**old, "spec": {**old["spec"], "replicas": 0}, "status": {"replicas": 3}}
    changed = deepcopy(old)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/app:2"
    update = {"operation": Operation.UPDATE, "old_object": old}

    assert _apply(DEPLOYMENT, scaled, **update).allowed
    assert not _apply(DEPLOYMENT, scaled, **update).warnings
    assert _apply(DEPLOYMENT, changed, **update).reasons == (Reason.INVALID_QUANTITY,)


def test_what_a_workload_made_itself_is_not_told_again() -> None:
    owner = {"kind": "Deployment", "name": "llm", "controller": True}
    found = _workload(kind_of("ReplicaSet"), ownerReferences=[owner])

    assert not _apply(kind_of("ReplicaSet"), found).warnings
    found["metadata"]["ownerReferences"] = [{**owner, "controller": False}]
    assert _apply(kind_of("ReplicaSet"), found).warnings


def test_deleting_a_workload_is_none_of_sluices_business() -> None:
    decision = mutate(
        {}, group="apps", resource="deployments", operation=Operation.DELETE, object=None
    )

    assert decision.allowed
    assert not decision.touches_gpus


def test_policies_see_the_pod_and_who_will_make_it_not_the_workload() -> None:
    job = kind_of("Job")
    raw = {
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "name": "llm",
        "operation": "UPDATE",
        "userInfo": {"username": "dana", "groups": []},
    }

    decision = _apply(job, _workload(job), policies=BY_OWNER, raw=raw)
    assert "jobs-only/never: seen" in decision.warnings[0]
    assert not _apply(DEPLOYMENT, _workload(DEPLOYMENT), policies=BY_OWNER, raw=raw).reasons


def test_a_workload_of_too_many_containers_is_refused_unread() -> None:
    found = _workload(DEPLOYMENT, *[container(f"c{index}") for index in range(501)])

    assert _apply(DEPLOYMENT, found).reasons == (Reason.TOO_MANY_CONTAINERS,)
