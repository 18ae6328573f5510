# SPDX-License-Identifier: Apache-2.0
"""The annotation that says what the mutating pass did, and those that only look like one."""

import json
from typing import Any

import pytest

from policies.model.keys import DECISION
from policies.rewrite.claim import Claim, Original, read_claim
from tests.support.builders import GPU, SHARED, container, mutate, pod, rewritten, validate

CLAIM = Claim(
    generation="7c1f",
    policy="no-raw-gpu",
    profiles={"main": "slice-4"},
    asked={"main": Original({GPU: 1}, {GPU: "1"})},
    given={"main": {SHARED: 1}},
    node_selector={"zone": "ü"},
    expressions=({"key": "a", "operator": "Exists"},),
    affinity_created=True,
    tolerations=({"operator": "Exists"},),
)


def _annotation(**changes: Any) -> str:
    plain = json.loads(CLAIM.to_annotation())
    return json.dumps({**plain, **changes})


def test_a_claim_is_read_as_it_was_written() -> None:
    assert read_claim(CLAIM.to_annotation()) == CLAIM


def test_the_same_claim_is_the_same_text_in_whatever_order_it_was_made() -> None:
    first = Claim(generation="1", node_selector={"a": "1", "b": "2"})
    second = Claim(generation="1", node_selector={"b": "2", "a": "1"})

    assert first.to_annotation() == second.to_annotation()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "null",
        "[]",
        "1",
        '"v"',
        "{}",
        '{"v":1}',
        '{"v":2}',
        "{",
        "[" * 2000,
        "9" * 5000,
        _annotation(generation=1),
        _annotation(profiles=[]),
        _annotation(profiles={"main": 1}),
        _annotation(asked={"main": {}}),
        _annotation(asked={"main": {"limits": {GPU: [1]}, "requests": {}}}),
        _annotation(asked={"main": {"limits": {GPU: float("nan")}, "requests": {}}}),
        _annotation(asked={"main": {"limits": {"nvidia.com/\ud800": "1"}, "requests": {}}}),
        _annotation(given={"main": {GPU: True}}),
        _annotation(added={}),
        _annotation(added={"nodeSelector": {}, "expressions": {}, "tolerations": []}),
        _annotation(x="a" * 300_000),
    ],
)
def test_what_is_no_claim_is_none(text: str | None) -> None:
    assert read_claim(text) is None


def test_the_claim_of_the_largest_pod_is_read_again() -> None:
    names = [f"{'container-with-a-long-name-':c<58}{index:05}" for index in range(500)]
    found = pod(*(container(name, "1", resource=SHARED) for name in names), namespace="lab")
    found["spec"]["containers"] = found["spec"]["containers"][:64]  # as many as the ceiling has
    found["spec"]["initContainers"] = [container(name, "1") for name in names[64:]]
    new = rewritten(found)

    assert len(new["metadata"]["annotations"][DECISION]) > 65536
    assert mutate(new).patch == ()
    assert validate(new).allowed
