# SPDX-License-Identifier: Apache-2.0
"""Keeps one namespace from taking all the places in which releases are sent.

A webhook of others that hangs on the pods of a namespace holds each write until its deadline. So
no namespace ever has all places, and one where writes hang has few, until one is answered. What is
sent, and what becomes of those without a place, is not decided here.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from reconciler.kube.errors import ApiError, UnavailableError

T = TypeVar("T")

_HANGS_AFTER_SECONDS: Final = 2.0
"""A write that fails after so long has hung; those that are refused are so at once."""
_MOST_HANGING: Final = 2
"""So many places has a namespace where writes hang: one of them will tell when that ends."""


class Lanes(Generic[T]):
    """Places by namespace; those that found none wait here, the first ones go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()
        self._hanging: dict[str, ApiError] = {}
        self._waiting: defaultdict[str, deque[T]] = defaultdict(deque)

    def hangs(self, namespace: str) -> ApiError | None:
        """Return how the last write of a namespace has ended if they hang there, else None."""
        return self._hanging.get(namespace)

    def enter(self, namespace: str) -> bool:
        """Take a place of a namespace; False if none is left."""
        if self._taken[namespace] >= (_MOST_HANGING if namespace in self._hanging else self._most):
            return False
        self._taken[namespace] += 1
        return True

    def wait(self, namespace: str, item: T) -> None:
        """Keep an item until places are given back."""
        self._waiting[namespace].append(item)

    def answered(self, namespace: str, seconds: float, error: ApiError | None) -> None:
        """Know how long a write took, and how it failed if it did."""
        if isinstance(error, UnavailableError) and seconds >= _HANGS_AFTER_SECONDS:
            self._hanging[namespace] = error
        else:
            self._hanging.pop(namespace, None)

    def leave(self, namespace: str) -> Sequence[T]:
        """Give a place back, and return what should try again: all, where others hang."""
        self._taken[namespace] -= 1
        if not self._taken[namespace]:
            del self._taken[namespace]
        waiting = self._waiting.get(namespace)
        if not waiting:
            return ()
        count = len(waiting) if namespace in self._hanging else 1
        found = [waiting.popleft() for _ in range(count)]
        if not waiting:
            del self._waiting[namespace]
        return found
