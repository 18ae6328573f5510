# SPDX-License-Identifier: Apache-2.0
"""The notice annotation: what is written is read, and what is not ours is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.quota.notice import read_notice, write_notice
from policies.quota.pods import Notice

TIMES = st.integers(0, 4_000_000_000)


@given(st.text(), st.text(), TIMES, TIMES, st.none() | TIMES)
def test_a_notice_that_was_written_is_read_again(
    beneficiary: str, rule: str, at: int, evict_at: int, refused_at: int | None
) -> None:
    notice = Notice(beneficiary, rule, at, evict_at, refused_at)
    assert read_notice(write_notice(notice)) == notice


def test_it_is_json_that_people_can_read() -> None:
    text = write_notice(Notice("chat/llm", "ReclaimPolicy/main", 0, 120))
    assert json.loads(text) == {
        "at": "1970-01-01T00:00:00Z",
        "beneficiary": "chat/llm",
        "evictAt": "1970-01-01T00:02:00Z",
        "rule": "ReclaimPolicy/main",
    }


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "x",
        "[]",
        "{}",
        '{"at": 1, "beneficiary": "b", "evictAt": 2, "rule": "r"}',
        '{"at": "1970-01-01T00:00:00", "beneficiary": "b", "evictAt": "x", "rule": "r"}',
        '{"at": "9999-99-99T00:00:00Z", "beneficiary": "b", "evictAt": "x", "rule": "r"}',
        '{"at": "1970-01-01T00:00:00Z", "beneficiary": 1, "evictAt": "1970-01-01T00:00:00Z"}',
    ],
)
def test_what_is_not_of_our_making_is_no_notice(text: str | None) -> None:
    assert read_notice(text) is None


@given(st.text())
def test_no_text_makes_reading_fail(text: str) -> None:
    read_notice(text)
