# SPDX-License-Identifier: Apache-2.0
"""How much of a quota has stood idle, and for how long: peaks of use and demand, in buckets.

Only time that was observed counts: a leader that was away, or a clock that jumped, neither ages
what was seen nor makes it forgotten. What follows from idleness must not be here.
"""

from collections.abc import Mapping, Sequence
from typing import Final

_BUCKETS: Final = 10
"""Into how many the time is cut after which idle quota may be lent; one more is kept."""

_MOST_PEAKS: Final = _BUCKETS + 1

_SOON_SECONDS: Final = 15
"""The same value so soon says nothing new."""

MOST_UNSEEN_SECONDS: Final = 60
"""Between two observations at most so much passes as observed; the first one's value held."""


class IdleHistory:
    """The peak of what one tenant used or asked for in one pool, in milli-GPU.

    Mutable: `observe` adds to it. Times are Unix seconds.
    """

    def __init__(self, idle_after_seconds: int) -> None:
        self._idle_after = max(0, idle_after_seconds)
        self._width = max(1, -(-self._idle_after // _BUCKETS))
        self._observed = 0
        self._at: int | None = None
        self._last = 0
        self._peaks: dict[int, int] = {}

    @property
    def idle_after_seconds(self) -> int:
        """Return how long a quota must stand idle before it may be lent."""
        return self._idle_after

    @property
    def observed_seconds(self) -> int:
        """Return how much time was observed."""
        return self._observed

    def observe(self, now: int, milli: int) -> None:
        """Take note of the larger of use and demand; it holds until the next observation."""
        if self._at is not None:
            if milli == self._last and 0 <= now - self._at < _SOON_SECONDS:
                return
            before = self._observed // self._width
            self._observed += self._passed(now)
            for bucket in range(before, self._observed // self._width + 1):
                self._raise(bucket, self._last)
        self._at, self._last = now, milli
        self._raise(self._observed // self._width, milli)
        self._forget()

    def peak(self, now: int) -> int | None:
        """Return the peak over the time after which idle quota may be lent.

        None while less time than that was observed.
        """
        if self._at is None or self._observed + self._passed(now) < self._idle_after:
            return None
        since = (self._observed + self._passed(now) - self._idle_after) // self._width
        return max([self._last, *(p for bucket, p in self._peaks.items() if bucket >= since)])

    def to_plain(self) -> Mapping[str, object]:
        """Return it as JSON values, for `read_idle_history`; the peaks are the oldest first."""
        now = self._observed // self._width
        return {
            "idleAfterSeconds": self._idle_after,
            "observedSeconds": self._observed,
            "at": self._at,
            "last": self._last,
            "peaks": [self._peaks.get(now - age, 0) for age in range(min(now, _BUCKETS), -1, -1)],
        }

    def _restore(self, observed: int, at: int, last: int, peaks: Sequence[int]) -> None:
        self._observed, self._at, self._last = observed, at, last
        now = observed // self._width
        self._peaks = {now - age: peak for age, peak in enumerate(reversed(peaks)) if age <= now}

    def _passed(self, now: int) -> int:
        return min(max(0, now - (self._at or 0)), max(self._width, MOST_UNSEEN_SECONDS))

    def _raise(self, bucket: int, milli: int) -> None:
        self._peaks[bucket] = max(self._peaks.get(bucket, 0), milli)

    def _forget(self) -> None:
        oldest = self._observed // self._width - _BUCKETS
        for bucket in [bucket for bucket in self._peaks if bucket < oldest]:
            del self._peaks[bucket]


def read_idle_history(plain: object, idle_after_seconds: int) -> IdleHistory:
    """Return the history that `to_plain` gave.

    An empty one, so that nothing is lent for now, if it is not of that making or was kept for
    another time.
    """
    history = IdleHistory(idle_after_seconds)
    if not isinstance(plain, Mapping) or plain.get("idleAfterSeconds") != idle_after_seconds:
        return history
    observed, at, last = (_whole(plain.get(key)) for key in ("observedSeconds", "at", "last"))
    raw = plain.get("peaks")
    peaks = [_whole(peak) for peak in raw] if isinstance(raw, list) else []
    if observed is None or at is None or last is None or None in peaks or len(peaks) > _MOST_PEAKS:
        return history
    history._restore(observed, at, last, [peak or 0 for peak in peaks])  # noqa: SLF001 - its reader
    return history


def _whole(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
