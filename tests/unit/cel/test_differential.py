# SPDX-License-Identifier: Apache-2.0
"""cel-python, an independent implementation, against the default engine and on its own."""

import sys
from collections.abc import Mapping

import pytest

from policies.cel import (
    Environment,
    EvaluationError,
    Expression,
    ExpressionError,
    ResultType,
    build_environment,
)
from tests.unit.cel.cases import BEYOND_CEL_PYTHON, BOTH_ENGINES, FAILS, FORMAT
from tests.unit.cel.conftest import REVIEW
from tests.unit.cel.differences import KNOWN, ONLY_CEL_PYTHON_LOADS
from tests.unit.cel.hostile import POD, TOO_MUCH
from tests.unit.cel.test_values import OF_A_REVIEW

IN_CEL_PYTHON = [(source, value) for source, value in OF_A_REVIEW if ".?" not in source]
# `format` it lacks, and patterns, slow as they are, take no memory there
HELD_BY_BOTH = [source for source in TOO_MUCH if "format" not in source and "matches" not in source]


@pytest.fixture(scope="module")
def cel_python() -> Environment:
    return build_environment("cel-python")


def outcome(environment: Environment, source: str, review: Mapping[str, object]) -> object:
    expression = environment.compile(source, ResultType.ANY)
    try:
        return expression.evaluate(environment.scope(review))
    except EvaluationError:
        return FAILS


@pytest.mark.parametrize(("source", "expected"), [*BOTH_ENGINES, *IN_CEL_PYTHON])
def test_cel_python_yields_what_kubernetes_yields(
    cel_python: Environment, source: str, expected: object
) -> None:
    value = outcome(cel_python, source, REVIEW)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize("source", [source for source, _ in (*BEYOND_CEL_PYTHON, *FORMAT)])
def test_what_cel_python_lacks_is_a_load_error_that_says_so(
    cel_python: Environment, source: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        cel_python.compile(source, ResultType.ANY)
    assert {"not supported by cel-python, the engine in use"} == {
        problem.message.rpartition(" is ")[2].rpartition(" are ")[2]
        for problem in caught.value.problems
    }


@pytest.mark.parametrize(("source", "default", "fallback", "reason"), KNOWN)
def test_a_known_difference_is_still_one(
    environment: Environment,
    cel_python: Environment,
    source: str,
    default: object,
    fallback: object,
    reason: str,
) -> None:
    assert outcome(environment, source, {}) == default
    assert outcome(cel_python, source, {}) == fallback, reason


@pytest.mark.parametrize(("source", "reason"), ONLY_CEL_PYTHON_LOADS)
def test_cel_python_loads_what_it_cannot_check(
    environment: Environment, cel_python: Environment, source: str, reason: str
) -> None:
    with pytest.raises(ExpressionError):
        environment.compile(source, ResultType.BOOL)
    assert cel_python.compile(source, ResultType.BOOL).source == source, reason


@pytest.mark.parametrize(
    ("source", "message", "column"),
    [
        ("objekt.kind == 'Pod'", "there is no `objekt`: did you mean `object`?", 1),
        ("variables.nams == []", "there is no variable `nams`: did you mean `names`?", 11),
        ("cidr('10.0.0.0/8') == 1", "`cidr` of Kubernetes' cidr library", 1),
        ("object.kind.findAll('P') == []", "`findAll` of Kubernetes' regex library", 13),
        ("[1].exists(object, true)", "a loop may not name its variable `object`", 12),
        ("object.spec. == 1", "syntax error", 14),
        ("has(object)", "has() takes a field, such as has(object.spec.nodeName)", 1),
        ("f" * 5001, "longer than 5000 characters", 1),
    ],
)
def test_cel_python_checks_names_at_load(
    cel_python: Environment, source: str, message: str, column: int
) -> None:
    declared = [("names", cel_python.compile("['a']", ResultType.ANY))]
    with pytest.raises(ExpressionError) as caught:
        cel_python.compile(source, ResultType.BOOL, declared)
    first = caught.value.problems[0]
    assert message in first.message
    assert (first.line, first.column) == (1, column)


def test_cel_python_evaluates_a_variable_once_in_a_scope(cel_python: Environment) -> None:
    slow = cel_python.compile("lists.range(6000).all(i, i >= 0)", ResultType.ANY)
    declared: list[tuple[str, Expression]] = [("slow", slow)]
    declared.append(("same", cel_python.compile("variables.slow", ResultType.ANY, declared)))
    source = "variables.slow && variables.same && variables.slow"
    expression = cel_python.compile(source, ResultType.BOOL, declared)
    scope = cel_python.scope({})
    assert expression.evaluate(scope) is True
    assert expression.evaluate(scope) is True


def test_cel_python_reports_values_of_other_types(cel_python: Environment) -> None:
    expression = cel_python.compile("1", ResultType.BOOL)
    with pytest.raises(EvaluationError, match="the value is int, not bool"):
        expression.evaluate(cel_python.scope({}))
    with pytest.raises(EvaluationError, match="`object` has no value here"):
        cel_python.compile("object", ResultType.ANY).evaluate(cel_python.scope({}))


@pytest.mark.parametrize("source", HELD_BY_BOTH)
def test_cel_python_is_held_to_a_budget(cel_python: Environment, source: str) -> None:
    expression = cel_python.compile(source, ResultType.BOOL)
    with pytest.raises(EvaluationError, match=r"more than 1000000|more than 10000 times"):
        expression.evaluate(cel_python.scope({"object": POD}))


def test_cel_python_bounds_values_that_hold_one_another(cel_python: Environment) -> None:
    doubled = cel_python.compile("[1]" + ".map(a, [a, a])" * 25 + " == []", ResultType.BOOL)
    with pytest.raises(EvaluationError, match="more than 1000000"):
        doubled.evaluate(cel_python.scope({}))


def test_an_engine_refuses_what_another_compiled(
    environment: Environment, cel_python: Environment
) -> None:
    ours, theirs = (engine.compile("1", ResultType.ANY) for engine in (environment, cel_python))
    with pytest.raises(TypeError, match="another engine"):
        ours.evaluate(cel_python.scope({}))
    with pytest.raises(TypeError, match="another engine"):
        theirs.evaluate(environment.scope({}))
    with pytest.raises(TypeError, match="another engine"):
        environment.compile("variables.x", ResultType.ANY, [("x", theirs)])
    with pytest.raises(TypeError, match="another engine"):
        cel_python.compile("variables.x", ResultType.ANY, [("x", ours)])


def test_without_a_wheel_the_other_engine_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    for name in [name for name in sys.modules if name.startswith("policies.cel.expr_")]:
        monkeypatch.delitem(sys.modules, name)
    fallback = build_environment()
    assert fallback.compile("1 + 1", ResultType.ANY).evaluate(fallback.scope({})) == 2
    assert type(fallback).__name__ == "CelpyEnvironment"
    with pytest.raises(ImportError):
        build_environment("cel-expr")
