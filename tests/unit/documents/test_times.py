# SPDX-License-Identifier: Apache-2.0
"""A time is RFC 3339 with its zone, and nothing that only looks like it."""

from datetime import UTC, datetime

import pytest

from policies.documents.times import parse_time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2031-12-12T00:00:00Z", datetime(2031, 12, 12, tzinfo=UTC)),
        ("2031-12-12T00:00:00+01:00", datetime(2031, 12, 11, 23, tzinfo=UTC)),
        ("2031-12-12T00:00:00-05:30", datetime(2031, 12, 12, 5, 30, tzinfo=UTC)),
        ("2031-12-12T08:00:00.5Z", datetime(2031, 12, 12, 8, 0, 0, 500_000, tzinfo=UTC)),
        ("2031-12-12T08:00:00.123456789Z", datetime(2031, 12, 12, 8, 0, 0, 123_456, tzinfo=UTC)),
        ("2032-02-29T23:59:59Z", datetime(2032, 2, 29, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_time_with_a_zone_is_read_as_utc(text: str, time: datetime) -> None:
    assert parse_time(text) == time


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2031-12-12",
        "2031-12-12T00:00:00",
        "2031-12-12 00:00:00Z",
        "2031-12-12T00:00Z",
        "2031-12-12T00:00:00z",
        "2031-12-12T24:00:00Z",
        "2031-12-12T00:00:60Z",
        "2031-12-12T00:00:00+24:00",
        "2031-12-12T00:00:00+01:60",
        "2031-12-12T00:00:00+0100",
        "2031-13-01T00:00:00Z",
        "2031-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "٢031-12-12T00:00:00Z",
        "2031-12-12T00:00:00Z\n",
        "tomorrow",
    ],
)
def test_anything_else_is_no_time(text: str) -> None:
    assert parse_time(text) is None
