# SPDX-License-Identifier: Apache-2.0
"""What pods cost, by their claim, their names and their nodes."""

from typing import Any, Final

import pytest

from policies.model.facts import NodeFacts
from policies.model.keys import DECISION
from policies.pod.asked import MAX_DEVICES
from policies.quota.amount import NOTHING, Amount
from policies.quota.charging import Unknown, amount_of, cost
from policies.quota.pods import Shape
from policies.quota.tariff import Tariff
from reconciler.quota.view import PodViews
from tests.support.builders import GPU, MIG, SHARED, Json, container, pod, policy_set, rewritten

H100: Final = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
SLICED: Final = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.replicas": "4",
}
LARGEST_MIB: Final = 183359


def shape_of(raw: Json) -> Shape:
    metadata = {**raw["metadata"], "uid": "u", "resourceVersion": "1"}
    view = PodViews().view({**raw, "metadata": metadata})
    assert view is not None
    return view.shape


def asking(resource: str, count: object = "1", **parts: Any) -> Shape:
    return shape_of(pod(container(gpus=count, resource=resource), **parts))


def node(labels: dict[str, str], **allocatable: int) -> NodeFacts:
    return NodeFacts("node-1", labels, allocatable)


def test_a_pod_without_gpus_costs_nothing() -> None:
    assert amount_of(shape_of(pod(container())), policy_set()) == NOTHING


def test_a_rewritten_pod_costs_its_profiles_part_and_memory() -> None:
    shape = shape_of(rewritten(pod(container("a", "1"), container("b", "1"))))

    assert amount_of(shape, policy_set()) == Amount({4: 2}, 2 * (81559 // 4), {SHARED: 2})


def test_an_init_container_that_asks_more_decides() -> None:
    init = [container("first", "3"), container("beside", "1", restartPolicy="Always")]
    found = pod(container("main", "1"), initContainers=init, namespace="vision")
    allowing = policy_set("""
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: vision}
spec: {namespaces: {names: [vision]}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: whole}
spec: {rewrite: {profile: whole}}
""")

    amount = cost(amount_of(shape_of(rewritten(found, allowing)), allowing))

    assert amount.milli == 3000
    assert amount.counts == {GPU: 3}


def test_a_mig_instance_costs_its_memory_slices() -> None:
    shape = shape_of(rewritten(pod(container(gpus="1"), namespace="vision")))

    assert amount_of(shape, policy_set()) == Amount({8: 1}, 9984, {MIG: 1})


@pytest.mark.parametrize(
    ("resource", "labels", "expected"),
    [
        (GPU, {}, Amount({1: 1}, LARGEST_MIB, {GPU: 1})),
        (GPU, H100, Amount({1: 1}, 81559, {GPU: 1})),
        (GPU, {"nvidia.com/gpu.product": "NVIDIA-A10"}, Amount({1: 1}, 23028, {GPU: 1})),
        (SHARED, SLICED, Amount({4: 1}, 20389, {SHARED: 1})),
        (
            GPU,
            {**SLICED, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"},
            Amount({4: 1}, 20389, {GPU: 1}),
        ),
        # Shares have a name of their own here, so this pod is from before the node was divided.
        (GPU, SLICED, Amount({1: 1}, 81559, {GPU: 1})),
        (MIG, H100, Amount({8: 1}, 9984, {MIG: 1})),
        (MIG, {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, Amount({8: 2}, 9856, {MIG: 1})),
        (
            f"{MIG}.shared",
            {**H100, f"{MIG}.replicas": "2"},
            Amount({16: 1}, 9984 // 2, {f"{MIG}.shared": 1}),
        ),
        (
            GPU,
            {
                "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb",
                "nvidia.com/gpu.slices.gi": "3",
            },
            Amount({8: 4}, 19968, {GPU: 1}),
        ),
        ("amd.com/gpu", {}, Amount({1: 1}, LARGEST_MIB, {"amd.com/gpu": 1})),
    ],
)
def test_a_pod_that_skipped_the_gate_costs_what_its_nodes_labels_say(
    resource: str, labels: dict[str, str], expected: Amount
) -> None:
    assert amount_of(asking(resource), policy_set(), node(labels)) == expected


@pytest.mark.parametrize(
    ("resource", "labels"),
    [
        (SHARED, None),
        (SHARED, {}),
        (SHARED, {**SLICED, "nvidia.com/gpu.replicas": "many"}),
        (SHARED, {**SLICED, "nvidia.com/gpu.replicas": "0"}),
        (MIG, None),
        (f"{MIG}.shared", H100),
        (MIG, {"nvidia.com/gpu.product": "NVIDIA-A10"}),
    ],
)
def test_what_no_label_tells_counts_as_whole_gpus_and_is_said_not_to_be_known(
    resource: str, labels: dict[str, str] | None
) -> None:
    found = amount_of(asking(resource), policy_set(), None if labels is None else node(labels))

    assert isinstance(found, Unknown)
    assert resource in found.reason
    assert found.at_most == Amount({1: 1}, LARGEST_MIB, {resource: 1})


def test_a_name_that_is_no_gpu_of_a_known_kind_is_only_counted() -> None:
    found = amount_of(asking("volcano.sh/vgpu-memory", "8000"), policy_set())

    assert isinstance(found, Unknown)
    assert found.at_most == Amount(counts={"volcano.sh/vgpu-memory": 8000})


def test_a_claim_is_not_believed_where_the_pod_is_not_pinned_to_its_nodes() -> None:
    real = rewritten(pod())
    claim = {DECISION: real["metadata"]["annotations"][DECISION]}
    forged = shape_of(pod(container(gpus="1", resource=SHARED), annotations=claim))

    assert forged.profiles == ("slice-4",)
    assert isinstance(amount_of(forged, policy_set()), Unknown)


def test_a_nodes_labels_win_over_a_claim() -> None:
    shape = shape_of(rewritten(pod()))
    halves = {**SLICED, "nvidia.com/gpu.replicas": "2"}

    assert cost(amount_of(shape, policy_set(), node(halves))).parts == {2: 1}


def test_absurd_counts_are_bounded() -> None:
    assert cost(amount_of(asking(GPU, str(2**63 - 1)), policy_set())).parts == {1: MAX_DEVICES}
    assert amount_of(asking(GPU, "-3"), policy_set()) == NOTHING


def test_memory_is_that_of_the_largest_node_that_offers_the_form() -> None:
    tariff = Tariff(policy_set())
    shape = asking(GPU)
    for name, mib in (("a", "40960"), ("b", "81559"), ("c", "97871")):
        labels = {"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.memory": mib}
        offered = 8 if name != "c" else 0
        tariff.put_node(NodeFacts(name, labels, {GPU: offered}))

    assert cost(tariff.price_of(shape)).mib == 81559
    tariff.remove_node("b")
    assert cost(tariff.price_of(shape)).mib == 40960


def test_prices_change_only_with_what_a_node_is_and_offers() -> None:
    tariff = Tariff(policy_set())

    assert tariff.put_node(NodeFacts("a", H100, {GPU: 8}))
    assert not tariff.put_node(NodeFacts("a", dict(H100), {GPU: 7}))
    assert tariff.put_node(NodeFacts("a", H100, {GPU: 0}))
    assert tariff.put_node(NodeFacts("a", SLICED, {GPU: 0}))
    assert tariff.remove_node("a")
    assert not tariff.remove_node("a")


def test_the_pool_of_a_pod_is_that_of_its_node() -> None:
    policies = policy_set("""
apiVersion: sluice.dev/v1alpha1
kind: GPUPool
metadata: {name: h100}
spec:
  nodes: {selector: {matchLabels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}}
""")
    tariff = Tariff(policies)
    tariff.put_node(NodeFacts("a", H100, {}))
    raw = pod()
    raw["spec"]["nodeName"] = "a"
    bound, lone = PodViews().view(raw), PodViews().view(pod())
    assert bound is not None
    assert lone is not None

    assert tariff.pool(bound) == "h100"
    assert tariff.pool(lone) == ""
    tariff.set_policies(policy_set())
    assert tariff.pool(bound) == ""
