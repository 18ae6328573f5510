# SPDX-License-Identifier: Apache-2.0
"""Go durations as the API server writes them."""

import pytest

from webhook.duration import parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("1m30s", 90.0),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("2.s", 2.0),
        ("250ms", 0.25),
        ("1h", 3600.0),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("7ns", 7e-9),
    ],
)
def test_a_go_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "10", "s", "-1s", "+1s", "1 s", "0s", "1s ", "1e3s", "\u0661s", "1d", "x" * 10_000]
)
def test_what_is_no_duration_above_zero_is_none(text: str) -> None:
    assert parse_seconds(text) is None
