# SPDX-License-Identifier: Apache-2.0
"""What the ledger charges for a pod is what admission said that it would, whatever the pod."""

from typing import Any, Final

from hypothesis import assume, example, given
from hypothesis import strategies as st

from policies.quota.amount import Amount, total
from policies.quota.charging import Unknown, amount_of, cost
from reconciler.quota.view import PodViews
from tests.support.builders import (
    GPU,
    MIG,
    SHARED,
    Json,
    container,
    mutate,
    patched,
    pod,
    policy_set,
)
from tests.support.strategies import json_values, mutilated, places, pods

VIEWS: Final = PodViews()

TWO_OF_A_SIZE: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: all}
spec: {namespaces: {names: [chat, vision, lab, other]}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: third}
spec: {mode: TimeSlice, replicas: 3, allowMultiple: true}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: by-thirds}
spec: {rewrite: {profile: third}}
"""


def _whole(pod_or_mutilated: Json) -> Json:
    """Return a pod with what the API server gives every stored one."""
    metadata = {**pod_or_mutilated["metadata"], "uid": "u", "resourceVersion": "7"}
    return {**pod_or_mutilated, "metadata": metadata}


def _check(found: Json, text: str | None = None) -> None:
    policies = policy_set(text) if text else policy_set()
    decision = mutate(found, policies)
    assume(decision.allowed and decision.charge_milli is not None)
    view = VIEWS.view(_whole(patched(found, decision)))
    assume(view is not None and view.shape.gpus)
    assert view is not None

    amount = amount_of(view.shape, policies)

    assert isinstance(amount, Amount), amount
    assert amount.milli == decision.charge_milli
    assert amount.counts == decision.given


@given(pods())
@example(pod(container("a", "1"), initContainers=[container("b", "1"), container("c", "1")]))
@example(pod(container("a", "1"), initContainers=[container("b", "1", restartPolicy="Always")]))
def test_a_rewritten_pod_costs_what_admission_said(found: Json) -> None:
    _check(found)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 4))
def test_thirds_are_rounded_up_once_in_both_places(counts: list[int], first: int) -> None:
    apps = [container(f"c{index}", count) for index, count in enumerate(counts)]
    inits = [container("first", first)] if first else []
    _check(pod(*apps, initContainers=inits), TWO_OF_A_SIZE)


def test_two_forms_in_one_container_are_both_charged() -> None:
    both = {GPU: "2", MIG: "1"}
    found = pod(
        container(resources={"limits": both, "requests": both}), namespace="lab", annotations={}
    )
    policies = policy_set("""
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: lab}
spec: {namespaces: {names: [lab]}, profiles: [whole, h100-1g.10gb]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: whole-ones}
spec: {rewrite: {profile: whole}}
""")
    decision = mutate(found, policies)
    assert decision.allowed, decision.message
    view = VIEWS.view(_whole(patched(found, decision)))
    assert view is not None

    assert cost(amount_of(view.shape, policies)).milli == decision.charge_milli == 2125


@given(st.integers(1, 64), st.integers(1, 8))
def test_as_many_shares_as_gpus_have_never_cost_more_than_the_gpus(
    replicas: int, gpus: int
) -> None:
    one = Amount({replicas: 1}, 10, {SHARED: 1})
    assert total([one] * replicas * gpus).milli == 1000 * gpus


@given(mutilated())
def test_a_pod_with_anything_anywhere_has_a_view(found: Any) -> None:
    if isinstance(found, dict):
        view = VIEWS.view(found)
        if view is not None:
            cost(amount_of(view.shape, policy_set()))


@given(pods(tame=False), json_values, st.data())
def test_a_stored_pod_with_anything_anywhere_has_a_view(
    found: Json, replacement: Any, data: Any
) -> None:
    stored: Json = {
        **_whole(found),
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodResizePending", "reason": "Deferred"}],
            "containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    stored["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
    stored["metadata"]["deletionTimestamp"] = "2031-05-17T12:00:00Z"
    parent, key = data.draw(st.sampled_from(places(stored)))
    parent[key] = replacement

    view = VIEWS.view(stored)

    if view is not None:
        amount = amount_of(view.shape, policy_set())
        assert isinstance(amount, Amount | Unknown)
        assert view == VIEWS.view(stored)
