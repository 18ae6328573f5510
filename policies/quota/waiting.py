# SPDX-License-Identifier: Apache-2.0
"""How many pods of a tenant wait, and since when. In which order they go is not decided here."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

_SLACK = 64


@dataclass(frozen=True, slots=True)
class Waiting:
    """`oldest_at` is when the one that waits longest was made (Unix seconds), None if none does."""

    count: int = 0
    oldest_at: int | None = None


class Line:
    """The waiting pods of one tenant by UID."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        """May hold pods that have left; they are passed over when they come first."""

    def __len__(self) -> int:
        return len(self._since)

    def join(self, uid: str, since: int) -> bool:
        """Let a pod wait since then; tell whether that is new."""
        if self._since.get(uid) == since:
            return False
        self._since[uid] = since
        heappush(self._heap, (since, uid))
        return True

    def leave(self, uid: str) -> None:
        """Let a pod wait no more."""
        self._since.pop(uid, None)
        if len(self._heap) > 2 * len(self._since) + _SLACK:
            self._heap = [(since, uid) for uid, since in self._since.items()]
            heapify(self._heap)

    @property
    def state(self) -> Waiting:
        """Return how many wait and since when."""
        while self._heap and self._since.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return Waiting(len(self._since), self._heap[0][0] if self._heap else None)
