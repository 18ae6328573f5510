# SPDX-License-Identifier: Apache-2.0
"""Whatever JSON is asked about, there is a decision, and it can be written as JSON."""

from itertools import product
from typing import Any, Final

import orjson
from hypothesis import given
from hypothesis import strategies as st

from policies.decide import decide
from policies.model.decision import Decision
from policies.model.facts import ClusterFacts, Facts
from policies.model.request import Operation, Phase, Request
from tests.support.builders import DEVELOPER, NOW, Json, facts, mutate, policy_set, rewritten
from tests.support.strategies import allowed_pods, json_values, mutilated, places, pods, unshared
from tests.support.workloads import kinds, workload

RESOURCES: Final = (
    ("", "pods", ""),
    ("", "pods", "ephemeralcontainers"),
    ("", "pods", "resize"),
    ("", "pods", "binding"),
    ("", "nodes", ""),
    ("resource.k8s.io", "resourceclaims", ""),
    ("resource.k8s.io", "resourceclaimtemplates", ""),
    *((kind.group, kind.resource, "") for kind in kinds()),
)
QUESTIONS: Final = st.sampled_from(list(product(RESOURCES, Operation, Phase)))
POD_QUESTIONS: Final = st.sampled_from(list(product(RESOURCES[:3], Operation, Phase)))
FACTS: Final = st.sampled_from([facts(), facts(nodes=[]), Facts(ClusterFacts({}), NOW)])
ANY_OBJECT: Final = st.dictionaries(
    st.sampled_from(["metadata", "spec", "status", "x"]), json_values
)


def _ask(
    question: tuple[tuple[str, str, str], Operation, Phase], known: Facts, new: Any, old: Any
) -> Decision:
    (group, resource, subresource), operation, phase = question
    return decide(
        policy_set(),
        known,
        Request(
            phase=phase,
            operation=operation,
            group=group,
            resource=resource,
            subresource=subresource,
            namespace="chat",
            name="",
            user=DEVELOPER,
            object=unshared(new) if isinstance(new, dict) else None,
            old_object=unshared(old) if isinstance(old, dict) else None,
        ),
    )


def _assert_sound(decision: Decision) -> None:
    orjson.dumps([decision.patch, decision.warnings, decision.message, decision.given])
    assert decision.allowed or decision.violations
    assert decision.allowed == (not decision.message)
    assert decision.allowed or not decision.patch


@given(QUESTIONS, FACTS, ANY_OBJECT, ANY_OBJECT | st.none())
def test_any_object_gets_a_decision(question: Any, known: Facts, new: Any, old: Any) -> None:
    _assert_sound(_ask(question, known, new, old))


@given(POD_QUESTIONS, FACTS, mutilated(), st.none() | pods())
def test_a_pod_with_anything_anywhere_gets_a_decision(
    question: Any, known: Facts, new: Any, old: Any
) -> None:
    _assert_sound(_ask(question, known, new, old))
    _assert_sound(_ask(question, known, old, new))


@given(st.sampled_from(kinds()), mutilated() | json_values, FACTS, mutilated() | st.none())
def test_a_template_with_anything_anywhere_gets_a_decision(
    kind: Any, found: Any, known: Facts, old: Any
) -> None:
    operation = Operation.CREATE if old is None else Operation.UPDATE
    question = ((kind.group, kind.resource, ""), operation, Phase.VALIDATE)

    before = None if old is None else workload(kind, old)
    _assert_sound(_ask(question, known, workload(kind, found), before))


@given(st.sampled_from(list(Phase)), allowed_pods, json_values, st.data())
def test_a_decision_annotation_of_any_json_gets_a_decision(
    phase: Phase, asked: Json, replacement: Any, data: Any
) -> None:
    found = rewritten(asked)
    annotations = found["metadata"]["annotations"]
    claim: Json = {"root": orjson.loads(annotations["state.sluice.dev/decision"])}
    parent, key = data.draw(st.sampled_from(places(claim)))
    parent[key] = replacement
    annotations["state.sluice.dev/decision"] = orjson.dumps(claim["root"]).decode()

    _assert_sound(mutate(found, phase=phase))
