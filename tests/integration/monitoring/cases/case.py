# SPDX-License-Identifier: Apache-2.0
"""What makes an alert fire, what it then says, and what does not make it fire.

Values are in promtool's notation, one a minute: `0.9x60` is 0.9 and then 60 times more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Series = Mapping[str, str]
"""Values by series."""


@dataclass(frozen=True, slots=True)
class Case:
    """An alert that fires of `series` at minute `at` with these labels, and of none of `quiet`.

    `recalls` are those that look back, so that they fire for a while of what was so before; they
    are not held against a series that has just ended.
    """

    alert: str
    series: Series
    at: int
    labels: Mapping[str, str]
    summary: str
    description: str
    quiet: tuple[Series, ...]
    recalls: bool = False


def histogram(name: str, labels: str, fast: str, slow: str) -> Series:
    """Return buckets of which calls end within 1 ms (fast) or, all of them, within 5 s (slow)."""
    return {
        f'{name}_bucket{{{labels},le="0.001"}}': fast,
        f'{name}_bucket{{{labels},le="5.0"}}': slow,
        f'{name}_bucket{{{labels},le="+Inf"}}': slow,
        f"{name}_count{{{labels}}}": slow,
    }
