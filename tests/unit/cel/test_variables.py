# SPDX-License-Identifier: Apache-2.0
"""The policy's own variables, and when a review's variables are read."""

import pytest

from policies.cel import Environment, EvaluationError, Expression, ExpressionError, ResultType
from tests.unit.cel.conftest import REVIEW, Evaluate

VARIABLES = (
    ("containers", "object.spec.containers"),
    ("names", "variables.containers.map(c, c.name) // of all"),
    ("failing", "1 / int(object.metadata.labels['zero'])"),
    ("annotation", "object.metadata.?annotations[?'nvidia.com/gpu-exclusive']"),
    ("memory", "quantity('4Gi')"),
    ("born", "timestamp('2026-01-01T00:00:00Z')"),
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("variables.names", ["main", "side"]),
        ("variables.names + variables.names", ["main", "side", "main", "side"]),
        ("variables.containers.exists(c, c.name in variables.names)", True),
        ("variables.annotation.orValue('')", "true"),
        ("variables.memory.isLessThan(quantity('5Gi'))", True),
        ("variables.born.getFullYear()", 2026),
        ("'variables.names: ' + variables.names[0]", "variables.names: main"),
        ("{'variables': 1}.variables == 1 // variables.names", True),
        ("variables.containers\n  .filter(c, c.name != variables.names[0])\n  .size()", 1),
    ],
)
def test_a_variable_stands_for_its_value(evaluate: Evaluate, source: str, expected: object) -> None:
    assert evaluate(source, variables=VARIABLES) == expected


def test_a_variable_in_error_fails_only_what_uses_it(evaluate: Evaluate) -> None:
    assert evaluate("variables.names.size() == 2", variables=VARIABLES) is True
    with pytest.raises(EvaluationError, match="no such key: zero"):
        evaluate("variables.failing == 1", variables=VARIABLES)


def test_a_variable_is_evaluated_only_when_it_is_reached(evaluate: Evaluate) -> None:
    assert evaluate("true || variables.failing == 1", variables=VARIABLES) is True
    assert evaluate("false ? variables.failing : 2", variables=VARIABLES) == 2


def test_a_variable_is_evaluated_once_however_often_it_is_used(evaluate: Evaluate) -> None:
    slow = ("slow", "lists.range(4000).all(i, i >= 0)")
    uses = "variables.slow && variables.slow && variables.slow"
    assert evaluate(uses, variables=(slow,)) is True
    with pytest.raises(ExpressionError, match="loops more than 10000 times"):
        evaluate(uses.replace("variables.slow", slow[1]))


def test_a_variable_sees_only_those_before_it(environment: Environment) -> None:
    first = environment.compile("1", ResultType.ANY)
    declared: list[tuple[str, Expression]] = [("first", first)]
    second = environment.compile("variables.first + 1", ResultType.ANY, declared)
    declared.append(("second", second))
    total = environment.compile("variables.first + variables.second", ResultType.ANY, declared)
    assert total.evaluate(environment.scope({})) == 3


def test_one_scope_serves_expressions_with_different_variables(environment: Environment) -> None:
    scope = environment.scope(REVIEW)
    for text, expected in (("object.kind", "Pod"), ("request.operation", "CREATE")):
        variable = environment.compile(text, ResultType.ANY)
        declared = [("it", variable)]
        expression = environment.compile("variables.it", ResultType.STRING, declared)
        assert expression.evaluate(scope) == expected


def test_a_value_is_made_once_and_only_if_an_expression_uses_it(environment: Environment) -> None:
    calls: list[str] = []

    def request() -> object:
        calls.append("request")
        return REVIEW["request"]

    scope = environment.scope({**REVIEW, "request": request})
    kind = environment.compile("object.kind == 'Pod'", ResultType.BOOL)
    create = environment.compile("request.operation == 'CREATE'", ResultType.BOOL)
    assert kind.evaluate(scope)
    assert calls == []
    assert create.evaluate(scope)
    assert create.evaluate(scope)
    assert kind.evaluate(scope)
    assert calls == ["request"]


def test_a_value_may_turn_out_to_be_null(environment: Environment) -> None:
    scope = environment.scope({**REVIEW, "oldObject": lambda: None})
    kind = environment.compile("object.kind == 'Pod'", ResultType.BOOL)
    old = environment.compile("oldObject == null", ResultType.BOOL)
    assert kind.evaluate(scope)
    assert old.evaluate(scope)
    assert kind.evaluate(scope)


def test_what_a_review_lacks_is_an_error_where_it_is_used(environment: Environment) -> None:
    scope = environment.scope({"object": REVIEW["object"]})
    assert environment.compile("object.kind", ResultType.STRING).evaluate(scope) == "Pod"
    with pytest.raises(EvaluationError, match="`tenant` has no value here"):
        environment.compile("tenant.name", ResultType.STRING).evaluate(scope)
