# SPDX-License-Identifier: Apache-2.0
"""Corners of fits, limits and companions that single pods do not show."""

from dataclasses import replace
from typing import Any

from policies.model.facts import ClusterFacts, Facts, NodeFacts
from policies.model.labels import Expression, Operator
from policies.model.profile import Strength
from tests.support.builders import (
    SHARED,
    Json,
    container,
    facts,
    mutate,
    patched,
    pod,
    policy_set,
    rewritten,
    validate,
)
from tests.support.pods import REQUIRED

_TENANTS = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat}
spec: {namespaces: {names: [chat]}, cohort: vision}
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: vision}
spec: {namespaces: {names: [vision]}}
---
"""


def _policies(profile: str, policy: str) -> Any:
    return policy_set(
        _TENANTS
        + f"apiVersion: sluice.dev/v1alpha1\nkind: SharingProfile\nmetadata: {{name: share}}\n"
        f"spec: {{mode: TimeSlice, replicas: 4, {profile}}}\n---\n"
        "apiVersion: sluice.dev/v1alpha1\nkind: GPUPolicy\nmetadata: {name: shared}\n"
        f"spec: {{{policy}}}\n"
    )


def _cluster(*boards: tuple[str, int]) -> Facts:
    labels = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    nodes = tuple(
        NodeFacts(
            product,
            {**labels, "nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": str(mib)},
            {SHARED: 32},
        )
        for product, mib in boards
    )
    known = facts()
    return replace(known, cluster=ClusterFacts(known.cluster.namespaces, nodes))


def test_a_smaller_board_that_joins_between_the_passes_takes_no_share_back() -> None:
    policies = _policies(
        "products: [NVIDIA-H100-80GB-HBM3, NVIDIA-L40S]",
        "rewrite: {fit: {memory: {default: 15Gi}, candidates: [share]}}",
    )
    large, small = ("NVIDIA-H100-80GB-HBM3", 81559), ("NVIDIA-L40S", 46068)
    asked = pod(container(gpus="1"))
    made = patched(asked, mutate(asked, policies, facts=_cluster(large)))

    assert validate(made, policies, facts=_cluster(large, small)).allowed
    assert validate(made, policies, facts=_cluster()).allowed
    assert not mutate(asked, policies, facts=_cluster(large, small)).allowed


def test_a_claim_of_a_form_that_no_board_makes_large_enough_is_refused() -> None:
    policies = _policies(
        "products: [NVIDIA-H100-80GB-HBM3]",
        "rewrite: {fit: {memory: {annotation: need}, candidates: [share]}}",
    )
    made = rewritten(pod(container(gpus="1"), annotations={"need": "8Gi"}), policies)
    made["metadata"]["annotations"]["need"] = "30Gi"

    assert not validate(made, policies).allowed


def test_a_share_by_its_name_has_no_limit_that_nobody_tells_the_library() -> None:
    policies = _policies(
        "limiter: HAMiCore", "rewrite: {profile: share}, memoryLimit: {value: 4Gi}"
    )

    by_policy = mutate(pod(container(gpus="1")), policies)
    by_name = mutate(pod(container(gpus="1", resource=SHARED)), policies)

    assert by_policy.strength == Strength.COOPERATIVE
    assert by_name.strength == Strength.NONE


def _keeps_away(made: Json, other: Json) -> bool:
    """Tell whether a required anti-affinity term of the first pod matches the second's labels."""
    terms = made["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    return any(
        all(
            Expression(e["key"], Operator(e["operator"]), tuple(e.get("values", ()))).matches(
                other["metadata"]["labels"]
            )
            for e in term["labelSelector"]["matchExpressions"]
        )
        for term in terms
    )


def test_a_tenant_of_no_cohort_is_not_in_one_that_has_its_name() -> None:
    policies = _policies("shareWith: Cohort", "rewrite: {profile: share}")
    chat, vision = (
        rewritten(pod(container(gpus="1"), namespace=name), policies) for name in ("chat", "vision")
    )

    assert _keeps_away(chat, vision)
    assert _keeps_away(vision, chat)
    assert not _keeps_away(chat, chat)
    assert not _keeps_away(vision, vision)


def test_an_overridden_variable_stays_before_what_refers_to_it_and_comes_back_there() -> None:
    policies = _policies(
        "limiter: HAMiCore",
        "rewrite: {profile: share}, memoryLimit: {value: 4Gi, userValue: Override}",
    )
    name = "CUDA_DEVICE_MEMORY_LIMIT"
    shown = {"name": "SHOWN", "value": f"$({name})"}
    asked = pod(container(gpus="1", env=[{"name": name, "value": "0"}, shown]))

    env = rewritten(asked, policies)["spec"]["containers"][0]["env"]

    assert env == [{"name": name, "value": "4096m"}, shown]
