# SPDX-License-Identifier: Apache-2.0
"""What could be taken back once released, and what pods and disruption budgets say of it."""

from dataclasses import replace
from typing import Any

import pytest

from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.reclaim import ReclaimPolicy
from policies.quota.pdb import Percent, PodDisruptionBudget
from policies.quota.reclaimable import (
    Keeps,
    asks_not_to_be_disrupted,
    eviction_cost,
    reclaimable,
    what_keeps,
)
from reconciler.reclaim.view import budget_view
from tests.support.quota_pods import SHAPE, waiting_pod

POLICY = ReclaimPolicy(max_grace_seconds=600)
EVERYTHING = LabelSelector()


def pdb(name: str = "a", **fields: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget("chat", name, fields.pop("selector", EVERYTHING), **fields)


def test_ordinary_work_could_be_taken_back() -> None:
    assert reclaimable(waiting_pod("1"), POLICY, [pdb(max_unavailable=1, expected=3)])


def test_exclusive_work_is_never_taken_back() -> None:
    pod = waiting_pod("1", shape=replace(SHAPE, exclusive=True))
    assert what_keeps(pod, POLICY) is Keeps.EXCLUSIVE


@pytest.mark.parametrize(("seconds", "back"), [(600, True), (601, False)])
def test_work_that_takes_longer_to_end_than_allowed_is_never_taken_back(
    seconds: int, *, back: bool
) -> None:
    pod = waiting_pod("1", shape=replace(SHAPE, grace_seconds=seconds))
    assert reclaimable(pod, POLICY) is back


def test_who_asks_not_to_be_disrupted_must_fit_the_guarantee() -> None:
    assert what_keeps(waiting_pod("1", do_not_disrupt=True), POLICY) is Keeps.DISTURBED


@pytest.mark.parametrize(
    ("fields", "never"),
    [
        ({"max_unavailable": 0, "expected": 5}, True),
        ({"max_unavailable": Percent(0), "expected": 5}, True),
        ({"max_unavailable": Percent(1), "expected": 5}, False),
        ({"max_unavailable": 1, "expected": 5}, False),
        ({"min_available": Percent(100), "expected": 5}, True),
        ({"min_available": Percent(81), "expected": 5}, True),
        ({"min_available": Percent(80), "expected": 5}, False),
        ({"min_available": 5, "expected": 5}, True),
        ({"min_available": 4, "expected": 5}, False),
        ({"min_available": 1, "expected": 0}, True),
        ({"min_available": 0, "expected": 0}, False),
        ({"max_unavailable": 1, "expected": 5, "is_stuck": True}, True),
        ({}, False),
    ],
)
def test_a_budget_that_forbids_every_eviction_keeps_its_pods(
    fields: dict[str, Any], *, never: bool
) -> None:
    assert reclaimable(waiting_pod("1"), POLICY, [pdb(**fields)]) is not never


def test_several_budgets_on_one_pod_keep_it() -> None:
    both = [pdb("a", max_unavailable=9, expected=9), pdb("b", max_unavailable=9, expected=9)]
    assert what_keeps(waiting_pod("1"), POLICY, both) is Keeps.SEVERAL_PDBS


def test_budgets_of_other_pods_and_namespaces_keep_nobody() -> None:
    other = LabelSelector((Expression("app", Operator.EXISTS),))
    foreign = PodDisruptionBudget("elsewhere", "x", EVERYTHING, max_unavailable=0)
    nothing = pdb("n", selector=None, max_unavailable=0)
    assert reclaimable(waiting_pod("1"), POLICY, [pdb(selector=other, max_unavailable=0)])
    assert reclaimable(waiting_pod("1"), POLICY, [foreign, nothing])
    labelled = waiting_pod("1", labels={"app": "web"})
    assert not reclaimable(labelled, POLICY, [pdb(selector=other, max_unavailable=0)])


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("2147483648", 0),
        ("9999999999999", 0),
        ("+5", 0),
        ("05", 0),
        ("1.5", 0),
        ("٣", 0),
        ("", 0),
    ],
)
def test_an_eviction_cost_is_an_int32_as_kubernetes_writes_it(text: str, cost: int) -> None:
    assert eviction_cost({"sluice.dev/eviction-cost": text}) == cost
    assert eviction_cost({}) == 0


@pytest.mark.parametrize(
    ("key", "value", "asks"),
    [
        ("karpenter.sh/do-not-disrupt", "true", True),
        ("karpenter.sh/do-not-disrupt", "True", False),
        ("karpenter.sh/do-not-disrupt", "yes", False),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false", True),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "true", False),
    ],
)
def test_only_the_exact_words_ask_not_to_be_disrupted(key: str, value: str, *, asks: bool) -> None:
    assert asks_not_to_be_disrupted({key: value}) is asks


def raw_pdb(spec: object, status: object = None, generation: int = 1) -> dict[str, object]:
    metadata = {"namespace": "chat", "name": "a", "generation": generation}
    return {"metadata": metadata, "spec": spec, "status": status}


def test_a_budget_is_read_as_its_api_writes_it() -> None:
    spec = {
        "selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
        },
        "minAvailable": "50%",
    }
    status = {"disruptionsAllowed": 2, "expectedPods": 4, "observedGeneration": 1}
    read = budget_view(raw_pdb(spec, status))
    assert read.covers("chat", {"app": "web"})
    assert not read.covers("chat", {"app": "web", "tier": "x"})
    assert (read.min_available, read.max_unavailable) == (Percent(50), None)
    assert (read.disruptions_allowed, read.expected, read.is_stuck) == (2, 4, False)


def test_an_empty_selector_covers_all_and_a_missing_one_nothing() -> None:
    assert budget_view(raw_pdb({"selector": {}})).covers("chat", {})
    assert not budget_view(raw_pdb({})).covers("chat", {})


def test_a_status_older_than_its_budget_allows_nothing() -> None:
    status = {"disruptionsAllowed": 2, "expectedPods": 4, "observedGeneration": 1}
    read = budget_view(raw_pdb({"minAvailable": 1}, status, generation=2))
    assert (read.disruptions_allowed, read.expected) == (0, 0)


def test_a_budget_whose_pods_cannot_be_counted_never_allows() -> None:
    condition = {"type": "DisruptionAllowed", "reason": "SyncFailed", "status": "False"}
    status = {"observedGeneration": 1, "conditions": [condition], "expectedPods": 9}
    assert budget_view(raw_pdb({"maxUnavailable": 1}, status)).can_never_allow


@pytest.mark.parametrize("value", ["150%", "x", "", -1, 1.5, True, [], "\u0661%"])
def test_an_amount_that_cannot_be_read_protects(value: object) -> None:
    for field in ("minAvailable", "maxUnavailable"):
        assert budget_view(raw_pdb({field: value}, {"expectedPods": 9})).can_never_allow


@pytest.mark.parametrize("odd", [{}, {"spec": []}, {"spec": {"selector": {"matchExpressions": 3}}}])
def test_any_object_reads_as_some_budget(odd: dict[str, object]) -> None:
    assert budget_view(odd).namespace == ""
    unknown = {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}
    assert budget_view(raw_pdb(unknown)).covers("chat", {})
