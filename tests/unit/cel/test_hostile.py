# SPDX-License-Identifier: Apache-2.0
"""Nothing that a policy or a pod can say ends the process, or takes its memory."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from policies.cel import Environment, EvaluationError, ExpressionError, ResultType
from tests.unit.cel.conftest import REVIEW, Evaluate
from tests.unit.cel.hostile import POD, TOO_MUCH, WILL_NOT_LOAD, unreadable


def test_all_hostile_expressions_end_in_errors_within_a_gibibyte() -> None:
    program = [sys.executable, "-X", "faulthandler", "-m", "tests.unit.cel.hostile"]
    root = Path(__file__).parents[3]
    finished = subprocess.run(
        program, cwd=root, capture_output=True, text=True, timeout=50, check=False
    )
    assert finished.returncode == 0, finished.stderr
    outcomes = json.loads(finished.stdout)
    count = len(TOO_MUCH)
    assert set(outcomes[:count]) <= {"BudgetError", "ExpressionError"}
    assert outcomes[count : count + len(WILL_NOT_LOAD)] == ["ExpressionError"] * len(WILL_NOT_LOAD)
    assert set(outcomes[count + len(WILL_NOT_LOAD) :]) == {"EvaluationError"}


@pytest.mark.parametrize("source", TOO_MUCH)
def test_an_evaluation_that_takes_too_much_says_so(evaluate: Evaluate, source: str) -> None:
    too_much = (EvaluationError, ExpressionError)  # some show at load already
    with pytest.raises(too_much, match=r"more than 1000000|more than 10000 times"):
        evaluate(source, review={"object": POD})


@pytest.mark.parametrize("source", WILL_NOT_LOAD, ids=range(len(WILL_NOT_LOAD)))
def test_an_expression_that_could_harm_does_not_load(environment: Environment, source: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        environment.compile(source, ResultType.BOOL)
    assert all(problem.message for problem in caught.value.problems)
    assert all(problem.line >= 1 <= problem.column for problem in caught.value.problems)


@pytest.mark.parametrize("number", range(len(list(unreadable()))))
def test_a_pod_that_cannot_be_read_is_an_error(evaluate: Evaluate, number: int) -> None:
    message, pod = list(unreadable())[number]
    with pytest.raises(EvaluationError, match=message):
        evaluate("has(object.metadata)", review={"object": pod})


def test_running_out_is_an_error_even_where_or_would_pass_over_it(evaluate: Evaluate) -> None:
    replaced = "object.metadata.name.replace('', object.metadata.name) != '' || true"
    with pytest.raises(EvaluationError, match="more than 1000000"):
        evaluate(replaced, review={"object": POD})


def test_each_evaluation_has_a_budget_of_its_own(environment: Environment) -> None:
    expression = environment.compile("lists.range(600000).size() > 1", ResultType.BOOL)
    scope = environment.scope({})
    assert [expression.evaluate(scope) for _ in range(3)] == [True] * 3


def test_a_large_honest_pod_is_evaluated(evaluate: Evaluate) -> None:
    named = "object.spec.containers.map(c, c.name + '=' + c.image.replace('i', 'image')).join(',')"
    value = evaluate(named, review={"object": POD})
    assert str(value).startswith("c0=image,c1=image,")
    once = "object.spec.containers.all(c, object.spec.containers.map(d, d.name).size() > 1)"
    fifty = {"object": {**POD, "spec": {"containers": POD["spec"]["containers"][:50]}}}
    assert evaluate(once, review=fifty) is True


def test_threads_do_not_disturb_one_another(environment: Environment) -> None:
    shared = environment.scope(REVIEW)
    expression = environment.compile(
        "object.spec.containers.map(c, c.name + '!').join(' ') + string(gpu.devices)",
        ResultType.STRING,
    )
    wrong: list[object] = []

    def work(number: int) -> None:
        review = {**REVIEW, "gpu": {**REVIEW["gpu"], "devices": number}}
        for _ in range(300):
            own = expression.evaluate(environment.scope(review))
            if (own, expression.evaluate(shared)) != (f"main! side!{number}", "main! side!1"):
                wrong.append(own)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
