# SPDX-License-Identifier: Apache-2.0
"""Whose a namespace is, and what its GPU pods get where it is nobody's."""

import pytest

from policies.model.facts import ClusterFacts, Facts
from policies.model.reasons import Reason
from tests.support.builders import (
    NOW,
    REFERENCE,
    SHARED,
    container,
    facts,
    mutate,
    pod,
    policy_set,
    validate,
)

NO_NAMESPACES = Facts(ClusterFacts({}), NOW)

TWO_SELECTORS = policy_set(
    f"""{REFERENCE}
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: everybody}}
spec: {{namespaces: {{selector: {{matchExpressions: [{{key: team, operator: Exists}}]}}}}}}
"""
)


def _without_tenant(answer: str) -> str:
    return f"""{REFERENCE}
---
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {{name: cluster}}
spec: {{namespacesWithoutTenant: {answer}}}
"""


def test_a_namespace_belongs_to_the_tenant_that_names_it() -> None:
    assert mutate(pod(namespace="chat-staging")).tenant == "chat"


def test_a_namespace_belongs_to_the_tenant_whose_selector_matches_its_labels() -> None:
    assert mutate(pod(namespace="lab")).tenant == "research"


def test_a_name_wins_over_a_label_since_tenants_may_write_labels() -> None:
    found = facts({"chat": {"team": "research"}})

    assert mutate(pod(), facts=found).tenant == "chat"


def test_the_tenant_is_that_of_the_request_whatever_namespace_the_object_claims() -> None:
    claimed = pod(container(gpus="1"), namespace="lab")

    assert mutate(claimed, namespace="chat").tenant == "chat"
    del claimed["metadata"]["namespace"]
    assert mutate(claimed, namespace="vision").tenant == "vision"


def test_a_namespace_that_two_selectors_match_is_refused() -> None:
    decision = mutate(pod(namespace="lab"), TWO_SELECTORS)

    assert decision.reasons == (Reason.AMBIGUOUS_TENANT,)
    assert "everybody, research" in decision.message


def test_a_namespace_not_seen_yet_is_refused_for_that_reason_alone() -> None:
    decision = mutate(pod(namespace="lab"), facts=NO_NAMESPACES)

    assert decision.reasons == (Reason.NAMESPACE_UNKNOWN,)
    assert decision.message.endswith("try again")


def test_a_namespace_that_a_tenant_names_need_not_have_been_seen() -> None:
    assert mutate(pod(), facts=NO_NAMESPACES).allowed


@pytest.mark.parametrize("gpus", [None, 0, "0"])
def test_a_pod_that_takes_no_gpu_needs_no_tenant(gpus: object) -> None:
    found = pod(container(gpus=gpus), namespace="unseen")

    assert mutate(found, facts=NO_NAMESPACES).allowed
    assert mutate(found, TWO_SELECTORS, facts=facts({"unseen": {"team": "research"}})).allowed


def test_a_gpu_pod_in_a_namespace_of_no_tenant_is_refused() -> None:
    decision = mutate(pod(namespace="other"))

    assert decision.reasons == (Reason.NO_TENANT,)
    assert "namespace other belongs to no tenant" in decision.message


def test_settings_may_let_such_a_pod_through_with_a_warning() -> None:
    decision = mutate(pod(namespace="other"), policy_set(_without_tenant("Warn")))

    assert decision.allowed
    assert decision.patch == ()
    assert decision.warnings == (
        "sluice: namespace other belongs to no tenant: its GPUs are not managed",
    )
    assert (decision.tenant, decision.charge_milli, decision.asked) == (
        None,
        None,
        {"nvidia.com/gpu": 1},
    )


@pytest.mark.parametrize("answer", ["Warn", "Allow"])
def test_such_a_pod_is_not_gated_and_passes_validation_as_it_is(answer: str) -> None:
    policies = policy_set(_without_tenant(answer))
    share = pod(container(gpus="3", resource=SHARED), namespace="other")

    assert mutate(share, policies).patch == ()
    assert validate(share, policies).allowed
    assert not validate(share, policies).warnings


def test_the_checks_hold_in_namespaces_of_no_tenant_too() -> None:
    found = pod(container(gpus="1"), namespace="other", nodeName="n1")

    assert mutate(found, policy_set(_without_tenant("Allow"))).reasons == (Reason.NODE_NAME,)
