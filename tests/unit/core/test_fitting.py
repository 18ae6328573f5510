# SPDX-License-Identifier: Apache-2.0
"""What a pod is told that no share fits: only ways that it really has."""

from tests.support.builders import container, mutate, pod, policy_set

_POLICY = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: chat}}
spec: {{namespaces: {{names: [chat]}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {{name: board}}
spec: {{mode: Exclusive, products: [NVIDIA-H100-80GB-HBM3]}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: shares}}
spec:
  rewrite:
    fit:
      memory: {{default: {memory}}}
      candidates: [{candidates}]
"""


def _message(gpus: str, memory: str, candidates: str) -> str:
    policies = policy_set(_POLICY.format(memory=memory, candidates=candidates))
    return mutate(pod(container(gpus=gpus)), policies).message


def test_several_gpus_are_suggested_where_a_candidate_gives_several() -> None:
    message = _message("1", "90Gi", "h100-7g.80gb, board")
    assert "state less, or use several GPUs" in message


def test_several_gpus_are_not_suggested_where_no_candidate_gives_them() -> None:
    message = _message("1", "90Gi", "h100-1g.10gb, h100-7g.80gb")
    assert message.endswith("(h100-7g.80gb); state less")


def test_a_pod_that_asks_for_several_is_told_that_no_candidate_gives_them() -> None:
    message = _message("2", "8Gi", "h100-1g.10gb, h100-7g.80gb")
    assert message.endswith("policy shares has no candidate that this pod may use 2 of")
