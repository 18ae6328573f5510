# SPDX-License-Identifier: Apache-2.0
"""Go durations, as the API server writes its `timeout` query parameter (`10s`, `1m30s`)."""

import re
from typing import Final

_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART: Final = r"([0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(ns|us|µs|μs|ms|s|m|h)"
_DURATION: Final = re.compile(rf"(?:{_PART})+", re.ASCII)


def parse_seconds(text: str) -> float | None:
    """Return the seconds of a duration above zero; None for anything else.

    Source: Go `time.ParseDuration`, without signs.
    """
    if not _DURATION.fullmatch(text):
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    return seconds or None
