# SPDX-License-Identifier: Apache-2.0
"""Whose pods may not borrow for a while, since such were just taken back.

Else what was evicted would be let go again at once, and evicted again. Times are Unix seconds.
"""

from policies.quota.pods import QuotaPod, Source


class HoldBacks:
    """Sources of pods, and until when each is held back."""

    def __init__(self) -> None:
        self._until: dict[Source, int] = {}

    def put(self, source: Source, until: int) -> bool:
        """Hold a source back until then, 0 for no longer; tell whether that is new."""
        if until == self._until.get(source, 0):
            return False
        if until:
            self._until[source] = until
        else:
            del self._until[source]
        return True

    def until(self, pod: QuotaPod) -> int:
        """Return until when a pod may not borrow, 0 if it may."""
        return self._until.get(pod.source, 0) if self._until else 0

    def over(self, now: int) -> tuple[Source, ...]:
        """Return the sources whose time is over."""
        return tuple(source for source, until in self._until.items() if until <= now)
