# SPDX-License-Identifier: Apache-2.0
"""A share asked for by its own name is held to the memory limit of the policy it passes by."""

import pytest

from policies.model.reasons import Reason
from tests.support.builders import SHARED, container, mutate, pod, policy_set, rewritten, validate

TENANT = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat}
spec: {namespaces: {names: [chat]}, profiles: [ham, whole]}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: ham}
spec: {mode: TimeSlice, replicas: 4, limiter: HAMiCore, products: [NVIDIA-L40S]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: limited}
spec:
"""
LIMIT = "CUDA_DEVICE_MEMORY_LIMIT"


@pytest.mark.parametrize(
    "rules",
    [
        "  rewrite: {profile: ham}\n  memoryLimit: {value: 8Gi}\n",
        (
            "  rewrite: {fit: {memory: {default: 8Gi}, candidates: [ham]}}\n"
            "  memoryLimit: {fromFit: true}\n"
        ),
    ],
)
def test_it_gets_the_limit_that_the_whole_devices_name_would_get(rules: str) -> None:
    policies = policy_set(TENANT + rules)
    for resource in (SHARED, "nvidia.com/gpu"):
        found = rewritten(pod(container(gpus="1", resource=resource)), policies)
        assert {"name": LIMIT, "value": "8192m"} in found["spec"]["containers"][0]["env"]
        assert validate(found, policies).allowed
        found["spec"]["containers"][0]["env"] = []
        assert validate(found, policies).reasons == (Reason.REWRITE_MISSING,)


def test_a_form_weaker_than_the_policy_demands_is_refused() -> None:
    rules = "  rewrite: {profile: whole}\n  memoryLimit: {value: 8Gi, minimumStrength: Hardware}\n"
    decision = mutate(pod(container(gpus="1", resource=SHARED)), policy_set(TENANT + rules))

    assert decision.reasons == (Reason.PROFILE_NOT_ALLOWED,)
    assert "demands a memory limit of strength Hardware; profile ham has Cooperative" in (
        decision.message
    )
