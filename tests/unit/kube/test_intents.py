# SPDX-License-Identifier: Apache-2.0
"""The annotation that carries a leader's intents."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.intents import (
    MAX_BYTES,
    MAX_INTENTS,
    Intent,
    IntentKind,
    UnreadableIntentsError,
    count_fitting,
    decode_intents,
    encode_intents,
)

ONE = Intent(IntentKind.RELEASE, "team", "p", "uid", "7", '{"tenant":"a"}')
INTENTS = st.builds(Intent, st.sampled_from(IntentKind), *[st.text(max_size=40)] * 5)


@given(st.lists(INTENTS, max_size=20))
def test_what_is_written_is_read_again(intents: list[Intent]) -> None:
    assert decode_intents(encode_intents(intents)) == tuple(intents)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"intents":[]}',
        '{"v":2,"intents":[]}',
        '{"v":1}',
        '{"v":1,"intents":{}}',
        '{"v":1,"intents":["release"]}',
        '{"v":1,"intents":[["release","a","b","c","d"]]}',
        '{"v":1,"intents":[["release","a","b","c",4,""]]}',
        '{"v":1,"intents":[["scale","a","b","c","d",""]]}',
    ],
)
def test_what_no_leader_wrote_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableIntentsError):
        decode_intents(text)


def test_more_than_five_hundred_are_refused() -> None:
    assert encode_intents([ONE] * MAX_INTENTS)
    with pytest.raises(ValueError, match="501 intents are more than 500"):
        encode_intents([ONE] * (MAX_INTENTS + 1))


@pytest.mark.parametrize("length", [0, 100, 400, 480, 481, 482, 1000, MAX_BYTES, "ä" * 300])
def test_as_many_as_fit_are_written_and_no_more(length: int | str) -> None:
    name = length if isinstance(length, str) else "x" * length
    intents = [replace(ONE, name=name)] * (MAX_INTENTS + 5)
    count = count_fitting(intents)
    assert len(encode_intents(intents[:count]).encode()) <= MAX_BYTES
    with pytest.raises(ValueError, match="more than"):
        encode_intents(intents[: count + 1])


def test_five_hundred_of_usual_length_fit() -> None:
    usual = Intent(
        IntentKind.RELEASE,
        "research-language-models",
        "finetune-llama-70b-worker-0-x7k2p",
        "8a1d9f8e-52c4-4f0c-9d0e-0b7a3c9d1e2f",
        "123456789",
        '{"tenant":"research","pool":"h100","amount":{"parts":{"1":8},"mib":655360,"counts":'
        '{"nvidia.com/gpu":8}},"exclusive":true,"reclaimable":false,"generation":"7c1f"}',
    )
    assert count_fitting([usual] * MAX_INTENTS) == MAX_INTENTS
