# SPDX-License-Identifier: Apache-2.0
"""What could never be admitted is refused at once, in the unit that it is too much of."""

import pytest

from policies.model.reasons import Reason
from policies.model.tenant import DEFAULT_POOL, Quota, Tenant
from tests.support.builders import container, mutate, pod, policy_set

OPEN, TWO, FIVE = Quota(), Quota(1000, 2000), Quota(3000, 5000)


@pytest.mark.parametrize(
    ("pools", "most", "total", "guarantee"),
    [
        ({}, None, None, 0),
        ({DEFAULT_POOL: OPEN}, None, None, 0),
        ({DEFAULT_POOL: TWO}, 2000, 2000, 1000),
        ({DEFAULT_POOL: TWO, "a": FIVE}, 5000, 7000, 3000),
        ({DEFAULT_POOL: TWO, "a": OPEN}, None, None, 1000),
        ({"a": FIVE}, None, None, 3000),
        ({DEFAULT_POOL: Quota(0, 0)}, 0, 0, 0),
    ],
)
def test_one_pod_is_bounded_by_the_highest_ceiling_and_all_by_their_sum(
    pools: dict[str, Quota], most: int | None, total: int | None, guarantee: int
) -> None:
    tenant = Tenant("t", frozenset(), None, pools)

    assert tenant.most_ceiling_milli == most
    assert tenant.total_ceiling_milli == total
    assert tenant.most_guarantee_milli == guarantee


def documents(quota: str, profile: str) -> str:
    return f"""
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: chat}}
spec: {{namespaces: {{names: [chat]}}, quota: {quota}}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {{name: form}}
spec: {{{profile}}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: all}}
spec:
  rewrite: {{profile: form}}
  validate:
  - name: told
    expression: gpu.memory < 0
    messageExpression: string(gpu.memory)
  enforcement: Enforce
"""


H100, L40S = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"
FORMS = [
    (f"mode: TimeSlice, replicas: 4, products: [{H100}]", 81559 // 4),
    (f"mode: TimeSlice, replicas: 4, products: [{H100}, {L40S}]", 46068 // 4),
    (f"mode: MPS, replicas: 8, products: [{H100}]", 81559 // 8),
    (f"mode: MIG, mig: {{profile: 1g.10gb}}, products: [{H100}]", 9984),
    (f"mode: Exclusive, products: [{H100}]", 81559),
    ("mode: TimeSlice, replicas: 4", None),
    ("mode: Exclusive", None),
]


@pytest.mark.parametrize(("profile", "mib"), FORMS)
def test_memory_is_that_of_every_unit_where_a_table_tells_it(profile: str, mib: int | None) -> None:
    policies = policy_set(documents("{}", profile))
    for names in ("a", "ab", "abc"):
        decision = mutate(pod(*(container(name, "1") for name in names)), policies)
        expected = None if mib is None else mib * len(names)

        assert decision.memory_mib == expected
        assert f"all/told: {expected or 0}" in decision.message


@pytest.mark.parametrize(("profile", "mib"), FORMS)
def test_memory_is_refused_only_above_its_ceiling(profile: str, mib: int | None) -> None:
    for ceiling, refused in ((2 * (mib or 1), False), (2 * (mib or 1) - 1, mib is not None)):
        quota = f"{{memory: {{ceiling: {ceiling}Mi}}}}"
        found = mutate(
            pod(container("a", "1"), container("b", "1")), policy_set(documents(quota, profile))
        )

        assert (Reason.OVER_CEILING in found.reasons) is refused


def test_an_init_container_counts_only_where_it_asks_more() -> None:
    quota = "{resources: {nvidia.com/gpu: {ceiling: 2}}, memory: {ceiling: 200Gi}}"
    policies = policy_set(documents(quota, f"mode: Exclusive, products: [{H100}]"))
    bounded = [
        (pod(container("a", "2"), initContainers=[container("i", "2")]), False),
        (pod(container("a", "1"), initContainers=[container("i", "3")]), True),
        (pod(container("a", "2"), initContainers=[container("i", "1", restartPolicy="Always")]), 1),
    ]

    for found, refused in bounded:
        assert (Reason.OVER_CEILING in mutate(found, policies).reasons) is bool(refused)


def test_every_ceiling_that_is_passed_is_told_at_once() -> None:
    quota = "{gpus: {ceiling: 1}, resources: {nvidia.com/gpu: {ceiling: 0}}}"
    found = mutate(pod(container("a", "2")), policy_set(documents(quota, "mode: Exclusive")))

    assert [v.message for v in found.violations if v.reason is Reason.OVER_CEILING] == [
        "exceeded quota: tenant chat has a ceiling of 1 GPUs, this pod asks 2: ask for at most 1",
        (
            "exceeded quota: tenant chat has a ceiling of 0 nvidia.com/gpu, this pod asks 2: "
            "ask for at most 0"
        ),
    ]
