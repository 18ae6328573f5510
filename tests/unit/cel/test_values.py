# SPDX-License-Identifier: Apache-2.0
"""Every function's values and errors, and what a review's variables yield."""

from datetime import UTC, datetime
from typing import Any

import pytest

from policies.cel import EvaluationError, ResultType
from policies.cel.functions import FUNCTIONS
from policies.cel.guard import guarded_functions
from tests.unit.cel.cases import CASES, FAILS
from tests.unit.cel.conftest import POD, REVIEW, Evaluate

OF_A_REVIEW = [
    ('object.kind == "Pod"', True),
    ("oldObject == null", True),
    ('object.metadata.?annotations[?"nvidia.com/gpu-exclusive"].orValue("false")', "true"),
    ('object.metadata.?annotations[?"other"].orValue("")', ""),
    ('object.metadata.?finalizers[?0].orValue("none")', "none"),
    ("has(object.spec.nodeName)", False),
    ("object.spec.containers.map(c, c.name)", ["main", "side"]),
    ("object.spec.containers.filter(c, has(c.resources) && has(c.resources.limits)).size()", 1),
    ('quantity(object.spec.containers[0].resources.limits["memory"]).asInteger()', 4 << 30),
    ('request.operation + " " + request.userInfo.username', "CREATE ann"),
    ("request.dryRun", False),
    ('namespaceObject.metadata.labels["team"]', "chat"),
    ("gpu.devices <= 8 && !gpu.exclusive", True),
    ('gpu.containers.exists(c, c.kind == "App" && c.resource == "nvidia.com/gpu")', True),
    ("gpu.devices < tenant.quota.gpus.ceiling", True),
    ("has(tenant.quota.gpus.guarantee)", False),
    ('tenant.quota.pools["a100"].ceiling == 8.0', True),
    ('"h100" in tenant.quota.pools', False),
    ('has(tenant.quota.pools["a100"].guarantee)', False),
    ("tenant.quota.pools.exists(name, tenant.quota.pools[name].ceiling > 4.0)", True),
    ("gpu.containers", REVIEW["gpu"]["containers"]),
    ("object", POD),
    ("[null, 1u, b'x', 1.5]", [None, 1, b"x", 1.5]),
]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_a_function_yields_what_kubernetes_yields(
    evaluate: Evaluate, source: str, expected: object
) -> None:
    if expected is FAILS:
        with pytest.raises(EvaluationError):
            evaluate(source)
        return
    value = evaluate(source)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(("source", "expected"), OF_A_REVIEW)
def test_a_review_is_read_as_its_json(evaluate: Evaluate, source: str, expected: object) -> None:
    assert evaluate(source) == expected


def test_every_function_stands_in_the_table_of_values() -> None:
    text = "\n".join(source for source, _ in CASES)
    names = {function.name for function in FUNCTIONS} | set(guarded_functions())
    assert [name for name in sorted(names) if f"{name}(" not in text] == []


def test_a_quantity_compares_by_value_where_text_would_not(evaluate: Evaluate) -> None:
    assert evaluate("'10' > '9'") is False
    assert evaluate('quantity("10").isGreaterThan(quantity("9"))') is True


def test_an_error_is_never_taken_for_true(evaluate: Evaluate) -> None:
    with pytest.raises(EvaluationError, match="no such key: absent"):
        evaluate('object.metadata.labels["absent"] == "x"', result=ResultType.BOOL)
    with pytest.raises(EvaluationError, match="no such key: absent"):
        evaluate('object.metadata.labels["absent"]', result=ResultType.STRING)


@pytest.mark.parametrize(
    ("source", "result", "message"),
    [
        ("dyn(1)", ResultType.BOOL, "the value is int, not bool"),
        ("dyn('true')", ResultType.BOOL, "the value is string, not bool"),
        ("dyn(null)", ResultType.BOOL, "the value is null, not bool"),
        ("dyn(true)", ResultType.STRING, "the value is bool, not string"),
        ("object.metadata.?name", ResultType.ANY, "optional"),
    ],
)
def test_a_value_of_another_type_is_an_error(
    evaluate: Evaluate, source: str, result: ResultType, message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        evaluate(source, result=result)


def test_timestamps_are_timestamps_wherever_the_pod_has_them(evaluate: Evaluate) -> None:
    pod: dict[str, Any] = {
        "metadata": {"creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": None},
        "status": {"conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-02T03:04:06Z"}]},
    }
    review = {"object": pod}
    year = "object.metadata.creationTimestamp.getFullYear()"
    assert evaluate(year, review=review) == 2026
    later = (
        "object.status.conditions.all(c,"
        " c.lastTransitionTime > object.metadata.creationTimestamp + duration('500ms'))"
    )
    assert evaluate(later, review=review) is True
    moment = evaluate("object.metadata.creationTimestamp", review=review)
    assert moment == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert evaluate("object.metadata.deletionTimestamp == null", review=review) is True
    assert pod["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"


def test_a_timestamp_that_is_none_is_an_error(evaluate: Evaluate) -> None:
    review = {"object": {"metadata": {"creationTimestamp": "yesterday"}}}
    with pytest.raises(EvaluationError, match="'yesterday' is not a timestamp"):
        evaluate("has(object.metadata)", review=review)


def test_the_request_repeats_neither_uid_nor_object(evaluate: Evaluate) -> None:
    request = evaluate("request")
    assert request == {
        key: REVIEW["request"][key] for key in ("operation", "namespace", "dryRun", "userInfo")
    }
