# SPDX-License-Identifier: Apache-2.0
"""What is guaranteed in a pool is held against what its nodes have."""

from dataclasses import replace

import pytest

from policies.cluster.nodes import Node
from policies.model.policyset import PolicySet
from policies.model.settings import QueueSettings, Settings
from policies.model.tenant import DEFAULT_POOL
from policies.quota.capacity import (
    Overcommitment,
    capacity_by_pool,
    guarantees_by_pool,
    overcommitted,
)
from tests.support.builders import policy_set

POOL = """
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {name: a100}
spec: {nodes: {selector: {matchLabels: {model: A100}}}}
"""


def tenant(name: str, quota: str) -> str:
    return (
        "---\napiVersion: sluice.dev/v1alpha1\nkind: Tenant\n"
        f"metadata: {{name: {name}}}\n"
        f"spec: {{namespaces: {{names: [{name}]}}, quota: {{{quota}}}}}\n"
    )


@pytest.fixture
def policies() -> PolicySet:
    quotas = {
        "a": "gpus: {guarantee: 4}, pools: {a100: {guarantee: 2.5}}",
        "b": "gpus: {guarantee: 4.125, ceiling: 9}, pools: {a100: {ceiling: 3}}",
        "c": "memory: {ceiling: 1Gi}",
    }
    return policy_set(POOL + "".join(tenant(*entry) for entry in quotas.items()))


def node(name: str, gpus: int, **labels: str) -> Node:
    return Node(name, labels, (), {"cpu": 8000, "nvidia.com/gpu": gpus} if gpus else {"cpu": 8000})


def test_guarantees_are_summed_by_pool(policies: PolicySet) -> None:
    assert guarantees_by_pool(policies) == {DEFAULT_POOL: 8125, "a100": 2500}


def test_capacity_is_summed_by_pool(policies: PolicySet) -> None:
    nodes = [node("n1", 4), node("n2", 8, model="A100"), node("n3", 2, model="H100"), node("n4", 0)]

    assert capacity_by_pool(policies, nodes) == {DEFAULT_POOL: 6000, "a100": 8000}


@pytest.mark.parametrize(
    ("plain", "a100", "expected"),
    [
        (9, 3, ()),
        (8, 3, (Overcommitment(DEFAULT_POOL, 8125, 8000),)),
        (0, 0, (Overcommitment(DEFAULT_POOL, 8125, 0), Overcommitment("a100", 2500, 0))),
    ],
)
def test_a_pool_that_promises_more_than_it_has_is_told(
    policies: PolicySet, plain: int, a100: int, expected: tuple[Overcommitment, ...]
) -> None:
    nodes = [node("n1", plain), node("n2", a100, model="A100")]

    assert overcommitted(policies, nodes) == expected


def test_a_pool_that_grows_by_demand_promises_what_it_likes(policies: PolicySet) -> None:
    growing = replace(
        policies,
        settings=Settings(queue=QueueSettings(release_without_nodes=True)),
        pools={"a100": replace(policies.pools["a100"], release_without_nodes=True)},
    )

    assert overcommitted(growing, []) == ()
