# SPDX-License-Identifier: Apache-2.0
"""What an expression yielded is remembered for the same inputs, and for no others."""

from collections.abc import Mapping
from typing import Any

from policies.cel import ResultType
from policies.cel.expr_engine import CompiledExpression, ExprEnvironment
from policies.cel.memo import Memo
from tests.unit.cel.conftest import POD


def remembered(expression: CompiledExpression) -> int:
    return len(expression._memo._found)


def named(name: str, **more: object) -> Mapping[str, Any]:
    return {"object": {**POD, **more, "metadata": {"name": name, "labels": {"a": "b"}}}}


def test_pods_that_differ_in_nothing_read_are_evaluated_once() -> None:
    environment = ExprEnvironment()
    expression = environment.compile("object.metadata.name.startsWith('a')", ResultType.BOOL)
    assert expression.evaluate(environment.scope(named("ab"))) is True
    assert expression.evaluate(environment.scope(named("ab", status={"phase": "Running"}))) is True
    assert remembered(expression) == 1
    assert expression.evaluate(environment.scope(named("ba"))) is False
    assert expression.evaluate(environment.scope(named("ab"))) is True
    assert remembered(expression) == 2


def test_inputs_are_told_apart_by_type_and_by_variable() -> None:
    environment = ExprEnvironment()
    expression = environment.compile("type(gpu.devices) == int", ResultType.BOOL)
    outcomes = [expression.evaluate(environment.scope({"gpu": {"devices": n}})) for n in (1, 1.0)]
    assert outcomes == [True, False]
    both = environment.compile("gpu.mode + '/' + tenant.name", ResultType.STRING)
    swapped = [("x", "y"), ("y", "x")]
    scopes = [environment.scope({"gpu": {"mode": m}, "tenant": {"name": t}}) for m, t in swapped]
    assert [both.evaluate(scope) for scope in scopes] == ["x/y", "y/x"]


def test_what_can_be_changed_or_is_large_is_not_remembered() -> None:
    memo = Memo()
    for value in ([1], {"a": 1}, None, "x" * 5000):
        memo.add((b"1",), value)
    memo.add((b"x" * 5000,), True)
    assert memo.get((b"1",)) is None
    assert memo.get((b"x" * 5000,)) is None


def test_a_memo_stays_small() -> None:
    memo = Memo()
    for number in range(1000):
        memo.add((str(number).encode(),), number)
    assert len(memo._found) <= 128
    assert memo.get((b"999",)) == 999
