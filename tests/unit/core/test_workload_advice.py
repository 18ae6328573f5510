# SPDX-License-Identifier: Apache-2.0
"""Advice on workloads: whatever they hold it neither fails nor refuses, and its lines are short."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.admission.workload_advice import registry
from policies.model.decision import Decision
from policies.model.request import Phase
from tests.support.builders import Json, container, mutate, pod, policy_set
from tests.support.workloads import kind_of, workload

DOCUMENTS = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat}
spec:
  namespaces: {names: [chat]}
  quota:
    gpus: {guarantee: 1, ceiling: 40}
    memory: {ceiling: 320Gi}
    resources: {nvidia.com/gpu: {ceiling: 6}}
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

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "50%", "x", "Ignore"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["rules", "action", "onPodConditions", "type", "rollingUpdate", "maxSurge"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        "activeDeadlineSeconds",
        "backoffLimit",
        "completions",
        "parallelism",
        "podFailurePolicy",
        "podManagementPolicy",
        "replicas",
        "strategy",
    ]
)
SIZES = st.sampled_from(["", "0", "4", "04", "four", "٤", "9" * 400, "100001", "\n"])


def apply(kind: str, spec: Json, name: str = "llm", **metadata: Any) -> Decision:
    found = kind_of(kind)
    built = workload(found, pod(container(gpus="1"), **metadata))
    built["metadata"]["name"] = name
    built["spec"] |= spec
    return mutate(
        built,
        policy_set(DOCUMENTS),
        phase=Phase.VALIDATE,
        group=found.group,
        resource=found.resource,
    )


@given(
    st.sampled_from(["Deployment", "StatefulSet", "Job"]),
    st.dictionaries(FIELDS, JSON, max_size=5),
    st.dictionaries(st.just("sluice.dev/gang-size"), SIZES),
    st.dictionaries(st.just("sluice.dev/gang"), st.just("ring")),
)
def test_whatever_a_workload_holds_advice_refuses_nothing(
    kind: str, spec: Json, annotations: dict[str, str], labels: dict[str, str]
) -> None:
    decision = apply(kind, spec, annotations=annotations, labels=labels)

    assert decision.allowed
    assert all(line.isprintable() for line in decision.warnings)


def test_a_long_name_makes_no_line_that_the_api_server_would_cut() -> None:
    decision = apply("Job", {"activeDeadlineSeconds": 10}, name="n" * 253)
    advice = [line for line in decision.warnings if line.startswith("sluice: job ")]

    assert len(advice) == 2
    assert all(len(line) <= 256 for line in advice)


@pytest.mark.parametrize(
    ("replicas", "strategy", "told"),
    [
        (6, {}, ""),
        (
            4,
            {},
            "a new pod of 1 GPU beside the 4 old ones finds no room (chat's ceiling is 320 GiB",
        ),
        (3, {}, ""),
        (4, {"rollingUpdate": {"maxSurge": "1%"}}, "maxSurge: 0"),
        (4, {"rollingUpdate": {"maxSurge": "0%"}}, ""),
        (4, {"rollingUpdate": {"maxUnavailable": "24%"}}, "use maxSurge: 0 and maxUnavailable: 1"),
        (4, {"rollingUpdate": {"maxUnavailable": "25%"}}, "waits for one of them to end"),
    ],
)
def test_a_surge_pod_is_held_against_memory_and_devices_as_well(
    replicas: int, strategy: Json, told: str
) -> None:
    found = apply("Deployment", {"replicas": replicas, "strategy": strategy}).warnings
    advice = [line for line in found if line.startswith("sluice: deployment ")]

    assert bool(advice) == bool(told)
    assert all(told in line for line in advice)


def test_every_module_of_advice_is_listed() -> None:
    folder = Path(registry.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "registry", "subject"}

    assert {advise.__name__ for advise in registry.ADVICE} == modules
