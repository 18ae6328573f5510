# SPDX-License-Identifier: Apache-2.0
"""Variables that hold several declarations, `NAME=VALUE` each: queries, and ways to smooth.

Each on a line of its own, or all on one line with semicolons between them.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from policies.telemetry.quantities import Quantity
from policies.telemetry.smoothing import Method, Smoothing

QUERIES: Final = "PROMETHEUS_QUERIES"
SMOOTHING: Final = "SLUICE_TELEMETRY_SMOOTHING"


def queries_of(text: str) -> Mapping[str, str]:
    """Return the selector by metric name that is asked for in its place. Raises ValueError."""
    return dict(_declarations(QUERIES, text))


def smoothing_of(text: str) -> Mapping[Quantity, Smoothing]:
    """Return how quantities are smoothed: `utilisation=exponential:60`, `...=percentile:300:95`.

    Windows are in seconds. Raises ValueError.
    """
    found: dict[Quantity, Smoothing] = {}
    for name, value in _declarations(SMOOTHING, text):
        if name not in tuple(Quantity):
            choices = ", ".join(Quantity)
            raise ValueError(f"{SMOOTHING}: {name!r} can be one of {choices}")
        found[Quantity(name)] = _smoothing(value)
    return found


def _smoothing(text: str) -> Smoothing:
    name, _, numbers = text.partition(":")
    methods = {str(method).lower(): method for method in Method}
    try:
        method = methods[name.strip().lower()]
        return Smoothing(method, *(float(number) for number in numbers.split(":") if number))
    except (KeyError, TypeError, ValueError) as error:
        reason = f": {error}" if type(error) is ValueError else ""
        raise ValueError(
            f"{SMOOTHING}: {text!r} is not like exponential:60 or percentile:300:95{reason}"
        ) from error


def _declarations(variable: str, text: str) -> Iterator[tuple[str, str]]:
    parts = text.splitlines() if "\n" in text else text.split(";")
    for part in filter(None, map(str.strip, parts)):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not (name and equals and value):
            raise ValueError(f"{variable}: {part!r} is not like NAME=VALUE")
        yield name, value
