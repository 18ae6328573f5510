# SPDX-License-Identifier: Apache-2.0
"""Values smoothed over time, which say of themselves how they were smoothed."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

_MAX_POINTS: Final = 1024
"""A window holds no more, whatever the clocks say."""


class Method(StrEnum):
    """How a value was smoothed."""

    NONE = "None"
    EXPONENTIAL = "Exponential"
    PERCENTILE = "Percentile"


@dataclass(frozen=True, slots=True)
class Smoothing:
    """A declared way to smooth.

    `window_seconds` is the time constant of the exponential (after which a step shows to 63 %), or
    what the percentile is taken over. Raises ValueError for what makes no sense.
    """

    method: Method = Method.NONE
    window_seconds: float = 0.0
    percentile: float = 95.0

    def __post_init__(self) -> None:
        if self.method is not Method.NONE and not 0 < self.window_seconds < math.inf:
            raise ValueError(f"{self.method} smoothing needs a window above 0 seconds")
        if not 0 < self.percentile <= 100:  # noqa: PLR2004 - per cent
            raise ValueError("a percentile lies above 0 and up to 100")


RAW: Final = Smoothing()


@dataclass(frozen=True, slots=True)
class Smoothed:
    """A value with how it came about; `window_seconds` is 0 for a raw one."""

    value: float
    method: Method = Method.NONE
    window_seconds: float = 0.0


class Smoother(Protocol):
    """The past of one value."""

    def add(self, time: float, value: float) -> None:
        """Take up a value that will not change any more; times only grow."""
        ...

    def with_newest(self, time: float, value: float) -> float:
        """Return the smoothed value if this were the newest; nothing is taken up."""
        ...


class _Raw:
    __slots__ = ()

    def add(self, time: float, value: float) -> None:
        """Forget it."""

    def with_newest(self, time: float, value: float) -> float:  # noqa: ARG002 - see Smoother
        return value


class _Exponential:
    """Weighs by time passed, so that irregular samples smooth as regular ones do."""

    __slots__ = ("_mean", "_seconds", "_time")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._time: float | None = None
        self._mean = 0.0

    def add(self, time: float, value: float) -> None:
        self._mean, self._time = self.with_newest(time, value), time

    def with_newest(self, time: float, value: float) -> float:
        if self._time is None or time <= self._time:
            return value
        share = -math.expm1((self._time - time) / self._seconds)
        return self._mean + share * (value - self._mean)


class _Percentile:
    """The nearest-rank percentile of what was measured in the window."""

    __slots__ = ("_percentile", "_seconds", "_times", "_values")

    def __init__(self, seconds: float, percentile: float) -> None:
        self._seconds = seconds
        self._percentile = percentile
        self._times: list[float] = []
        self._values: list[float] = []

    def add(self, time: float, value: float) -> None:
        keep = max(bisect_left(self._times, time - self._seconds), len(self._times) - _MAX_POINTS)
        del self._times[:keep], self._values[:keep]
        self._times.append(time)
        self._values.append(value)

    def with_newest(self, time: float, value: float) -> float:
        first = bisect_left(self._times, time - self._seconds)
        ordered = sorted([*self._values[first:], value])
        rank = math.ceil(self._percentile / 100 * len(ordered))
        return ordered[rank - 1]


_NO_SMOOTHER: Final = _Raw()


def smoother(smoothing: Smoothing) -> Smoother:
    """Return one with no past yet."""
    if smoothing.method is Method.EXPONENTIAL:
        return _Exponential(smoothing.window_seconds)
    if smoothing.method is Method.PERCENTILE:
        return _Percentile(smoothing.window_seconds, smoothing.percentile)
    return _NO_SMOOTHER
