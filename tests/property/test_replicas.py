# SPDX-License-Identifier: Apache-2.0
"""Remembered decisions are the ones that would be made, and tell no two pods apart wrongly."""

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.decide import decide
from policies.model.decision import Decision
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import Phase, Request
from policies.model.usage import TenantUsage
from policies.replicas import Replicas
from tests.support.builders import (
    Json,
    container,
    facts,
    mutate,
    patched,
    pod,
    policy_set,
    request,
    validate,
)
from tests.support.strategies import mutilated, pods

PHASES = st.sampled_from(list(Phase))


class Counted:
    """The real decision, counted."""

    def __init__(self) -> None:
        self.made = 0

    def decide(self, policies: PolicySet, known: Facts, asked: Request) -> Decision:
        self.made += 1
        return decide(policies, known, asked)


@given(st.lists(pods(tame=False), min_size=1, max_size=4), PHASES)
def test_a_decision_without_what_is_not_read_is_the_decision(
    found: list[Json], phase: Phase
) -> None:
    remembering, known = Replicas(decide), facts()
    for one in [*found, *found]:
        asked = request(one, phase=phase)
        assert remembering.decide(policy_set(), known, asked) == decide(policy_set(), known, asked)


@given(pods())
def test_the_patch_of_a_remembered_decision_makes_the_pod_that_is_demanded(found: Json) -> None:
    decision = Replicas(decide).decide(policy_set(), facts(), request(found))

    assert decision == mutate(found)
    if decision.allowed:
        assert validate(patched(found, decision)).allowed


@given(mutilated(), PHASES)
def test_any_object_is_decided_on_as_without_memory(found: Any, phase: Phase) -> None:
    asked = request(found if isinstance(found, dict) else None, phase=phase)

    assert Replicas(decide).decide(policy_set(), facts(), asked) == decide(
        policy_set(), facts(), asked
    )


def _replica(suffix: str) -> Json:
    """One of many pods of a workload, as the API server has completed it."""
    token = f"kube-api-access-{suffix}"
    mounted = {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    found = pod(
        container(gpus="1", volumeMounts=[mounted]),
        volumes=[{"name": token, "projected": {"sources": []}}],
    )
    found["metadata"] |= {"name": f"llm-{suffix}", "uid": suffix}
    return found


def test_replicas_are_decided_on_once() -> None:
    counted, known = Counted(), facts()
    remembering = Replicas(counted.decide)
    decisions = [
        remembering.decide(policy_set(), known, request(_replica(suffix)))
        for suffix in ("x7kql", "b2mzn", "pp9dw")
    ]

    assert counted.made == 1
    assert decisions[0] == decisions[1] == decisions[2] == mutate(_replica("other"))


def test_another_namespace_user_pass_or_picture_of_the_cluster_is_decided_anew() -> None:
    counted, known, found = Counted(), facts(), _replica("x7kql")
    remembering = Replicas(counted.decide)
    other = request(found).user.__class__(username="somebody-else")
    for asked in (
        request(found),
        request(found, namespace="research"),
        request(found, user=other),
        request(found, phase=Phase.VALIDATE),
    ):
        remembering.decide(policy_set(), known, asked)
    assert counted.made == 4
    later = Facts(deepcopy(known.cluster), datetime(2026, 1, 1, tzinfo=UTC))
    remembering.decide(policy_set(), later, request(found))
    assert counted.made == 5


def test_a_host_path_is_told_by_the_name_of_its_volume() -> None:
    remembering, known = Replicas(decide), facts()
    for name in ("one", "two"):
        volume = {"name": name, "hostPath": {"path": "/dev/nvidia0"}}
        asked = request(pod(container(gpus="1"), volumes=[volume]))
        assert f"volume {name}" in remembering.decide(policy_set(), known, asked).message


def test_decisions_on_large_pods_are_not_kept() -> None:
    counted = Counted()
    remembering, known = Replicas(counted.decide), facts()
    variables = [{"name": f"CUDA_DEVICE_MEMORY_LIMIT_{'x' * 64}_{i}"} for i in range(1000)]
    asked = request(pod(container(gpus="1", env=variables)))
    for _ in range(2):
        decision = remembering.decide(policy_set(), known, asked)
    assert counted.made == 2
    assert len(decision.violations) == len(variables)


DENYING = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: denies}
spec:
  namespaces: {names: [chat]}
  quota: {gpus: {ceiling: 4}, memory: {ceiling: 320Gi}, resources: {nvidia.com/gpu: {ceiling: 4}}}
  whenOverQuota: Deny
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: queues}
spec:
  namespaces: {names: [research]}
  quota: {gpus: {ceiling: 4}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: card}
spec: {mode: Exclusive, products: [NVIDIA-H100-80GB-HBM3]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: all}
spec: {rewrite: {profile: card}}
"""
"""One tenant that is refused what there is no room for, and one that waits."""

USAGES = st.builds(
    TenantUsage,
    milli_by_pool=st.dictionaries(st.sampled_from(["", "a"]), st.integers(0, 5000)),
    memory_mib=st.integers(0, 400 * 1024),
    counts=st.dictionaries(st.sampled_from(["nvidia.com/gpu", "a.b/c"]), st.integers(0, 5)),
    pending=st.integers(0, 3),
)
NAMES = ("denies", "queues", "somebody")
REVIEWS = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), USAGES),
    st.sampled_from(["chat", "research"]),
    st.integers(1, 4),
    PHASES,
)


@given(st.lists(REVIEWS, min_size=2, max_size=6))
def test_no_decision_is_remembered_beyond_the_usage_that_it_was_made_with(
    reviews: list[tuple[dict[str, TenantUsage], str, int, Phase]],
) -> None:
    policies, picture = policy_set(DENYING), facts({"chat": {}, "research": {}})
    remembering = Replicas(decide)
    for used, namespace, gpus, phase in [*reviews, *reviews]:
        known = replace(picture, usage=used)
        found = pod(container(gpus=str(gpus)), namespace=namespace)
        asked = request(found, namespace=namespace, phase=phase)

        assert remembering.decide(policies, known, asked) == decide(policies, known, asked)


def _using(tenant: str, milli: int) -> Facts:
    usage = {tenant: TenantUsage({"": milli})}
    return replace(_PICTURE, usage=usage)


_PICTURE = facts({"chat": {}, "research": {}})


def test_a_tenant_that_denies_is_decided_on_anew_whenever_its_usage_has_changed() -> None:
    counted = Counted()
    remembering, asked = Replicas(counted.decide), request(_replica("x7kql"))
    answers = [
        remembering.decide(policy_set(DENYING), _using("denies", milli), asked).allowed
        for milli in (0, 3000, 3000, 4000, 0)
    ]

    assert answers == [True, True, True, False, True]
    assert counted.made == 3


def test_usage_of_others_and_of_tenants_that_queue_makes_no_decision_anew() -> None:
    counted = Counted()
    remembering = Replicas(counted.decide)
    for milli in range(0, 8000, 100):
        for tenant in ("queues", "somebody"):
            known = _using(tenant, milli)
            for namespace in ("research", "chat"):
                asked = request(_replica("x7kql"), namespace=namespace)
                assert remembering.decide(policy_set(DENYING), known, asked).allowed

    assert counted.made == 2
