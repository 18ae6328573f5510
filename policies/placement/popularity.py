# SPDX-License-Identifier: Apache-2.0
"""Which pods are typical, learnt from those that come. What follows from it must not be here."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from policies.placement.asks import Ask
from policies.placement.fgd import Typical

COVERED_PERCENT: Final = 95
"""Typical pods are the most popular ones that together are so many of all (as FGD's authors do)."""

_MEMORY: Final = 16_384
"""After so many pods, all that came before count half: what came a month ago fades."""
_KINDS: Final = 2048
_TYPICAL: Final = 256


class Popularity:
    """Counts of pods that ask for GPUs by what they ask; memory that they state does not matter."""

    def __init__(self, seen: Iterable[Ask] = ()) -> None:
        self._counts: Counter[Ask] = Counter()
        self._sum = 0
        for ask in seen:
            self.see(ask)

    @property
    def pods(self) -> int:
        """How many pods count, old ones less."""
        return self._sum

    def see(self, ask: Ask) -> None:
        """Count a pod; one that asks for no GPU makes no difference."""
        if not ask.devices:
            return
        plain = replace(ask, devices=tuple(replace(device, mib=None) for device in ask.devices))
        self._counts[plain] += 1
        self._sum += 1
        if self._sum > _MEMORY or len(self._counts) > _KINDS:
            self._fade()

    def typical(self, covered_percent: int = COVERED_PERCENT) -> tuple[Typical, ...]:
        """Return the most popular pods that are so many of all, and how many there were of each.

        No more than 256 of them, or measuring a node would cost too much.
        """
        found: list[Typical] = []
        covered = 0
        for ask, count in self._counts.most_common(_TYPICAL):
            if 100 * covered >= covered_percent * self._sum:
                break
            found.append(Typical(ask, count))
            covered += count
        return tuple(found)

    def _fade(self) -> None:
        """Halve all counts; what came once is forgotten."""
        self._counts = Counter({ask: n // 2 for ask, n in self._counts.items() if n > 1})
        self._sum = self._counts.total()
