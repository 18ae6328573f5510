# SPDX-License-Identifier: Apache-2.0
"""Only what some expression reads is handed to the engine, and never less."""

import pytest

from policies.cel import Environment, ResultType, build_environment
from policies.cel.ast import read_tree
from policies.cel.expr_environments import evaluating_environment, reading_environment
from policies.cel.reads import ELEMENTS, Reads, merged, pruned, reads_of
from tests.unit.cel.conftest import REVIEW

LABELS: Reads = {"metadata": {"labels": None}}


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("1 == 1", {}),
        ("object", None),
        ("object == oldObject", None),
        ("has(object.spec.nodeName)", {"spec": {"nodeName": None}}),
        ("object.metadata.labels['a'] == 'b'", {"metadata": {"labels": {"a": None}}}),
        ("object.metadata.?labels[?'a'].hasValue()", {"metadata": {"labels": {"a": None}}}),
        ("'a' in object.metadata.labels", LABELS),
        ("object.metadata.labels[gpu.mode]", LABELS),
        ("object.metadata.labels.all(k, object.metadata.labels[k] != '')", LABELS),
        ("object.a[0].b", {"a": {ELEMENTS: {"b": None}}}),
        ("object.a.all(c, c.b || has(c.d.e))", {"a": {ELEMENTS: {"b": None, "d": {"e": None}}}}),
        ("object.a.map(c, c)", {"a": {ELEMENTS: None}}),
        (
            "object.a.exists(c, object.b.exists(d, c.x == d.y))",
            {"a": {ELEMENTS: {"x": None}}, "b": {ELEMENTS: {"y": None}}},
        ),
        ("object.a.filter(c, c.x).map(c, c.y)", {"a": {ELEMENTS: None}}),
        ("object.a.all(k, v, v.x == 1)", {"a": {ELEMENTS: {"x": None}}}),
        ("gpu.a.all(object2, object2.b)", {}),
        ("object.?a.optMap(v, v.b).hasValue()", {"a": None}),
        ("[].exists(x, object.a)", {}),
        ("[object.a, object.b.c]", {"a": None, "b": {"c": None}}),
    ],
)
def test_what_is_read_of_a_variable_is_found(source: str, reads: Reads) -> None:
    tree = read_tree(reading_environment().compile(source, disable_check=True).serialize())
    assert reads_of(tree.root, ["object"]) == {"object": reads}


def test_what_is_read_of_each_variable_is_told_apart() -> None:
    source = "object.a.all(c, gpu.b.exists(g, g.x == c.y && object.d == tenant))"
    tree = read_tree(reading_environment().compile(source, disable_check=True).serialize())

    assert reads_of(tree.root, ["object", "gpu", "tenant", "request"]) == {
        "object": {"a": {ELEMENTS: {"y": None}}, "d": None},
        "gpu": {"b": {ELEMENTS: {"x": None}}},
        "tenant": None,
        "request": {},
    }


def test_pruning_keeps_the_shape_of_what_is_read() -> None:
    value = {"a": [{"x": 1, "y": 2}, {"y": 3}], "m": {"k": {"x": 1, "y": 2}}, "n": None, "o": 1}
    reads: Reads = {"a": {ELEMENTS: {"x": None}}, "m": {ELEMENTS: {"x": None}}, "n": {"z": None}}
    assert pruned(value, reads) == {"a": [{"x": 1}, {}], "m": {"k": {"x": 1}}, "n": None}
    assert pruned(value, None) is value
    assert pruned(value, merged(reads, None)) is value
    assert pruned(value, {"a": {ELEMENTS: {}, "x": None}, "m": {ELEMENTS: {}, "k": None}}) == {
        "a": [{}, {}],
        "m": value["m"],
    }


def test_a_scope_sees_what_an_expression_compiled_later_reads() -> None:
    environment: Environment = build_environment()
    scope = environment.scope(REVIEW)
    kind = environment.compile("object.kind", ResultType.STRING)
    assert kind.evaluate(scope) == "Pod"
    name = environment.compile("object.metadata.name", ResultType.STRING)
    assert name.evaluate(scope) == "worker"
    assert kind.evaluate(scope) == "Pod"


def test_a_variable_that_names_a_part_is_not_read_as_a_whole() -> None:
    text = (
        "cel.bind(c, object.spec.containers, cel.bind(n, size(c), c.all(x, x.name != '') || n > 1))"
    )
    named = text.replace("size(c)", "1")
    environment = evaluating_environment(lambda _: True)
    whole, part = (
        reads_of(
            read_tree(environment.compile(each, disable_check=True).serialize()).root, ["object"]
        )
        for each in (text, named)
    )
    assert whole == {"object": {"spec": {"containers": None}}}
    assert part == {"object": {"spec": {"containers": {ELEMENTS: {"name": None}}}}}
