# SPDX-License-Identifier: Apache-2.0
"""What must hold for the rewriting of any pod."""

from copy import deepcopy
from typing import Any

import orjson
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.model.keys import DECISION, QUOTA_GATE, STATE_PREFIX, VISIBLE_DEVICES
from policies.model.request import JsonObject
from policies.rewrite.claim import read_claim
from policies.rewrite.project import restore
from tests.support.builders import Json, catalog, container, mutate, patched, validate
from tests.support.pods import gpu_fields, has_partial_terms
from tests.support.strategies import pods, tolerations


def _rewritten(found: Json) -> Json:
    decision = mutate(found)
    assume(decision.allowed)
    return patched(found, decision)


def _restored(found: Json) -> JsonObject:
    return restore(
        found, read_claim(found["metadata"].get("annotations", {}).get(DECISION)), catalog()
    )


@given(pods())
def test_applying_a_rewrite_to_its_own_output_changes_nothing(found: Json) -> None:
    assert mutate(_rewritten(found)).patch == ()


@given(pods(tame=False))
def test_the_same_pod_gets_the_same_bytes(found: Json) -> None:
    first, second = mutate(found), mutate(found)

    assert orjson.dumps(first.patch) == orjson.dumps(second.patch)
    assert first == second


@given(pods())
def test_a_rewritten_pod_is_what_the_validating_pass_demands(found: Json) -> None:
    decision = validate(_rewritten(found))

    assert decision.allowed, decision.message


@given(pods(tame=False))
def test_a_pod_that_the_mutating_pass_refuses_is_refused_by_the_validating_pass(
    found: Json,
) -> None:
    decision = mutate(found)
    assume(not decision.allowed)

    assert not validate(found).allowed


@given(pods(tame=False))
def test_a_pod_that_was_not_rewritten_is_refused_unless_nothing_was_to_be_changed(
    found: Json,
) -> None:
    decision = mutate(found)

    assert validate(found).allowed == (decision.allowed and not decision.patch)


@given(pods())
def test_restoring_gives_back_what_the_user_asked_for(found: Json) -> None:
    assume(not has_partial_terms(found))

    assert gpu_fields(_restored(_rewritten(found))) == gpu_fields(_restored(found))


@given(st.data(), pods())
def test_additions_that_loosen_nothing_need_no_further_pass(data: Any, found: Json) -> None:
    changed = data.draw(_additions(_rewritten(found), harmless=True))
    decision = validate(changed)

    assert decision.allowed, decision.message


@st.composite
def _additions(draw: st.DrawFn, found: Json, *, harmless: bool = False) -> Json:
    """Return the pod after another webhook: more of many things, nothing less.

    Harmless additions are those for which a pod need not be rewritten again.
    """
    changed = deepcopy(found)
    spec: Json = changed["spec"]
    if draw(st.booleans()):
        extra = [t for t in draw(tolerations) if t not in (spec.get("tolerations") or [])]
        spec["tolerations"] = extra + (spec.get("tolerations") or [])
    if draw(st.booleans()):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), "disk": "ssd"}
    if draw(st.booleans()):
        spec["schedulingGates"] = [*(spec.get("schedulingGates") or []), {"name": "example.com/x"}]
    if not harmless and draw(st.booleans()):
        spec["containers"].insert(draw(st.integers(0, 1)), container("injected", draw(_maybe_gpu)))
    if draw(st.booleans()):
        metadata: Json = changed["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), "mesh": "on"}
    for built in spec["containers"]:
        if draw(st.booleans()):
            built["env"] = [*built.get("env", []), {"name": "PROXY", "value": "1"}]
    _add_affinity(draw, spec, harmless=harmless)
    return changed


_maybe_gpu = st.sampled_from([None, None, "1"])


def _add_affinity(draw: st.DrawFn, spec: Json, *, harmless: bool) -> None:
    zone = {"key": "zone", "operator": "In", "values": ["b"]}
    affinity = spec["affinity"] = spec.get("affinity") or {}
    if draw(st.booleans()):
        affinity["podAffinity"] = {}
    node = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or []
    for term in terms:
        selects = term.get("matchExpressions") or term.get("matchFields")
        if (selects or not harmless) and draw(st.booleans()):
            term["matchExpressions"] = [zone, *(term.get("matchExpressions") or [])]
    if not harmless and draw(st.integers(0, 3)) == 0:
        terms.append({"matchExpressions": [zone]})
    if terms:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}


@given(st.data(), pods())
def test_additions_by_other_webhooks_stand_and_one_more_pass_settles_the_pod(
    data: Any, found: Json
) -> None:
    changed = data.draw(_additions(_rewritten(found)))
    decision = mutate(changed)
    assume(decision.allowed)
    settled = patched(changed, decision)

    assert mutate(settled).patch == ()
    assert validate(settled).allowed
    assert _foreign(settled) == _foreign(changed)


@given(st.data(), pods())
def test_restoring_keeps_the_additions_of_other_webhooks(data: Any, found: Json) -> None:
    changed = data.draw(_additions(_rewritten(found)))

    assert _foreign(dict(_restored(changed))) == _foreign(changed)


def _foreign(found: Json) -> Any:
    """Return the names of what is in a pod that Sluice never adds."""
    spec, metadata = found["spec"], found["metadata"]
    return {
        "containers": [
            (c["name"], [e for e in c.get("env", []) if e["name"] != VISIBLE_DEVICES])
            for c in spec["containers"]
        ],
        "gates": [g for g in spec.get("schedulingGates") or [] if g["name"] != QUOTA_GATE],
        "annotations": {
            k: v
            for k, v in (metadata.get("annotations") or {}).items()
            if not k.startswith(STATE_PREFIX)
        },
        "selector": {k: v for k, v in (spec.get("nodeSelector") or {}).items() if "/" not in k},
        "tolerations": [t for t in spec.get("tolerations") or [] if t.get("effect") is None],
        "zones": str(spec.get("affinity")).count("'zone'"),
    }
