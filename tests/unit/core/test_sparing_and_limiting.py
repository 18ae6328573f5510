# SPDX-License-Identifier: Apache-2.0
"""Which whole device an exempt pod gets, and that a limit does not move with the nodes."""

from dataclasses import replace
from typing import Any

import pytest

from policies.decide import decide
from policies.model.facts import ClusterFacts, Facts, NodeFacts
from policies.model.request import Phase
from tests.support.builders import (
    SHARED,
    Json,
    container,
    facts,
    mutate,
    patched,
    pod,
    policy_set,
    request,
)

_TENANT = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: chat}}
spec: {{namespaces: {{names: [chat]}}, profiles: [{profiles}]}}
---
"""
_SLICED = """
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: slice}
spec: {mode: TimeSlice, replicas: 4}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: sliced}
spec:
  rewrite: {profile: slice}
  memoryLimit: {value: 30Gi}
---
"""
_EXEMPT = """
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: a-reserved}
spec: {mode: Exclusive, nodeSelector: {reserved: board}}
---
apiVersion: sluice.dev/v1alpha1
kind: Exemption
metadata: {name: until-moved}
spec:
  policies: [sliced]
  match: {namespaces: [chat]}
  reason: It has still to move.
  expiresAt: "2040-01-01T00:00:00Z"
---
"""


@pytest.mark.parametrize(
    ("allowed", "given"),
    [
        ("slice", "whole"),
        ("slice, whole", "whole"),
        ("slice, whole, a-reserved", "whole"),
        ("slice, a-reserved", "a-reserved"),
    ],
)
def test_an_exempt_pod_gets_the_whole_device_that_its_tenant_may_use_and_that_pins_least(
    allowed: str, given: str
) -> None:
    policies = policy_set(_TENANT.format(profiles=allowed) + _SLICED + _EXEMPT)
    assert mutate(pod(container(gpus="1")), policies).profile == given


def _sharing(*memories_mib: int) -> Facts:
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    nodes = tuple(
        NodeFacts(f"node-{mib}", {**labels, "nvidia.com/gpu.memory": str(mib)}, {SHARED: 4})
        for mib in memories_mib
    )
    known = facts()
    return replace(known, cluster=ClusterFacts(known.cluster.namespaces, nodes))


def test_a_smaller_node_that_joins_between_the_passes_changes_no_limit() -> None:
    policies = policy_set(_TENANT.format(profiles="slice") + _SLICED)
    asked = pod(container(gpus="1"))
    rewritten: Json = patched(asked, decide(policies, _sharing(163840), request(asked)))
    env: Any = rewritten["spec"]["containers"][0]["env"]
    assert env == [{"name": "GPU_MEMORY_LIMIT", "value": "30720Mi"}]
    second = request(rewritten, phase=Phase.VALIDATE)
    assert decide(policies, _sharing(163840, 40960), second).allowed
