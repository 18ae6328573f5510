# SPDX-License-Identifier: Apache-2.0
"""Corners: what is neither plain value nor plain error."""

import pytest

from policies.cel import (
    Environment,
    EvaluationError,
    ExpressionError,
    ExpressionProblem,
    ResultType,
    build_environment,
)
from policies.cel.expr_engine import _evaluation_error
from policies.cel.problems import Reporter
from policies.cel.schema import load_schema
from tests.unit.cel.conftest import Evaluate


@pytest.fixture(scope="module")
def cel_python() -> Environment:
    return build_environment("cel-python")


@pytest.mark.parametrize(
    ("source", "message", "column"),
    [
        ("cel.bind(x, 1, x) == 1", "there is no `cel`: use `variables`", 1),
        ("{'a': 1}.transformMap(k, v, v) == {}", "`transformMap` of Kubernetes'", 10),
        ("{'a': 1}.transformMap(k, v, true, v) == {}", "`transformMap` of Kubernetes'", 10),
        ("{'a': 1}.transformMapEntry(k, v, {v: k}) == {}", "`transformMapEntry` of", 10),
        ("[optional.of(1)] == []", "an optional value cannot go here: use orValue()", 13),
        ("'a'.matches('(')", "invalid regular expression: missing ): (", 13),
        ("duration('1')  == duration('1s')", "String to Duration conversion failed", 10),
    ],
)
def test_what_the_engine_has_and_authors_have_not_is_a_load_error(
    environment: Environment, source: str, message: str, column: int
) -> None:
    with pytest.raises(ExpressionError) as caught:
        environment.compile(source, ResultType.BOOL)
    first = caught.value.problems[0]
    assert message in first.message
    assert (first.line, first.column) == (1, column)


def test_a_fault_is_told_once_and_not_what_follows_from_it(environment: Environment) -> None:
    with pytest.raises(ExpressionError) as caught:
        environment.compile("object.foo.bar.baz == 1", ResultType.BOOL)
    assert [problem.message for problem in caught.value.problems] == ["Pod has no field `foo`"]


@pytest.mark.parametrize(
    "source",
    [
        "'a'" + ".replace('x', 'a'" * 25 + ", '')" * 25 + " == ''",
        "'a'.replace('x', " * 25 + "'a'" + ", 'y')" * 25 + " == ''",
        "[1].map(a, " * 20 + "1" + ")" * 20 + " == []",
    ],
)
def test_nesting_beyond_what_trees_may_have_does_not_load(
    environment: Environment, source: str
) -> None:
    with pytest.raises(ExpressionError, match=r"nested deeper than|Syntax|matching overload"):
        environment.compile(source, ResultType.BOOL)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("dyn({}).isGreaterThan(quantity('1'))", "not a quantity: use quantity()"),
        ("['a\\000b'].min() == ''", "the text has a NUL character"),
        ("has(dyn('a').b)", "non-message type"),
    ],
)
def test_what_has_no_value_says_why(evaluate: Evaluate, source: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        evaluate(source)


def test_a_type_is_named_as_cel_names_it(evaluate: Evaluate) -> None:
    assert evaluate("[type(1), type('a')]") == ["int", "string"]


def test_a_pod_of_another_shape_is_read_as_it_is(evaluate: Evaluate) -> None:
    assert evaluate("object.metadata == dyn('x')", review={"object": {"metadata": "x"}}) is True


def test_only_a_true_nul_is_refused(evaluate: Evaluate) -> None:
    written = {"object": {"spec": {"containers": [{"args": ["\\u0000"]}]}}}
    assert evaluate("object.spec.containers[0].args[0]", review=written) == "\\u0000"
    true = {"object": {"spec": {"containers": [{"args": ["a", "\0"]}]}}}
    with pytest.raises(EvaluationError, match="NUL"):
        evaluate("object.spec.containers[0].args[0]", review=true)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("type(1)", "is no data"),
        ("has(dyn('a').b)", "no such overload"),
        ("(" * 400 + "1" + ")" * 400, "recursion"),
    ],
)
def test_cel_python_has_its_corners_too(cel_python: Environment, source: str, message: str) -> None:
    expression = cel_python.compile(source, ResultType.ANY)
    with pytest.raises(EvaluationError, match=message):
        expression.evaluate(cel_python.scope({}))


def test_cel_python_converts_a_variable_of_the_review_once(cel_python: Environment) -> None:
    calls: list[int] = []

    def pod() -> object:
        calls.append(1)
        return {"kind": "Pod"}

    scope = cel_python.scope({"object": pod})
    for source in ("object.kind == 'Pod'", "object.kind != ''"):
        assert cel_python.compile(source, ResultType.BOOL).evaluate(scope) is True
    assert calls == [1]


def test_reports_without_a_place_are_told_in_one_line() -> None:
    reporter = Reporter(load_schema())
    problems = reporter.problems("INTERNAL: something\n broke [INTERNAL]", "1", ())
    assert problems == (ExpressionProblem("something broke", 1, 1),)
    assert str(_evaluation_error(RuntimeError("INTERNAL: broke"))) == "broke"
    assert str(_evaluation_error(MemoryError())) == "MemoryError"


@pytest.mark.parametrize("levels", range(1, 30))
def test_calls_within_calls_are_evaluated_or_said_to_be_too_deep(
    evaluate: Evaluate, levels: int
) -> None:
    deep = "'a'.replace('a', " * levels + "'b'" + ")" * levels
    try:
        assert evaluate(deep) == "b"
        assert evaluate(f"{deep}.matches('^b$')") is True
    except ExpressionError as error:
        assert "nested deeper than 32 levels" in str(error)  # noqa: PT017 - either is right
        assert levels > 10
