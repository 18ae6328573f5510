# SPDX-License-Identifier: Apache-2.0
"""Whether a node takes a pod, held against a plain reading of the raw objects; odd input."""

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from policies.cluster.constraints import admits, read_constraints, suits, why_not
from policies.cluster.demand import read_requests
from policies.cluster.nodes import read_node
from tests.support.builders import Json
from tests.support.cluster import REQUIRED, raw_node, terms
from tests.support.strategies import json_values, mutilated, pods, unshared

KEYS: Final = st.sampled_from(["zone", "disk"])
VALUES: Final = st.sampled_from(["a", "b", "", "3", "10"])
EFFECTS: Final = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
TAINT_KEYS: Final = st.sampled_from(["dedicated", "gpu", "node.kubernetes.io/unschedulable"])

expressions: Final = st.fixed_dictionaries(
    {
        "key": KEYS,
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"]),
        "values": st.lists(VALUES | st.just("no value"), max_size=2),
    }
)
fields: Final = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn", "Exists"]),
        "values": st.lists(st.sampled_from(["n1", "n2"]), max_size=2),
    }
)
node_terms: Final = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(expressions, max_size=2),
        "matchFields": st.lists(fields, max_size=1),
    },
)
specs: Final = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.dictionaries(KEYS, VALUES, max_size=2),
        "affinity": st.lists(node_terms, max_size=3).map(lambda listed: terms(*listed)),
        "tolerations": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "key": TAINT_KEYS,
                    "operator": st.sampled_from(["Exists", "Equal", "", "Gt"]),
                    "value": VALUES,
                    "effect": EFFECTS | st.just(""),
                },
            ),
            max_size=3,
        ),
    },
)
taints: Final = st.fixed_dictionaries(
    {"key": TAINT_KEYS, "effect": EFFECTS}, optional={"value": VALUES}
)
raw_nodes: Final = st.builds(
    raw_node,
    st.sampled_from(["n1", "n2"]),
    labels=st.dictionaries(KEYS, VALUES, max_size=2),
    taints=st.lists(taints, max_size=2),
    unschedulable=st.booleans(),
    ready=st.sampled_from(["True", "True", "False", "Unknown"]),
)


def _holds(expression: Json, value: str | None) -> bool | None:
    """Return whether an expression holds for a label's value; None if it cannot be parsed."""
    operator, values = expression["operator"], expression["values"]
    if "no value" in values:
        return None
    if operator in ("In", "NotIn"):
        return ((value in values) == (operator == "In")) if values else None
    if operator in ("Exists", "DoesNotExist"):
        return None if values else (value is not None) == (operator == "Exists")
    if operator in ("Gt", "Lt") and len(values) == 1 and values[0].isdigit():
        if value is None or not value.isdigit():
            return False
        return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
    return None


def _field_holds(field: Json, name: str) -> bool | None:
    if field["operator"] == "Exists" or len(field["values"]) != 1:
        return None
    return (field["values"] == [name]) is (field["operator"] == "In")


def _term_holds(term: Json, node: Json) -> bool:
    labels, name = node["metadata"]["labels"], node["metadata"]["name"]
    judged = [_holds(e, labels.get(e["key"])) for e in term.get("matchExpressions", [])]
    judged += [_field_holds(f, name) for f in term.get("matchFields", [])]
    return bool(judged) and all(answer is True for answer in judged)


def _tolerated(spec: Json, taint: Json) -> bool:
    for toleration in spec.get("tolerations", []):
        same_key = toleration.get("key", "") in ("", taint["key"])
        same_effect = toleration.get("effect", "") in ("", taint["effect"])
        operator = toleration.get("operator", "")
        same_value = operator == "Exists" or (
            operator in ("", "Equal") and toleration.get("value", "") == taint.get("value", "")
        )
        if same_key and same_effect and same_value:
            return True
    return False


def _admitted(spec: Json, node: Json) -> bool:
    """Kubernetes' rules, straight from the raw objects."""
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    repelling = [t for t in node["spec"]["taints"] if t["effect"] != "PreferNoSchedule"]
    if node["spec"]["unschedulable"]:
        repelling.append(cordon)
    labels = node["metadata"]["labels"]
    selected = all(labels.get(k) == v for k, v in spec.get("nodeSelector", {}).items())
    if "affinity" in spec:
        listed = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        selected = selected and any(_term_holds(term, node) for term in listed)
    ready = node["status"]["conditions"][0]["status"] == "True"
    return selected and ready and all(_tolerated(spec, taint) for taint in repelling)


@given(specs, raw_nodes)
def test_a_node_takes_a_pod_exactly_where_kubernetes_rules_say_so(spec: Json, raw: Json) -> None:
    constraints, node = read_constraints(unshared(spec)), read_node(unshared(raw))

    assert admits(constraints, node) is _admitted(spec, raw)
    assert bool(why_not(constraints, node)) is not admits(constraints, node)
    assert suits(constraints, node) or not admits(constraints, node)


@given(specs, st.randoms(use_true_random=False))
def test_the_order_of_what_is_written_makes_no_difference(spec: Json, chance: Any) -> None:
    other = unshared(spec)
    chance.shuffle(other.get("tolerations", []))
    if "nodeSelector" in other:
        other["nodeSelector"] = dict(reversed(other["nodeSelector"].items()))

    assert read_constraints(other) == read_constraints(unshared(spec))


@given(json_values | mutilated() | pods(tame=False))
def test_no_json_is_too_odd_to_be_read(value: Any) -> None:
    raw = value if isinstance(value, dict) else {"spec": value, "status": value, "metadata": value}
    spec = raw.get("spec")

    assert read_requests(raw)["pods"] == 1
    assert all(amount > 0 for amount in read_requests(raw).values())
    assert all(amount >= 0 for amount in read_node(raw).allocatable.values())
    hash(read_constraints(spec if isinstance(spec, dict) else {"affinity": value}))
