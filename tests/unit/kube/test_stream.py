# SPDX-License-Identifier: Apache-2.0
"""The wire format of a watch."""

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.errors import GoneError, MalformedAnswerError, UnavailableError
from reconciler.kube.stream import EventType, LineBuffer, decode_event

LINES = st.lists(st.binary(min_size=1).map(lambda b: b.replace(b"\n", b"x") + b"."), max_size=8)


@given(lines=LINES, cuts=st.lists(st.integers(0, 200), max_size=20))
def test_lines_come_out_whole_however_the_stream_is_cut(
    lines: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    buffer, found = LineBuffer(), []
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        found += buffer.feed(data[start:end])
    assert found == lines


def test_a_line_of_many_megabytes_is_no_trouble() -> None:
    buffer = LineBuffer()
    line = b"x" * 5_000_000
    chunks = [line[i : i + 65536] for i in range(0, len(line), 65536)]
    assert [found for chunk in chunks for found in buffer.feed(chunk)] == []
    assert buffer.feed(b"\n") == [line]


def test_a_line_beyond_the_bound_is_refused_before_it_fills_the_memory() -> None:
    buffer = LineBuffer(max_bytes=10)
    buffer.feed(b"0123456789")
    with pytest.raises(MalformedAnswerError, match="more than 10 bytes"):
        buffer.feed(b"0")


def test_the_bound_is_for_one_line_not_for_the_stream() -> None:
    buffer = LineBuffer(max_bytes=10)
    assert buffer.feed(b"01234567\n01234567\n0123") == [b"01234567", b"01234567"]
    assert buffer.feed(b"4567\n") == [b"01234567"]


def test_blank_lines_are_skipped() -> None:
    assert LineBuffer().feed(b"\n\r\na\n\n") == [b"a"]


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_an_event_has_its_type_and_object(kind: str) -> None:
    event = decode_event(b'{"type":"%s","object":{"kind":"Pod"}}' % kind.encode())
    assert event is not None
    assert (event.type, event.object) == (EventType(kind), {"kind": "Pod"})


def test_an_error_event_is_raised_and_never_an_object() -> None:
    line = (
        b'{"type":"ERROR","object":{"kind":"Status","reason":"Expired","message":"old","code":410}}'
    )
    with pytest.raises(GoneError, match="old"):
        decode_event(line)


def test_an_error_event_without_a_status_is_raised_too() -> None:
    with pytest.raises(Exception, match="HTTP status 0"):
        decode_event(b'{"type":"ERROR","object":{}}')


def test_an_internal_error_in_the_stream_is_the_servers_fault() -> None:
    with pytest.raises(UnavailableError):
        decode_event(b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}')


@pytest.mark.parametrize("kind", ['"RENAMED"', "null", "7", "[]"])
def test_an_unknown_type_is_no_event(kind: str) -> None:
    assert decode_event(b'{"type":%s,"object":{}}' % kind.encode()) is None


@pytest.mark.parametrize(
    "line", [b'{"type":"ADD', b"[]", b"1", b'{"type":"ADDED"}', b"\xff", b"{}"]
)
def test_what_is_no_event_is_malformed(line: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        decode_event(line)


@given(st.binary(max_size=60))
def test_no_line_raises_anything_but_our_errors(line: bytes) -> None:
    with contextlib.suppress(MalformedAnswerError):
        decode_event(line)
