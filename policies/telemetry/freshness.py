# SPDX-License-Identifier: Apache-2.0
"""How old a value may be. What is older, or of a time to come, is unknown: no number at all."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Freshness:
    """Limits in seconds. Clocks may differ by `skew_seconds` in either direction.

    Raises ValueError for limits that no value could keep.
    """

    max_age_seconds: float
    skew_seconds: float = 5.0

    def __post_init__(self) -> None:
        if not (self.max_age_seconds > 0 and self.skew_seconds >= 0):
            raise ValueError("an age limit must be above 0 and a skew of clocks not below it")

    def is_fresh(self, time: float, now: float) -> bool:
        """Tell whether a value of `time` may be used at `now`, both in Unix seconds."""
        return now - self.max_age_seconds - self.skew_seconds <= time <= now + self.skew_seconds

    def is_ahead(self, time: float, now: float) -> bool:
        """Tell whether a time is further ahead than clocks may differ."""
        return time > now + self.skew_seconds

    def ends(self, time: float) -> float:
        """Return until when a value of `time` may be used."""
        return time + self.max_age_seconds + self.skew_seconds
