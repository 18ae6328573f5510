# SPDX-License-Identifier: Apache-2.0
"""One pod runs on one node: forms and selectors that exclude each other are told at once."""

import pytest

from policies.model.labels import Expression, Operator
from policies.model.reasons import Reason
from tests.support.builders import (
    EXCLUSIVE,
    GPU,
    REFERENCE,
    SHARED,
    TOLERATION,
    container,
    mutate,
    pod,
    policy_set,
    rewritten,
)
from tests.support.pods import terms_of

TWO_MODELS = policy_set(
    f"""{REFERENCE}
---
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {{name: batch}}
spec: {{namespaces: {{names: [batch]}}, profiles: [a100-slices, slice-4]}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {{name: a100-slices}}
spec:
  mode: TimeSlice
  replicas: 4
  products: [NVIDIA-A100-SXM4-80GB]
  resource: nvidia.com/a100.shared
  nodeSelector: {{pool: batch}}
  tolerations: [{{key: batch, operator: Exists}}]
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {{name: batch}}
spec: {{match: {{tenants: [batch]}}, rewrite: {{profile: a100-slices}}}}
"""
)


def test_a_shared_pod_is_pinned_to_nodes_that_share_alike() -> None:
    spec = rewritten(pod())["spec"]

    assert spec["nodeSelector"] == {
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "4",
    }
    assert spec["tolerations"] == [TOLERATION]
    assert terms_of({"spec": spec}) == [
        {
            "matchExpressions": [
                {
                    "key": "nvidia.com/gpu.product",
                    "operator": "In",
                    "values": ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3-SHARED"],
                }
            ]
        }
    ]


def test_a_profiles_own_selector_and_tolerations_are_demanded_too() -> None:
    spec = rewritten(pod(namespace="batch"), TWO_MODELS)["spec"]

    assert spec["nodeSelector"]["pool"] == "batch"
    assert spec["tolerations"] == [TOLERATION, {"key": "batch", "operator": "Exists"}]


def test_a_pods_own_placement_stays_beside_what_is_demanded() -> None:
    own = {"key": "dedicated", "operator": "Exists"}
    spec = rewritten(pod(nodeSelector={"zone": "a"}, tolerations=[own, TOLERATION]))["spec"]

    assert spec["nodeSelector"]["zone"] == "a"
    assert spec["tolerations"] == [own, TOLERATION]


@pytest.mark.parametrize(
    ("key", "value", "need"),
    [
        ("nvidia.com/gpu.replicas", "8", "nvidia.com/gpu.replicas=4"),
        ("nvidia.com/gpu.sharing-strategy", "mps", "nvidia.com/gpu.sharing-strategy=time-slicing"),
        ("nvidia.com/gpu.product", "NVIDIA-L40S", "nvidia.com/gpu.product in (NVIDIA-H100-80GB"),
    ],
)
def test_a_node_selector_that_excludes_the_forms_nodes_is_refused(
    key: str, value: str, need: str
) -> None:
    decision = mutate(pod(nodeSelector={key: value}))

    assert decision.reasons == (Reason.PLACEMENT_CONFLICT,)
    assert f"nodeSelector {key}={value} excludes the nodes of profile slice-4" in decision.message
    assert need in decision.message


def test_a_node_selector_that_only_narrows_passes() -> None:
    narrow = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.replicas": "4"}

    assert mutate(pod(nodeSelector=narrow)).allowed


def test_a_label_that_must_be_absent_excludes_too() -> None:
    found = pod(
        container(gpus="1"),
        namespace="lab",
        annotations={EXCLUSIVE: "true"},
        nodeSelector={"nvidia.com/gpu.slices.gi": "1"},
    )

    assert "which need !nvidia.com/gpu.slices.gi" in mutate(found).message


def test_forms_that_no_node_offers_together_are_refused() -> None:
    found = pod(
        container("whole", "1"),
        container("share", "1", resource=SHARED),
        namespace="lab",
        annotations={EXCLUSIVE: "true"},
    )
    decision = mutate(found)

    assert decision.reasons == (Reason.MIXED_FORMS,)
    assert "whole and slice-4" in decision.message
    assert "nvidia.com/gpu.sharing-strategy" in decision.message


def test_forms_of_different_models_are_refused() -> None:
    found = pod(container("a", "1"), container("b", "1", resource=SHARED), namespace="batch")
    decision = mutate(found, TWO_MODELS)

    assert decision.reasons == (Reason.MIXED_FORMS,)
    assert "they differ in nvidia.com/gpu.product" in decision.message


def test_whole_gpus_are_kept_off_nodes_that_share_are_cut_or_are_being_cut() -> None:
    spec = rewritten(pod(container(gpus="2"), namespace="lab", annotations={EXCLUSIVE: "true"}))

    assert spec["spec"]["nodeSelector"] == {"nvidia.com/gpu.sharing-strategy": "none"}
    assert spec["spec"]["containers"][0]["resources"]["limits"] == {GPU: "2"}
    assert terms_of(spec) == [
        {
            "matchExpressions": [
                {"key": "nvidia.com/gpu.slices.gi", "operator": "DoesNotExist"},
                {
                    "key": "nvidia.com/mig.config.state",
                    "operator": "NotIn",
                    "values": ["failed", "pending", "rebooting"],
                },
            ]
        }
    ]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Expression("zone", Operator.IN, ("a", "b")), "zone in (a,b)"),
        (Expression("zone", Operator.NOT_IN, ("a",)), "zone notin (a)"),
        (Expression("zone", Operator.EXISTS), "zone"),
        (Expression("zone", Operator.DOES_NOT_EXIST), "!zone"),
    ],
)
def test_requirements_read_as_kubectl_writes_them(expression: Expression, text: str) -> None:
    assert str(expression) == text
