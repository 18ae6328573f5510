# SPDX-License-Identifier: Apache-2.0
"""What holds for every pod also where policies fit, limit, keep apart and exempt."""

from typing import Any, Final

import orjson
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.decide import decide
from policies.model.keys import DECISION
from policies.model.request import Phase
from policies.replicas import Replicas
from tests.support.builders import (
    Json,
    container,
    facts,
    mutate,
    patched,
    policy_set,
    request,
    rewritten,
    validate,
)
from tests.support.builders import pod as build_pod
from tests.support.strategies import json_values, mutilated, places, pods

POLICIES: Final = policy_set("""
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: all}
spec: {namespaces: {names: [chat, vision, lab, other]}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: advised}
spec: {mode: TimeSlice, replicas: 2, products: [NVIDIA-H100-80GB-HBM3], shareWith: Tenant}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: pinned}
spec: {mode: MPS, replicas: 4, products: [NVIDIA-H100-80GB-HBM3]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: by-need}
spec:
  match:
    when:
    - {name: states-it, expression: 'object.metadata.?annotations[?"need"].hasValue()'}
  rewrite:
    fit: {memory: {annotation: need, env: GPU_MEMORY_LIMIT}, candidates: [pinned, advised, whole]}
  memoryLimit: {fromFit: true, userValue: Override, processes: {annotation: processes}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: limited}
spec:
  order: 2000
  rewrite: {profile: advised}
  memoryLimit: {value: 20Gi, userValue: Override}
---
apiVersion: sluice.dev/v1alpha1
kind: Exemption
metadata: {name: somebody}
spec:
  policies: [limited]
  match: {labels: {matchLabels: {exempt: "yes"}}}
  reason: It moves later.
  expiresAt: "2040-01-01T00:00:00Z"
""")

_ENTRIES: Final = st.sampled_from(
    [
        {"name": "GPU_MEMORY_LIMIT", "value": "8Gi"},
        {"name": "GPU_MEMORY_LIMIT", "value": "20480Mi"},
        {"name": "GPU_MEMORY_LIMIT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "value": "0=1G"},
        {"name": "OTHER", "value": "$(GPU_MEMORY_LIMIT)"},
    ]
)
_ANNOTATIONS: Final = st.fixed_dictionaries(
    {},
    optional={
        "need": st.sampled_from(["8Gi", "19Gi", "30G", "70Gi", "90Gi", "", "much"]),
        "processes": st.sampled_from(["1", "3", "0", "x"]),
    },
)


@st.composite
def _stating(draw: st.DrawFn, *, tame: bool = True) -> Json:
    """Draw a pod that states needs, sets variables itself and may be exempt."""
    found = draw(pods(tame=tame))
    for one in found["spec"].get("containers") or []:
        if isinstance(one, dict):
            one["env"] = [*(one.get("env") or []), *draw(st.lists(_ENTRIES, max_size=3))]
    metadata = found["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **draw(_ANNOTATIONS)}
    if draw(st.booleans()):
        metadata["labels"] = {**(metadata.get("labels") or {}), "exempt": "yes"}
    return found


@given(_stating())
def test_a_rewritten_pod_is_left_alone_and_let_through(found: Json) -> None:
    decision = mutate(found, POLICIES)
    assume(decision.allowed)
    given_pod = patched(found, decision)

    again = mutate(given_pod, POLICIES)
    assert again.allowed
    assert again.patch == ()
    second = validate(given_pod, POLICIES)
    assert second.allowed, second.message


@given(st.lists(_stating(tame=False), min_size=1, max_size=3), st.sampled_from(list(Phase)))
def test_a_remembered_decision_is_the_decision(found: list[Json], phase: Phase) -> None:
    remembering, known = Replicas(decide), facts()
    for one in [*found, *found]:
        asked = request(one, phase=phase)
        assert remembering.decide(POLICIES, known, asked) == decide(POLICIES, known, asked)


@given(mutilated(), st.sampled_from(list(Phase)))
def test_a_pod_with_anything_anywhere_gets_a_decision(found: Any, phase: Phase) -> None:
    asked = request(found if isinstance(found, dict) else None, phase=phase)
    decision = decide(POLICIES, facts(), asked)
    orjson.dumps([decision.patch, decision.warnings, decision.message])


@given(st.sampled_from(list(Phase)), json_values, st.data())
def test_a_claim_and_variables_of_any_json_get_a_decision(
    phase: Phase, replacement: Any, data: Any
) -> None:
    limited = [{"name": "GPU_MEMORY_LIMIT", "value": "1Gi"}]
    found = rewritten(build_pod(container(gpus="1", env=limited)), POLICIES)
    claim: Json = {"root": orjson.loads(found["metadata"]["annotations"][DECISION])}
    parent, key = data.draw(st.sampled_from(places(claim)))
    parent[key] = replacement
    found["metadata"]["annotations"][DECISION] = orjson.dumps(claim["root"]).decode()
    main = found["spec"]["containers"][0]
    main["env"] = [*main["env"], data.draw(st.dictionaries(st.just("name"), json_values))]
    decision = mutate(found, POLICIES, phase=phase)
    orjson.dumps([decision.patch, decision.warnings, decision.message])
