# SPDX-License-Identifier: Apache-2.0
"""Durations in documents: whole hours, minutes and seconds, as `30m`, `1h30m` or `90s`.

A part of what Go's time.ParseDuration reads, so that a custom resource means the same to others.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policies.documents.field import Field
from policies.documents.phrases import shown
from policies.documents.problems import Problem

_DURATION: Final = re.compile(
    r"(?:(?P<h>[0-9]{1,9})h)?(?:(?P<m>[0-9]{1,9})m)?(?:(?P<s>[0-9]{1,9})s)?", re.ASCII
)
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE


@dataclass(frozen=True, slots=True)
class Span:
    """The durations, in seconds, that make sense for a field."""

    least: int
    most: int


UP_TO_A_DAY: Final = Span(0, 24 * _HOUR)
UP_TO_A_WEEK: Final = Span(0, 168 * _HOUR)
UP_TO_A_MONTH: Final = Span(0, 720 * _HOUR)
A_MINUTE_TO_A_WEEK: Final = Span(_MINUTE, 168 * _HOUR)
SECONDS_TO_A_DAY: Final = Span(10, 24 * _HOUR)


def parse_duration(text: str) -> int | None:
    """Return the seconds, or None if the text is no duration."""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.group("h", "m", "s"))
    return hours * _HOUR + minutes * _MINUTE + seconds


def duration_text(seconds: int) -> str:
    """Return seconds as documents write them: 5400 is `1h30m`."""
    hours, rest = divmod(seconds, _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def duration_seconds(field: Field, default: int) -> int:
    """Return the seconds of a field, the default where there is none or it is no duration."""
    seconds = parse_duration(field.text())
    return default if seconds is None else seconds


def duration_problems(field: Field, span: Span) -> Iterator[Problem]:
    """Yield what keeps a field that is there from being a duration within a span."""
    if not field.exists:
        return
    seconds = parse_duration(field.text())
    if seconds is None:
        yield field.problem(f"{shown(field.value)} is no duration", "write it as 30m or 1h30m")
    elif seconds < span.least:
        yield field.problem(f"must be at least {duration_text(span.least)}, is {field.text()}")
    elif seconds > span.most:
        yield field.problem(f"must be at most {span.most // _HOUR}h, is {field.text()}")
