# SPDX-License-Identifier: Apache-2.0
"""Pins narrow a gated pod's spec as Kubernetes allows, once, and never widen it."""

from typing import Any

import pytest

from policies.model.labels import Expression, Operator
from policies.quota.pools import Pins
from policies.rewrite.pinning import pinned

A100 = Pins({"nvidia.com/gpu.product": "A100"})
NOT_SPOT = Expression("spot", Operator.DOES_NOT_EXIST)
EVERYTHING = Pins({"pool": "a"}, (NOT_SPOT, Expression("zone", Operator.NOT_IN, ("b", "c"))))
JSON = [
    {"key": "spot", "operator": "DoesNotExist"},
    {"key": "zone", "operator": "NotIn", "values": ["b", "c"]},
]
OWN = {"key": "disk", "operator": "In", "values": ["ssd"]}
FIELDS = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


def affinity(*terms: dict[str, Any], **others: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": required, **others}
    return {"nodeAffinity": node}


def terms_of(spec: Any) -> list[Any]:
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found: list[Any] = required["nodeSelectorTerms"]
    return found


SPECS: list[dict[str, Any]] = [
    {},
    {"nodeSelector": None, "affinity": None},
    {"nodeSelector": {"disk": "ssd"}},
    {"nodeSelector": {"pool": "a"}},
    {"nodeSelector": {"pool": "other"}},
    {"affinity": {}},
    {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
    {"affinity": affinity({"matchExpressions": [OWN]})},
    {"affinity": affinity({"matchExpressions": [OWN, JSON[1]]}, FIELDS)},
    {"affinity": affinity({}, {"matchExpressions": JSON})},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
]


def test_nothing_to_pin_changes_nothing() -> None:
    for spec in SPECS:
        assert pinned(spec, Pins()) is spec


@pytest.mark.parametrize("pins", [A100, EVERYTHING])
@pytest.mark.parametrize("spec", SPECS)
def test_a_pinned_spec_is_pinned_already(spec: dict[str, Any], pins: Pins) -> None:
    once = pinned(spec, pins)
    assert pinned(once, pins) is once


def test_a_pod_without_required_terms_gets_one() -> None:
    assert terms_of(pinned({}, EVERYTHING)) == [{"matchExpressions": JSON}]


def test_every_required_term_is_narrowed_since_terms_are_alternatives() -> None:
    spec = {"affinity": affinity({"matchExpressions": [OWN, JSON[1]]}, FIELDS)}

    assert terms_of(pinned(spec, EVERYTHING)) == [
        {"matchExpressions": [OWN, JSON[1], JSON[0]]},
        {**FIELDS, "matchExpressions": JSON},
    ]


def test_a_term_that_matches_no_node_goes_on_matching_none() -> None:
    spec = {"affinity": affinity({}, {"matchExpressions": [OWN]})}

    assert terms_of(pinned(spec, EVERYTHING)) == [{}, {"matchExpressions": [OWN, *JSON]}]


def test_what_the_pod_prefers_stays() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
    spec = {"affinity": {**affinity({"matchExpressions": [OWN]}, **preferred), "podAffinity": {}}}
    found: Any = pinned(spec, EVERYTHING)["affinity"]

    assert found["podAffinity"] == {}
    assert preferred.items() <= found["nodeAffinity"].items()


def test_a_pod_that_selects_another_pool_runs_nowhere_rather_than_there() -> None:
    found = pinned({"nodeSelector": {"pool": "other"}}, EVERYTHING)

    assert found["nodeSelector"] == {"pool": "other"}
    wanted = {"key": "pool", "operator": "In", "values": ["a"]}
    assert terms_of(found) == [{"matchExpressions": [wanted, *JSON]}]
