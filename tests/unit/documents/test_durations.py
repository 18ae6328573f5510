# SPDX-License-Identifier: Apache-2.0
"""Durations are whole hours, minutes and seconds, within what makes sense for a field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.documents.durations import duration_text, parse_duration
from tests.unit.documents.loading import Loader, document, errors, served


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("1h30m", 5400),
        ("90s", 90),
        ("1h0m5s", 3605),
        ("0s", 0),
        ("007m", 420),
        ("168h", 604_800),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "m", "1.5h", "-1h", "1d", "30m1h", "1h 30m", "1H", "٣m", "1m\n", "500ms"]
)
def test_anything_else_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(min_value=0, max_value=10**9))
def test_a_duration_is_written_as_it_is_read(seconds: int) -> None:
    assert parse_duration(duration_text(seconds)) == seconds


def test_a_duration_of_any_length_is_read_at_once(load_texts: Loader) -> None:
    found = errors(load_texts(document("ReclaimPolicy", "x", f"notice: {'9' * 100_000}h")))

    assert found == [
        (
            "a.yaml:5:11: error: ReclaimPolicy/x: spec.notice: must have at most 16 characters, "
            "has 100001"
        )
    ]


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("30", "must be a duration such as 30m, 1h30m or 90s, is 30; write it with its unit, s"),
        ("true", "must be a duration such as 30m, 1h30m or 90s, is true; write it with its uni"),
        ("2 min", 'must be a duration such as 30m, 1h30m or 90s; is "2 min"'),
        ("1d", 'must be a duration such as 30m, 1h30m or 90s; is "1d"'),
        ("25h", "must be at most 24h, is 25h"),
        ("999999999999h", '"999999999999h" is no duration; write it as 30m or 1h30m'),
        ("", "must be text, is empty; give it a value, or leave the field out"),
    ],
)
def test_a_duration_that_cannot_be_is_refused(load_texts: Loader, written: str, error: str) -> None:
    found = errors(load_texts(document("ReclaimPolicy", "x", f"notice: {written}")))

    assert len(found) == 1, found
    assert f"ReclaimPolicy/x: spec.notice: {error}" in found[0]


@pytest.mark.parametrize(
    ("kind", "field", "least", "most"),
    [
        ("Tenant", "lending.idleAfter", "1m", "168h"),
        ("Tenant", "minRuntime", "0s", "720h"),
        ("Settings", "budget.per", "1m", "168h"),
        ("Settings", "queue.reserveAfter", "0s", "168h"),
        ("Settings", "queue.reserveFor", "0s", "168h"),
        ("Settings", "queue.gangTimeout", "10s", "24h"),
        ("ReclaimPolicy", "notice", "0s", "24h"),
        ("ReclaimPolicy", "maxGrace", "0s", "168h"),
        ("ReclaimPolicy", "pdbTimeout", "0s", "168h"),
        ("ReclaimPolicy", "readmitAfter", "0s", "24h"),
    ],
)
def test_every_duration_has_its_bounds(
    load_texts: Loader, kind: str, field: str, least: str, most: str
) -> None:
    parent, _, name = field.rpartition(".")
    start = "namespaces: {names: [a]}\n" if kind == "Tenant" else ""

    def found(written: int) -> list[str]:
        entry = f"{name}: {written}s"
        spec = start + (f"{parent}: {{{entry}}}" if parent else entry)
        return errors(load_texts(document(kind, "cluster", spec)))

    low, high = parse_duration(least), parse_duration(most)
    assert low is not None
    assert high is not None
    assert found(low) == found(high) == []
    assert f"must be at most {most}, is {high + 1}s" in found(high + 1)[0]
    if low:
        assert f"must be at least {least}, is {low - 1}s" in found(low - 1)[0]


def test_a_duration_from_the_api_in_go_form_is_read(load_texts: Loader) -> None:
    result = load_texts(document("ReclaimPolicy", "x", "notice: 1h0m0s"))

    assert served(result).reclaim_policies[0].notice_seconds == 3600
