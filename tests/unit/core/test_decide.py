# SPDX-License-Identifier: Apache-2.0
"""The one entry: what is routed where, and that the same question has the same answer."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import orjson
import pytest

from policies.decide import decide
from policies.model.reasons import Reason
from policies.model.request import Operation, Phase
from tests.support.builders import REFERENCE, Json, facts, mutate, pod, policy_set, request


def _nested(depth: int) -> Any:
    deep: Any = "x"
    for _ in range(depth):
        deep = {"a": deep}
    return deep


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("depth", [200, 900])
def test_an_object_nested_as_deep_as_can_be_parsed_gets_a_decision(
    phase: Phase, depth: int
) -> None:
    deep = _nested(depth)
    for found in (
        pod(affinity={"nodeAffinity": deep}),
        pod(tolerations=[deep]),
        pod(nodeSelector=deep),
        pod({"name": "a", "env": [deep], "resources": {"limits": {"nvidia.com/gpu": deep}}}),
    ):
        asked = replace(request(pod(namespace="chat"), phase=phase), object=found)
        assert decide(policy_set(), facts(), asked).verdict


def test_templates_nested_too_deep_to_be_compared_are_refused() -> None:
    def workload() -> Json:
        return {"spec": {"template": {"spec": {"containers": [], "x": _nested(5000)}}}}

    update = request(
        {}, phase=Phase.VALIDATE, operation=Operation.UPDATE, group="apps", resource="deployments"
    )
    asked = replace(update, object=workload(), old_object=workload())

    assert decide(policy_set(), facts(), asked).reasons == (Reason.MALFORMED_OBJECT,)


@pytest.mark.parametrize(
    ("group", "resource"), [("", "services"), ("apps", "pods"), ("kubeflow.org", "pytorchjobs")]
)
def test_what_sluice_knows_nothing_of_passes(group: str, resource: str) -> None:
    decision = mutate(pod(), group=group, resource=resource)

    assert decision.allowed
    assert not decision.touches_gpus


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.CONNECT])
def test_a_pod_may_always_be_deleted(operation: Operation) -> None:
    assert mutate(pod(), operation=operation).allowed
    assert mutate(None, operation=operation, old_object=pod()).allowed  # type: ignore[arg-type]  # as the API server sends it


PROGRAM = """
import sys, orjson
from tests.support.builders import mutate, pod, container, policy_set
policies = policy_set(sys.stdin.read())
found = pod(*(container(f"c{i}", "1") for i in range(9)), namespace="lab", labels={"a": "b"},
            tolerations=[{"key": k, "operator": "Exists"} for k in "xyz"])
decision = mutate(found, policies)
sys.stdout.buffer.write(orjson.dumps([decision.patch, decision.warnings, decision.generation]))
"""


def test_the_same_pod_gets_the_same_bytes_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=REFERENCE.encode(),
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(outputs) == 1
    assert orjson.loads(outputs.pop())[2] == policy_set().generation
