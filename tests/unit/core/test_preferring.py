# SPDX-License-Identifier: Apache-2.0
"""Preferences are added to a gated pod's own ones, and nothing else changes."""

from typing import Any

import pytest

from policies.pod.reading import MalformedError
from policies.rewrite.preferring import PREFERRED, preferring

_OWN = {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
_REQUIRED: dict[str, Any] = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
}


def _terms(spec: Any) -> list[Any]:
    found: list[Any] = spec["affinity"]["nodeAffinity"][PREFERRED]
    return found


def test_the_best_node_weighs_most_and_the_others_evenly_less() -> None:
    terms = _terms(preferring({}, ["a", "b", "c", "d"]))
    assert [term["weight"] for term in terms] == [100, 75, 50, 25]
    assert terms[0]["preference"] == {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
    }


@pytest.mark.parametrize("count", [1, 3, 20, 150])
def test_every_weight_is_one_that_kubernetes_takes(count: int) -> None:
    terms = _terms(preferring({}, [f"n{i}" for i in range(count)]))
    assert all(1 <= term["weight"] <= 100 for term in terms)


def test_without_nodes_nothing_changes() -> None:
    spec: dict[str, object] = {"affinity": None}
    assert preferring(spec, []) is spec


def test_what_the_pod_has_of_its_own_stays() -> None:
    spec = {
        "nodeName": "",
        "affinity": {
            "podAffinity": {PREFERRED: []},
            "nodeAffinity": {**_REQUIRED, PREFERRED: [_OWN]},
        },
    }
    found: Any = preferring(spec, ["a"])
    assert _terms(found)[0] == _OWN
    assert len(_terms(found)) == 2
    node = found["affinity"]["nodeAffinity"]
    assert {key: node[key] for key in _REQUIRED} == _REQUIRED
    assert found["affinity"]["podAffinity"] == {PREFERRED: []}
    assert found["nodeName"] == ""
    assert spec["affinity"]["nodeAffinity"][PREFERRED] == [_OWN], "the pod itself is not touched"  # type: ignore[index]


@pytest.mark.parametrize("affinity", ["x", {"nodeAffinity": []}, {"nodeAffinity": {PREFERRED: {}}}])
def test_what_cannot_be_read_is_said(affinity: object) -> None:
    with pytest.raises(MalformedError):
        preferring({"affinity": affinity}, ["a"])
