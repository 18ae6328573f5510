# SPDX-License-Identifier: Apache-2.0
"""The pools that a pod can run in: only what is sure leaves one out."""

from dataclasses import replace
from typing import Any

import pytest

from policies.decide import decide
from policies.model.decision import Decision
from policies.model.facts import NodeFacts
from policies.model.reasons import Reason
from tests.support.builders import GPU, container, facts, pod, policy_set, request

PRODUCT = "nvidia.com/gpu.product"
STRATEGY = "nvidia.com/gpu.sharing-strategy"
H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"

DOCUMENTS = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: chat}}
spec:
  namespaces: {{names: [chat]}}
  quota: {{gpus: {{guarantee: 1, ceiling: 4}}, pools: {{a: {{guarantee: 2, ceiling: 2}}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {{name: a}}
spec: {{nodes: {{selector: {{matchLabels: {{pool: a}}}}}}{more}}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {{name: b}}
spec: {{nodes: {{selector: {{matchLabels: {{pool: b}}}}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {{name: form}}
spec: {{mode: Exclusive, products: [{product}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: all}}
spec: {{rewrite: {{profile: form}}, exclusive: {exclusive}}}
"""


def documents(more: str = "", *, exclusive: str = "false") -> str:
    return DOCUMENTS.format(more=more, product=H100, exclusive=exclusive)


def node(
    name: str, product: str, *, strategy: str = "none", count: int = 8, **labels: str
) -> NodeFacts:
    return NodeFacts(name, {PRODUCT: product, STRATEGY: strategy, **labels}, {GPU: count})


def decided(*nodes: NodeFacts, text: str | None = None, gpus: str = "1", **parts: Any) -> Decision:
    known = facts({"chat": {}}, nodes or None)
    return decide(
        policy_set(text or documents()), known, request(pod(container(gpus=gpus), **parts))
    )


def test_a_form_that_only_nodes_of_a_pool_without_quota_offer_is_refused_until_others_do() -> None:
    found = decided(node("b1", H100, pool="b"), node("d1", A100))

    assert [v.passing for v in found.violations] == [True]
    assert "only nodes of pool b offer this form" in found.message
    assert decided(node("b1", H100, pool="b"), node("d1", H100)).allowed


@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (node("d1", A100),),
        (node("b1", H100, pool="b"), node("d1", H100, strategy="mps")),
        (node("b1", H100, pool="b"), node("d1", f"{H100}-SHARED", strategy="time-slicing")),
        (node("b1", H100, pool="b"), node("a1", H100, pool="a", count=0)),
        (node("b1", H100, pool="b"), NodeFacts("d1", {}, {GPU: 0})),
    ],
)
def test_where_a_node_of_another_pool_may_come_to_offer_it_nothing_is_refused(
    nodes: tuple[NodeFacts, ...],
) -> None:
    assert decided(*nodes).allowed


def test_a_pool_that_gets_its_nodes_once_pods_wait_stays_possible() -> None:
    nodes = (node("b1", H100, pool="b"), node("d1", A100))

    assert decided(*nodes, text=documents(", releaseWithoutNodes: true")).allowed


def test_what_a_pod_demands_of_a_node_is_enough_to_refuse_it_for_ever() -> None:
    found = decided(nodeSelector={"pool": "b"})

    assert found.reasons == (Reason.OVER_CEILING,)
    assert [v.passing for v in found.violations] == [False]
    assert "this pod can only run in pool b" in found.message


def test_one_pod_is_bounded_by_the_ceiling_and_guarantee_of_the_pools_it_can_run_in() -> None:
    assert decided(gpus="4").allowed
    assert (
        "ceiling of 2 GPUs; this pod asks 4"
        in decided(gpus="4", nodeSelector={"pool": "a"}).message
    )
    exclusive = documents(exclusive="true")
    assert decided(text=exclusive, gpus="2").allowed
    known = (node("d1", H100), node("a1", A100, pool="a"))
    refused = decided(*known, text=exclusive, gpus="2")
    assert refused.reasons == (Reason.OVER_GUARANTEE,)
    assert "guarantee of tenant chat in the default pool, 1 GPUs" in refused.message


def test_an_old_picture_of_the_nodes_shows_nothing() -> None:
    known = replace(facts({"chat": {}}, (node("b1", H100, pool="b"),)), stale_seconds=60)

    assert decide(policy_set(documents()), known, request(pod(container(gpus="1")))).allowed
