# SPDX-License-Identifier: Apache-2.0
"""Which objects to look at, each by one worker at a time and none before its back-off is over.

Pure: monotonic times are arguments. What is done with an object is not known here.
"""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys in the order they were added. A key is ready, backing off, taken, or not here."""

    def __init__(self) -> None:
        self._ready: dict[K, None] = {}
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._pushed = 0
        self._taken: set[K] = set()
        self._added_meanwhile: set[K] = set()
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Have a key looked at; not before its back-off is over, nor while it is taken."""
        if key in self._taken:
            self._added_meanwhile.add(key)
        elif key not in self._due:
            self._ready[key] = None

    def forget(self, key: K) -> None:
        """Drop a key and its failures: the object is gone, or waits for nothing any more."""
        self._ready.pop(key, None)
        self._due.pop(key, None)
        self._failures.pop(key, None)
        self._added_meanwhile.discard(key)

    def take(self, now: float) -> list[K]:
        """Take every key that may be looked at; each needs a `finish` or `retry`."""
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        keys = list(self._ready)
        self._ready.clear()
        self._taken.update(keys)
        return keys

    def finish(self, key: K) -> None:
        """Give a key back: done, for now. It is ready again if it was added meanwhile."""
        self._taken.discard(key)
        if key in self._added_meanwhile:
            self._added_meanwhile.discard(key)
            self.add(key)

    def count_failure(self, key: K) -> int:
        """Count a failure of a key, and return how many there were since it was forgotten."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return failures

    def retry(self, key: K, due: float) -> None:
        """Give a key back, to be taken again at `due`, whatever is added meanwhile."""
        self._taken.discard(key)
        self._added_meanwhile.discard(key)
        self._due[key] = due
        self._pushed += 1
        heapq.heappush(self._heap, (due, self._pushed, key))

    def seconds_to_next(self, now: float) -> float | None:
        """Return how long until a key may be taken: 0 if one may now, None if none is known."""
        if self._ready:
            return 0.0
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - now) if self._heap else None
