# SPDX-License-Identifier: Apache-2.0
"""The wire format: what real schedulers sent is answered to the byte, and nonsense is told."""

import json
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.extender.building import World, shared
from webhook.extender.wire import (
    Question,
    Sifted,
    Victims,
    WireError,
    decode_preemption,
    decode_question,
    encode_preemption,
    encode_scores,
    encode_sifted,
)

_HERE = Path(__file__).parent / "captured"


def _lines(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (_HERE / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("asked", "answered"),
    list(zip(_lines("questions.jsonl"), _lines("answers.jsonl"), strict=True)),
    ids=["filter-by-names", "filter-by-whole-nodes", "prioritize"],
)
def test_what_a_real_scheduler_sent_is_answered_to_the_byte(
    asked: dict[str, object], answered: dict[str, object]
) -> None:
    world = World()
    world.node(shared("n1"))
    world.node(shared("n2", cards=32))
    question = decode_question(orjson.dumps(asked["body"]))
    if asked["path"] == "/filter":
        found = encode_sifted(question, world.answers.filter(question))
    else:
        found = encode_scores(world.answers.prioritize(question))
    assert found == orjson.dumps(answered["body"])


def test_names_are_answered_by_names_and_never_by_null() -> None:
    question = Question({}, ("a", "b"))
    sifted = Sifted([], {"a": "why"}, {"b": "why not"})
    assert orjson.loads(encode_sifted(question, sifted)) == {
        "Nodes": None,
        "NodeNames": [],
        "FailedNodes": {"a": "why"},
        "FailedAndUnresolvableNodes": {"b": "why not"},
        "Error": "",
    }


def test_whole_nodes_are_answered_by_the_same_whole_nodes() -> None:
    nodes = [{"metadata": {"name": name, "labels": {"x": name}}} for name in "abc"]
    body = {"Pod": {}, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    question = decode_question(orjson.dumps(body))
    answer = orjson.loads(encode_sifted(question, Sifted(["a", "c"], {"b": "why"})))
    assert answer["Nodes"] == {"metadata": {}, "items": [nodes[0], nodes[2]]}
    assert answer["NodeNames"] is None


def test_whole_nodes_are_answered_by_the_bytes_that_were_sent() -> None:
    node = b'{ "metadata":{"name":"a"}, "huge": 123456789012345678901234567890, "x": "\\u00e4" }'
    question = decode_question(b'{"Pod": {}, "Nodes": {"items": [' + node + b"]}}")
    assert question.names == ("a",)
    assert node in encode_sifted(question, Sifted(["a"]))


@pytest.mark.parametrize("nodes", [None, {"metadata": {}, "items": None}])
def test_where_nothing_is_offered_nothing_is_answered(nodes: object) -> None:
    body = {"Pod": {}, "Nodes": nodes, "NodeNames": None}
    question = decode_question(orjson.dumps(body))
    answer = orjson.loads(encode_sifted(question, Sifted(question.names)))
    assert answer["Nodes" if nodes else "NodeNames"] == (
        {"metadata": {}, "items": []} if nodes else []
    )


def test_both_protocols_of_preempt_are_understood_and_answered_alike() -> None:
    meta = {"n": {"Pods": [{"UID": "a"}, {"UID": "b"}], "NumPDBViolations": 1}}
    whole = {
        "n": {
            "Pods": [{"metadata": {"uid": "a"}}, {"metadata": {"uid": "b"}}],
            "NumPDBViolations": 1,
        }
    }
    bodies = (
        {"Pod": {}, "NodeNameToVictims": None, "NodeNameToMetaVictims": meta},
        {"Pod": {}, "NodeNameToVictims": whole, "NodeNameToMetaVictims": None},
    )
    for body in bodies:
        found = decode_preemption(orjson.dumps(body))
        assert found.victims == {"n": Victims(("a", "b"), 1)}
        assert orjson.loads(encode_preemption(found.victims)) == {"NodeNameToMetaVictims": meta}


def test_without_victims_preempt_answers_an_empty_map() -> None:
    assert decode_preemption(b'{"Pod": {}}').victims == {}
    assert encode_preemption({}) == b'{"NodeNameToMetaVictims":{}}'


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b'{"Pod":' + b'{"a":' * 100_000, "the body is not JSON"),
        (b"[]", "the body is no question: Expected `object`, got `array`"),
        (b"{}", "missing required field `Pod`"),
        (b'{"pod": {}}', "missing required field `Pod`"),
        (b'{"Pod": null}', r"got `null` - at `\$.Pod`"),
        (b'{"Pod": {}, "NodeNames": "a"}', r"got `str` - at `\$.NodeNames`"),
        (b'{"Pod": {}, "NodeNames": ["a", 1]}', r"got `int` - at `\$.NodeNames\[1\]`"),
        (b'{"Pod": {}, "Nodes": []}', r"got `array` - at `\$.Nodes`"),
        (b'{"Pod": {}, "Nodes": {"items": [1]}}', "a node in Nodes has no name"),
        (b'{"Pod": {}, "Nodes": {"items": [{}]}}', "a node in Nodes has no name"),
        (b'{"Pod": {}, "Nodes": {"items": [' + b"[" * 100_000, "the body is not JSON"),
    ],
)
def test_what_is_no_question_is_told_in_a_line(body: bytes, told: str) -> None:
    with pytest.raises(WireError, match=told):
        decode_question(body)


@pytest.mark.parametrize(
    ("victims", "told"),
    [
        ("[]", "NodeNameToMetaVictims is not an object"),
        ('{"n": 1}', "NodeNameToMetaVictims.n is not an object"),
        ('{"n": {"Pods": {"a": 1}}}', "Pods is not a list of objects"),
        ('{"n": {"Pods": [{}]}}', "a pod has no UID"),
        ('{"n": {"Pods": [{"UID": 1}]}}', "a pod has no UID"),
        ('{"n": {"Pods": [], "NumPDBViolations": -1}}', "not a whole number"),
        ('{"n": {"Pods": [], "NumPDBViolations": true}}', "not a whole number"),
    ],
)
def test_victims_that_are_none_are_told_in_a_line(victims: str, told: str) -> None:
    body = f'{{"Pod": {{}}, "NodeNameToMetaVictims": {victims}}}'
    with pytest.raises(WireError, match=told):
        decode_preemption(body.encode())


_KEYS = st.sampled_from(
    (
        *("Pod", "Nodes", "NodeNames", "NodeNameToVictims", "NodeNameToMetaVictims", "Pods"),
        *("UID", "metadata", "spec", "status", "items", "name", "uid", "containers", "resources"),
        *("limits", "nvidia.com/gpu.shared", "annotations", "affinity", "env", "NumPDBViolations"),
    )
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=15,
)


@given(body=st.dictionaries(_KEYS, _JSON, max_size=6), pod=_JSON)
def test_no_body_raises_anything_but_a_wire_error(body: dict[str, object], pod: object) -> None:
    world = World()
    world.node(shared("n1"))
    raw = orjson.dumps({**body, "Pod": pod})
    with suppress(WireError):
        question = decode_question(raw)
        encode_sifted(question, world.answers.filter(question))
        encode_scores(world.answers.prioritize(question))
    with suppress(WireError):
        encode_preemption(world.answers.preempt(decode_preemption(raw)))
