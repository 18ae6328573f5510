# SPDX-License-Identifier: Apache-2.0
"""Resource claims of GPU classes, which no policy has seen, are refused when they are made."""

from typing import Any

import pytest

from policies.model.decision import Decision
from policies.model.reasons import Reason
from policies.model.request import Operation, Phase
from tests.support.builders import Json, mutate


def _decide(spec: Any, resource: str, operation: Operation = Operation.CREATE) -> Decision:
    nested = {"spec": spec} if resource == "resourceclaimtemplates" else spec
    found = {"kind": "ResourceClaim", "metadata": {"name": "gpu"}, "spec": nested}
    return mutate(
        found,
        group="resource.k8s.io",
        resource=resource,
        operation=operation,
        phase=Phase.VALIDATE,
        namespace="chat",
    )


RESOURCES = pytest.mark.parametrize("resource", ["resourceclaims", "resourceclaimtemplates"])


@RESOURCES
@pytest.mark.parametrize("name", ["gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com", "My-GPU"])
@pytest.mark.parametrize(
    "shape",
    [
        lambda name: {"name": "a", "exactly": {"deviceClassName": name}},
        lambda name: {"name": "a", "deviceClassName": name},
        lambda name: {
            "name": "a",
            "firstAvailable": [{"deviceClassName": "nic"}, {"deviceClassName": name}],
        },
    ],
    ids=["v1", "v1beta1", "alternatives"],
)
def test_a_claim_of_a_gpu_class_is_refused(resource: str, name: str, shape: Any) -> None:
    decision = _decide({"devices": {"requests": [shape(name)]}}, resource)

    assert decision.reasons == (Reason.CLAIMS_UNSUPPORTED,)
    assert f"device class {name}" in decision.message
    assert "ask for nvidia.com/gpu" in decision.message


@RESOURCES
@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "rdma.example"}}]}},
        {"devices": {"requests": [{"name": "a"}]}},
        None,
    ],
)
def test_other_claims_pass(resource: str, spec: Json | None) -> None:
    assert _decide(spec, resource).allowed


@RESOURCES
@pytest.mark.parametrize("operation", [Operation.UPDATE, Operation.DELETE])
def test_a_claim_that_exists_may_change_and_end(resource: str, operation: Operation) -> None:
    spec = {"devices": {"requests": [{"exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}

    assert _decide(spec, resource, operation).allowed


def test_the_same_class_is_told_once() -> None:
    listed = [{"exactly": {"deviceClassName": "gpu.nvidia.com"}}] * 3

    assert len(_decide({"devices": {"requests": listed}}, "resourceclaims").violations) == 1
