# SPDX-License-Identifier: Apache-2.0
"""Remembered decisions are the ones that would be made, and tell no two pods apart wrongly."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.decide import decide
from policies.model.decision import Decision
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import Phase, Request
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
