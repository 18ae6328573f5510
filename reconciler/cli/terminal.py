# SPDX-License-Identifier: Apache-2.0
"""How commands read and print times, and end when they cannot do what was asked."""

import re
import sys
from typing import Final, NoReturn

import click
from rich.console import Console

BAD_INPUT: Final = 2
_DAYS: Final = re.compile(r"(?:(?P<d>[0-9]{1,5})d)?(?P<rest>(?:[0-9]+[hms])*)", re.ASCII)
_PART: Final = re.compile(r"([0-9]{1,9})([hms])", re.ASCII)
_SECONDS: Final = {"h": 3600, "m": 60, "s": 1}
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


_WIDEST: Final = 100_000


def plain_console() -> Console:
    """Return a console that writes tables as wide as they are, as kubectl does, never cut off."""
    return Console(soft_wrap=True, width=_WIDEST)


class CommandError(Exception):
    """Why a command cannot do what was asked, in one line."""


def stop(error: Exception) -> NoReturn:
    """End the program for bad input, of which the error says where it is and what is wrong."""
    click.echo(f"{error}", err=True)
    sys.exit(BAD_INPUT)


def fail(error: Exception) -> NoReturn:
    """Say why, and end the program."""
    click.echo(f"error: {error}", err=True)
    sys.exit(BAD_INPUT)


def span(_: click.Context, parameter: click.Parameter, value: str) -> int:
    """Return the seconds of an option such as `7d`, `36h` or `1h30m`."""
    match = _DAYS.fullmatch(value)
    if not value or match is None:
        raise click.BadParameter(f"{value!r} is no time such as 7d, 36h or 1h30m", param=parameter)
    parts = _PART.findall(match["rest"])
    return int(match["d"] or 0) * _DAY + sum(int(n) * _SECONDS[unit] for n, unit in parts)


def age(seconds: int) -> str:
    """Return a time as kubectl prints ages: 840 is `14m`.

    Source: HumanDuration of k8s.io/apimachinery/pkg/util/duration.
    """
    seconds = max(0, seconds)
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, unit: str, small: int, rest_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{unit}" + (f"{rest}{rest_unit}" if rest else "")
