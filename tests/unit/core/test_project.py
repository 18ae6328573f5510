# SPDX-License-Identifier: Apache-2.0
"""Putting a demand onto a pod, and taking it off again."""

from typing import Any

import pytest

from policies.model.keys import DECISION
from policies.pod.reading import MalformedError
from policies.rewrite.claim import Claim, Original, read_claim
from policies.rewrite.demand import Demand
from policies.rewrite.project import project, restore
from tests.support.builders import (
    GPU,
    SHARED,
    TOLERATION,
    Json,
    catalog,
    container,
    mutate,
    pod,
    rewritten,
)
from tests.support.pods import REQUIRED, gpu_fields, terms_of

ZONE: Json = {"key": "zone", "operator": "In", "values": ["a"]}
PRODUCT: Json = {"key": "nvidia.com/gpu.product", "operator": "Exists"}
DEMAND = Demand(
    resources={"main": {SHARED: 1}},
    node_selector={"nvidia.com/gpu.replicas": "4"},
    expressions=(PRODUCT,),
    tolerations=(TOLERATION,),
    gate=True,
)
CLAIM = Claim(
    generation="1",
    asked={"main": Original({GPU: "1"}, {GPU: "1"})},
    node_selector={"nvidia.com/gpu.replicas": "4"},
    expressions=(PRODUCT,),
    affinity_created=True,
    tolerations=(TOLERATION,),
)


def _required(*terms: Json) -> Json:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def test_what_was_put_on_comes_off_again() -> None:
    found = pod()

    assert restore(project(found, None, DEMAND, catalog()), CLAIM, catalog()) == found


def test_a_demand_that_is_met_gives_back_the_same_object() -> None:
    met = project(pod(), None, DEMAND, catalog())

    assert project(met, CLAIM, DEMAND, catalog()) is met


def test_nothing_but_what_changes_is_copied() -> None:
    found = pod(container(gpus="1"), container("side", env=[{"name": "A", "value": "1"}]))
    new: Any = project(found, None, DEMAND, catalog())

    assert new["spec"]["containers"][0]["resources"] == {
        "limits": {SHARED: "1"},
        "requests": {SHARED: "1"},
    }
    assert new["spec"]["containers"][1]["env"][0] is found["spec"]["containers"][1]["env"][0]
    assert found == pod(container(gpus="1"), container("side", env=[{"name": "A", "value": "1"}]))


def test_every_term_gets_the_expressions_since_terms_are_alternatives() -> None:
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    found = pod(affinity=_required({"matchExpressions": [ZONE]}, fields))
    new = project(found, None, DEMAND, catalog())

    assert terms_of(new) == [
        {"matchExpressions": [ZONE, PRODUCT]},
        {**fields, "matchExpressions": [PRODUCT]},
    ]


@pytest.mark.parametrize("empty", [{}, {"matchExpressions": []}, {"matchFields": None}])
def test_a_term_that_matches_no_node_goes_on_matching_none(empty: Json) -> None:
    new = project(pod(affinity=_required(empty)), None, DEMAND, catalog())

    assert terms_of(new) == [empty]


@pytest.mark.parametrize(
    "affinity",
    [
        None,
        {},
        {"nodeAffinity": None},
        {"nodeAffinity": {}},
        {"nodeAffinity": {REQUIRED: None}},
        {"nodeAffinity": {REQUIRED: {}}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}},
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        {"podAffinity": {}},
        _required({}),
        _required({"matchExpressions": []}),
        _required({"matchExpressions": [ZONE]}, {}),
    ],
)
def test_any_shape_of_affinity_is_settled_by_one_pass_and_restored(affinity: Json | None) -> None:
    found = pod(affinity=affinity)
    new = rewritten(found)

    assert mutate(new).patch == ()
    claim = read_claim(new["metadata"]["annotations"][DECISION])
    assert gpu_fields(restore(new, claim, catalog())) == gpu_fields(found)


def test_terms_that_others_add_after_the_rewrite_stay_when_it_is_taken_off() -> None:
    new: Any = project(pod(), None, DEMAND, catalog())
    terms_of(new).append({"matchExpressions": [ZONE]})
    terms_of(new).append({})

    assert terms_of(restore(new, CLAIM, catalog())) == [{}, {"matchExpressions": [ZONE]}, {}]


def test_what_others_write_into_the_term_that_was_made_stays_when_the_rest_is_taken_off() -> None:
    new: Any = project(pod(), None, DEMAND, catalog())
    terms_of(new)[0]["matchExpressions"].append(ZONE)

    assert terms_of(restore(new, CLAIM, catalog())) == [{"matchExpressions": [ZONE]}]


def test_a_node_selector_that_others_changed_is_not_taken_off() -> None:
    found = pod(nodeSelector={"nvidia.com/gpu.replicas": "8"})

    assert restore(found, CLAIM, catalog()) is found


def test_keys_of_sluice_that_a_user_wrote_are_taken_out() -> None:
    found = pod(annotations={"state.sluice.dev/charge": "0"}, labels={"state.sluice.dev/x": "y"})

    assert project(found, None, DEMAND, catalog())["metadata"] == {
        "name": "llm",
        "namespace": "chat",
    }


def test_a_gate_of_another_controller_stays() -> None:
    found = pod(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    new: Any = project(found, None, DEMAND, catalog())

    assert new["spec"]["schedulingGates"] == [
        {"name": "kueue.x-k8s.io/admission"},
        {"name": "sluice.dev/quota"},
    ]
    restored: Any = restore(new, CLAIM, catalog())
    assert restored["spec"]["schedulingGates"] == found["spec"]["schedulingGates"]


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": {}},
        {"affinity": []},
        {"affinity": {"nodeAffinity": 1}},
        {"nodeSelector": {"zone": 1}},
        {"schedulingGates": ["sluice.dev/quota"]},
    ],
)
def test_a_field_of_a_wrong_type_is_malformed(spec: Json) -> None:
    with pytest.raises(MalformedError):
        project(pod(**spec), None, DEMAND, catalog())
