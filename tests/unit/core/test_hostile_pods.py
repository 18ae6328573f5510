# SPDX-License-Identifier: Apache-2.0
"""No pod, whatever its maker writes into it, makes a decision fail or cost more than its size."""

import json
from typing import Any

import pytest

from policies.admission import needs
from policies.model.keys import DECISION, VISIBLE_DEVICES
from policies.model.reasons import Reason
from policies.pod.reading import MalformedError
from policies.rewrite.claim import MAX_ADDED, Claim, Original, read_claim
from policies.rewrite.lists import without
from policies.rewrite.patch import diff
from tests.support.builders import (
    GPU,
    Json,
    container,
    mutate,
    pod,
    policy_set,
    rewritten,
    validate,
)

_FITTING = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: chat}
spec: {namespaces: {names: [chat]}}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: by-need}
spec:
  rewrite: {fit: {memory: {annotation: need, default: 1Gi}, candidates: [h100-1g.10gb]}}
"""


def _claiming(change: Any, **fields: Any) -> Json:
    """Return a rewritten pod whose claim somebody has changed."""
    found = rewritten(pod(container(gpus="1")))
    annotations = found["metadata"]["annotations"]
    claim = json.loads(annotations[DECISION])
    change(claim)
    annotations[DECISION] = json.dumps(claim)
    found["spec"]["containers"][0] |= fields
    return found


@pytest.mark.parametrize("entry", [{"value": "x"}, {"name": None}, {"name": []}, {"name": {}}])
def test_a_variable_without_a_proper_name_is_decided_on_whatever_is_claimed(entry: Json) -> None:
    def claims_a_variable(claim: Json) -> None:
        claim["added"]["env"] = {"main": {"GPU_MEMORY_LIMIT": "1Gi"}}
        claim["asked"]["main"]["env"] = [entry]

    found = _claiming(claims_a_variable, env=[entry])
    mutate(found)
    assert not validate(found).allowed


def test_a_claim_of_more_than_profiles_add_is_none_of_ours() -> None:
    for part in ("tolerations", "expressions", "antiAffinity"):
        found = _claiming(lambda c, p=part: c["added"].update({p: [{}] * (MAX_ADDED + 1)}))
        assert read_claim(found["metadata"]["annotations"][DECISION]) is None
        reasons = [violation.reason for violation in validate(found).violations]
        assert reasons == [Reason.REWRITE_MISSING]


def test_a_claim_of_what_json_cannot_hold_is_a_malformed_pod() -> None:
    original = Original({}, {}, ({"name": "GPU_MEMORY_LIMIT", "value": 10**30},))
    with pytest.raises(MalformedError, match="is not one of 64 bits"):
        Claim(generation="g", asked={"main": original}).to_annotation()


class _Counted(dict[str, Any]):
    """An object that counts how often any of them is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Counted.comparisons += 1
        return super().__eq__(other)

    __hash__ = None


def test_long_lists_are_told_apart_without_comparing_all_with_all() -> None:
    items = [_Counted(key=str(i)) for i in range(300)]
    others = [_Counted(key=str(i)) for i in range(0, 600, 2)]
    _Counted.comparisons = 0
    kept = without(items, others)
    assert [item["key"] for item in kept] == [str(i) for i in range(1, 300, 2)]
    assert _Counted.comparisons <= len(items) + len(others)


@pytest.mark.parametrize("count", [1, 300])
def test_values_are_told_apart_by_what_they_say_in_lists_of_any_length(count: int) -> None:
    others: list[Json] = [{"a": [{"b": i}]} for i in range(count)]
    items: list[Json] = [{"a": [{"b": 0}]}, {"a": [{"b": str(0)}]}, {"a": {"b": 0}}, {}] * count
    assert without(items, others) == items[1:4] * count


class _Looked(list[Any]):
    """A list that counts how often somebody looks at a place in it."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


def test_a_patch_that_takes_out_many_items_is_found_at_the_cost_of_the_list() -> None:
    out = [{"name": VISIBLE_DEVICES} for _ in range(200)]
    stay = _Looked([{"name": f"A{i}"} for i in range(200)])
    operations = diff([*out, *stay], stay)
    assert [operation["op"] for operation in operations] == ["remove"] * 200
    assert stay.looks <= len(stay)


def test_each_container_is_asked_once_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    needed_mib = needs.needed_mib

    def counting(*arguments: Any) -> Any:
        asked.append(arguments[3].name)
        return needed_mib(*arguments)

    monkeypatch.setattr(needs, "needed_mib", counting)
    containers = [container(f"c{i}", gpus="1", resource=GPU) for i in range(20)]
    assert mutate(pod(*containers), policy_set(_FITTING)).allowed
    assert sorted(asked) == sorted(f"c{i}" for i in range(20))
