# SPDX-License-Identifier: Apache-2.0
"""Which nodes take a pod, as kube-scheduler decides, and the words that say why not."""

from typing import Any

import pytest

from policies.cluster.constraints import admits, read_constraints, suits, why_not
from tests.support.builders import Json
from tests.support.cluster import needs, node, terms

TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def _admits(spec: Json, **parts: Any) -> bool:
    constraints, found = read_constraints(spec), node(**parts)
    assert (why_not(constraints, found) == "") is admits(constraints, found)
    return admits(constraints, found)


def test_a_pod_that_asks_nothing_goes_anywhere() -> None:
    assert _admits({})


def test_every_label_of_the_selector_must_be_there() -> None:
    spec = {"nodeSelector": {"zone": "a", "disk": "ssd"}}
    assert _admits(spec, labels={"zone": "a", "disk": "ssd", "more": ""})
    assert not _admits(spec, labels={"zone": "a"})
    assert not _admits(spec, labels={"zone": "a", "disk": "hdd"})


@pytest.mark.parametrize(
    ("term", "labels", "holds"),
    [
        (needs("k", "In", "a", "b"), {"k": "b"}, True),
        (needs("k", "In", "a"), {"k": "b"}, False),
        (needs("k", "In", "a"), {}, False),
        (needs("k", "In", ""), {"k": ""}, True),
        (needs("k", "NotIn", "a"), {"k": "b"}, True),
        (needs("k", "NotIn", "a"), {"k": "a"}, False),
        (needs("k", "NotIn", "a"), {}, True),
        (needs("k", "Exists"), {"k": ""}, True),
        (needs("k", "Exists"), {}, False),
        (needs("k", "DoesNotExist"), {}, True),
        (needs("k", "DoesNotExist"), {"k": ""}, False),
        (needs("k", "Gt", "3"), {"k": "4"}, True),
        (needs("k", "Gt", "3"), {"k": "3"}, False),
        (needs("k", "Gt", "3"), {"k": "20"}, True),
        (needs("k", "Gt", "3"), {}, False),
        (needs("k", "Gt", "3"), {"k": "4x"}, False),
        (needs("k", "Gt", "3"), {"k": "1_0"}, False),
        (needs("k", "Gt", "3"), {"k": "9223372036854775807"}, True),
        (needs("k", "Gt", "3"), {"k": "9223372036854775808"}, False),
        (needs("k", "Gt", "3"), {"k": "9" * 5000}, False),
        (needs("k", "Gt", "003"), {"k": "0004"}, True),
        (needs("k", "Lt", "3"), {"k": "2"}, True),
        (needs("k", "Lt", "3"), {"k": "3"}, False),
    ],
)
def test_an_expression_holds_as_in_kube_scheduler(
    term: Json, labels: dict[str, str], holds: bool
) -> None:
    assert _admits({"affinity": terms(term)}, labels=labels) is holds


def test_terms_are_ored_and_their_expressions_anded() -> None:
    both = {
        "matchExpressions": [
            *needs("a", "Exists")["matchExpressions"],
            needs("b", "Exists")["matchExpressions"][0],
        ]
    }
    spec = {"affinity": terms(both, needs("c", "Exists"))}
    assert _admits(spec, labels={"a": "", "b": ""})
    assert _admits(spec, labels={"c": ""})
    assert not _admits(spec, labels={"a": ""})


def test_a_term_may_name_nodes() -> None:
    def fields(operator: str, *names: str) -> Json:
        found = {"key": "metadata.name", "operator": operator, "values": list(names)}
        return {"affinity": terms({"matchFields": [found]})}

    assert _admits(fields("In", "n1"))
    assert not _admits(fields("In", "n2"))
    assert _admits(fields("NotIn", "n2"))
    assert not _admits(fields("NotIn", "n1"))
    assert not _admits(fields("In", "n1", "n2"))
    assert not _admits(fields("Exists"))


@pytest.mark.parametrize(
    "term",
    [
        {},
        {"matchExpressions": []},
        needs("k", "Equals", "a"),
        needs("k", "In"),
        needs("k", "Exists", "a"),
        needs("k", "Gt"),
        needs("k", "Gt", "1", "2"),
        needs("k", "Gt", "x"),
        needs("k", "Gt", "-1"),
        needs("k", "NotIn", "no label value"),
        needs("", "DoesNotExist"),
        {"matchExpressions": "k"},
        {"matchExpressions": [None]},
        {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": [1]}]},
        {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": "a"}]},
        {"matchExpressions": [{"key": "k", "operator": ["NotIn"], "values": ["a"]}]},
        {"matchFields": [{"key": "metadata.uid", "operator": "NotIn", "values": ["a"]}]},
    ],
)
def test_an_empty_or_unreadable_term_matches_nothing_and_leaves_the_others(term: Json) -> None:
    assert not _admits({"affinity": terms(term)}, labels={"k": "5"})
    assert _admits({"affinity": terms(term, needs("k", "Exists"))}, labels={"k": "5"})


@pytest.mark.parametrize(
    "affinity",
    [
        "zone",
        {"nodeAffinity": []},
        terms(),
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 5}},
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
    ],
)
def test_a_requirement_without_a_readable_term_matches_nothing(affinity: object) -> None:
    assert not _admits({"affinity": affinity})


@pytest.mark.parametrize(
    "affinity",
    [None, {}, {"nodeAffinity": None}, {"nodeAffinity": {}}, {"podAffinity": {"x": 1}}],
)
def test_an_affinity_that_requires_nothing_of_nodes_matches_all(affinity: object) -> None:
    assert _admits({"affinity": affinity})


@pytest.mark.parametrize("selector", ["zone", {"zone": 1}, {"zone": None}, []])
def test_an_unreadable_selector_matches_nothing(selector: object) -> None:
    assert not _admits({"nodeSelector": selector}, labels={"zone": "1"})


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        ({"key": "dedicated", "operator": "Exists"}, TAINT, True),
        ({"key": "dedicated", "operator": "Equal", "value": "ml"}, TAINT, True),
        ({"key": "dedicated", "value": "ml"}, TAINT, True),
        ({"key": "dedicated", "value": "web"}, TAINT, False),
        ({"key": "dedicated"}, TAINT, False),
        ({"key": "dedicated"}, {**TAINT, "value": None}, True),
        ({"key": "other", "operator": "Exists"}, TAINT, False),
        ({"operator": "Exists"}, TAINT, True),
        ({"operator": "Exists", "effect": "NoExecute"}, TAINT, False),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, TAINT, True),
        ({"key": "dedicated", "operator": "Exists", "effect": ""}, TAINT, True),
        ({"key": "dedicated", "operator": "Gt", "value": "1"}, {**TAINT, "value": "2"}, False),
        ({"key": "dedicated", "operator": "exists"}, TAINT, False),
        ({"key": 0, "operator": "Exists"}, TAINT, False),
        ({"key": [], "operator": "Exists"}, TAINT, False),
        ("dedicated", TAINT, False),
        (
            {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"},
            {**TAINT, "effect": "NoExecute"},
            False,
        ),
    ],
)
def test_a_toleration_covers_a_taint_as_in_kube_scheduler(
    toleration: object, taint: Json, tolerated: bool
) -> None:
    assert _admits({"tolerations": [toleration]}, taints=[taint]) is tolerated


def test_every_taint_must_be_tolerated_but_a_mere_preference() -> None:
    other = {"key": "other", "effect": "NoExecute"}
    mild = {"key": "mild", "effect": "PreferNoSchedule"}
    spec = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    assert _admits(spec, taints=[TAINT, mild])
    assert not _admits(spec, taints=[TAINT, other])


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    key = "node.kubernetes.io/unschedulable"
    tolerant = {"tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]}
    assert not _admits({}, unschedulable=True)
    assert not _admits({}, taints=[{"key": key, "effect": "NoSchedule"}])
    assert _admits(tolerant, unschedulable=True, taints=[{"key": key, "effect": "NoSchedule"}])


@pytest.mark.parametrize("state", ["False", "Unknown"])
def test_a_node_that_is_not_ready_takes_no_pod_however_tolerant(state: str) -> None:
    assert not _admits({"tolerations": [{"operator": "Exists"}]}, ready=state)


def test_a_node_that_has_not_said_whether_it_is_ready_is_judged_by_its_taints() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert _admits({}, ready="")
    assert not _admits({}, ready="", taints=[taint])


@pytest.mark.parametrize(
    ("spec", "parts", "words"),
    [
        (
            {"nodeSelector": {"nvidia.com/gpu.replicas": "4"}},
            {"ready": "False"},
            "node selector nvidia.com/gpu.replicas=4",
        ),
        ({"affinity": terms(needs("zone", "In", "a"))}, {}, "node affinity zone"),
        ({"affinity": terms(needs("a", "Exists"), needs("b", "Exists"))}, {}, "node affinity"),
        ({"affinity": terms()}, {}, "node affinity"),
        ({}, {"taints": [TAINT], "unschedulable": True}, "taint dedicated"),
        ({}, {"unschedulable": True}, "cordoned"),
        (
            {},
            {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]},
            "cordoned",
        ),
        ({}, {"ready": "Unknown", "unschedulable": True}, "not ready"),
        (
            {},
            {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]},
            "taint node.kubernetes.io/disk-pressure",
        ),
    ],
)
def test_the_reason_is_short_and_what_lasts_comes_first(
    spec: Json, parts: Json, words: str
) -> None:
    assert why_not(read_constraints(spec), node(**parts)) == words


def test_states_that_pass_do_not_keep_a_node_from_suiting() -> None:
    passing = [
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"},
    ]
    nothing = read_constraints({})
    assert suits(nothing, node(ready="False", unschedulable=True, taints=passing))
    assert not suits(nothing, node(taints=[TAINT]))


def test_pods_that_mean_the_same_have_equal_constraints() -> None:
    one = {
        "nodeSelector": {"a": "1", "b": "2"},
        "tolerations": [
            {"key": "x", "operator": "Exists", "tolerationSeconds": 300},
            {"key": "w", "operator": "Exists"},
        ],
        "affinity": terms(needs("k", "In", "a"), {}),
    }
    other = {
        "nodeSelector": {"b": "2", "a": "1"},
        "tolerations": [
            {"key": "w", "operator": "Exists", "value": ""},
            {"key": "x", "operator": "Exists"},
            {"key": "w", "operator": "Exists"},
        ],
        "affinity": terms(needs("k", "In", "a")),
    }
    assert read_constraints(one) == read_constraints(other)
    assert hash(read_constraints(one)) == hash(read_constraints(other))
