# SPDX-License-Identifier: Apache-2.0
"""Values that only grow until a restart sets them back: how much they grew, and how fast."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Growth:
    """A counter's newest value, what it has grown since it was first seen, and its rate.

    `rate` is per second since the value before; None for the first value and across a reset, since
    what was counted before the reset is not known.
    """

    time: float
    value: float
    increase: float = 0.0
    rate: float | None = None

    def then(self, time: float, value: float) -> "Growth":
        """Return the growth with a later value. A smaller one is a reset: counted from 0 again."""
        if time <= self.time:
            return self
        if value < self.value:
            return Growth(time, value, self.increase + value, None)
        grown = value - self.value
        return Growth(time, value, self.increase + grown, grown / (time - self.time))
