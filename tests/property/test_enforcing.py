# SPDX-License-Identifier: Apache-2.0
"""What the validating pass must never let through, whoever wrote the pod or its annotation."""

from typing import Final

import orjson
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.model.keys import DECISION, QUOTA_GATE
from policies.rewrite.claim import read_claim
from policies.rewrite.project import restore
from tests.support.alterations import added, alterations
from tests.support.builders import (
    EXCLUSIVE,
    GPU,
    MIG,
    SHARED,
    Json,
    catalog,
    mutate,
    patched,
    policy_set,
    rewritten,
    validate,
)
from tests.support.pods import containers_of, gpu_fields, gpus_of, terms_of
from tests.support.strategies import allowed_pods, json_values, places, pods, unshared

SHARES: Final = {"chat": {SHARED}, "vision": {MIG}}


@given(allowed_pods | pods())
def test_a_pod_that_lacks_or_alters_any_one_thing_demanded_is_refused(found: Json) -> None:
    decision = mutate(found)
    assume(decision.allowed and decision.given)
    new = patched(found, decision)
    assert validate(new).allowed

    for place in added(found, new):
        for altered in alterations(new, place):
            assert not validate(altered).allowed, place


_AMOUNTS: Final = st.sampled_from(
    [{GPU: "1"}, {GPU: 1}, {GPU: "8"}, {SHARED: "1"}, {MIG: "1"}, {}, {GPU: "0"}, {"cpu": "1"}]
)
_ASKED: Final = _AMOUNTS.map(lambda amounts: unshared({"limits": amounts, "requests": amounts}))


def _change_claim(draw: st.DrawFn, claim: Json) -> None:
    parent, key = draw(st.sampled_from(places(claim)))
    parent[key] = draw(json_values | st.sampled_from(["1", "2", 1, 2, True, GPU, SHARED, "whole"]))


def _change_original(draw: st.DrawFn, claim: Json) -> None:
    claim["asked"][draw(st.sampled_from(["c0", "c1", "c2"]))] = draw(_ASKED)


def _disown(draw: st.DrawFn, claim: Json) -> None:
    part = draw(st.sampled_from(["nodeSelector", "tolerations", "expressions"]))
    claim["added"][part] = {} if part == "nodeSelector" else []
    claim["added"]["affinityCreated"] = part != "expressions"


@st.composite
def _forgeries(draw: st.DrawFn) -> Json:
    """Return a rewritten pod of which somebody has changed the claim, the rest, or both."""
    found: Json = rewritten(draw(allowed_pods))
    annotations = found["metadata"]["annotations"]
    claim: Json = orjson.loads(annotations[DECISION])
    for change in draw(st.lists(st.sampled_from([_change_original, _disown]), max_size=2)):
        change(draw, claim)
    if draw(st.integers(0, 2)) == 0:
        _change_claim(draw, claim)
    annotations[DECISION] = orjson.dumps(claim, option=orjson.OPT_SORT_KEYS).decode()
    if draw(st.integers(0, 3)) == 0:
        container = draw(st.sampled_from(list(containers_of(found))))
        container["resources"] = draw(_ASKED)
    if draw(st.integers(0, 3)) == 0:
        found["metadata"]["namespace"] = draw(st.sampled_from(["chat", "vision", "lab"]))
    if draw(st.integers(0, 3)) == 0:
        annotations.pop(EXCLUSIVE, None)
    forged: Json = unshared(found)
    return forged


@given(_forgeries() | pods())
def test_a_pod_that_passes_is_what_some_original_would_have_become(found: Json) -> None:
    if not validate(found).allowed:
        return
    original = unshared(restore(found, read_claim(_claim_of(found)), catalog()))
    decision = mutate(original)

    assert decision.allowed
    assert gpu_fields(patched(original, decision)) == gpu_fields(found)


@given(_forgeries() | pods(tame=False))
def test_a_pod_that_passes_has_no_more_than_its_tenant_may_get(found: Json) -> None:
    decision = validate(found)
    namespace = found["metadata"]["namespace"]
    if not decision.allowed:
        return
    positive = set(decision.given) if namespace != "other" else set(decision.asked)
    assert dict.fromkeys(positive, 0) == dict.fromkeys(_taken(found), 0)
    if namespace == "other":
        assert not positive
    elif positive:
        assert {"name": QUOTA_GATE} in found["spec"]["schedulingGates"]
        assert positive <= SHARES.get(namespace, positive)
        profile = policy_set().profiles[str(decision.profile)]
        selector = found["spec"].get("nodeSelector", {})
        assert profile.placement.node_selector.items() <= selector.items()
        for term in terms_of(found):
            held = term.get("matchExpressions") or []
            demanded = [e.to_json() for e in profile.placement.expressions]
            assert all(e in held for e in demanded) or not (held or term.get("matchFields"))


def _taken(found: Json) -> list[str]:
    """Return the GPU names of which some container has a limit that is not a spelling of 0."""
    return [
        name
        for container in containers_of(found)
        for name, amount in gpus_of(container).get("limits", {}).items()
        if str(amount).strip("+0.eEm")
    ]


def _claim_of(found: Json) -> str | None:
    text: str | None = found["metadata"].get("annotations", {}).get(DECISION)
    return text
