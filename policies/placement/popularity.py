# SPDX-License-Identifier: Apache-2.0
"""Which pods are typical, learnt from those that come. What follows from it must not be here."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from policies.placement.asks import Ask
from policies.placement.fgd import Typical

COVERED_PERCENT: Final = 95
"""Typical pods are the most popular ones that together are so many of all (as FGD's authors do)."""

_MEMORY: Final = 16_384
"""After so many pods, all that came before count half: what came long ago fades."""
_KINDS: Final = 2048
_TYPICAL: Final = 256
_RELEARN: Final = 500


@dataclass(slots=True)
class _Count:
    """How many pods were alike, and the milli-GPU that each takes."""

    pods: int
    milli: int


class Popularity:
    """Counts pods that ask for GPUs by what they ask; memory that they state does not matter.

    `seen` is how many there were; in the counts, old ones fade.
    """

    def __init__(self, seen: Iterable[tuple[Ask, int]] = ()) -> None:
        self.seen = 0
        self._counts: dict[Ask, _Count] = {}
        self._pods = 0
        for ask, milli in seen:
            self.see(ask, milli)

    def see(self, ask: Ask, milli: int) -> None:
        """Count a pod and the milli-GPU that it takes; one that asks for no GPU does not matter."""
        if not ask.devices:
            return
        plain = replace(ask, devices=tuple(replace(device, mib=None) for device in ask.devices))
        count = self._counts.setdefault(plain, _Count(0, milli))
        count.pods += 1
        count.milli = milli
        self.seen += 1
        self._pods += 1
        if self._pods > _MEMORY or len(self._counts) > _KINDS:
            self._fade()

    def is_due(self, learnt_at: int) -> bool:
        """Tell whether what is typical should be learnt anew, last done when so many were seen.

        That is when the pods have doubled, later every 500: it costs a look at every node.
        """
        return self.seen - learnt_at >= min(max(1, learnt_at), _RELEARN)

    def typical(self, covered_percent: int = COVERED_PERCENT) -> tuple[Typical, ...]:
        """Return the pods that are most of all, and those that take most of all GPU.

        Without the second, few large pods would not count, and find no node whole. No more than
        256, or measuring a node would cost too much.
        """
        by_pods = {ask: count.pods for ask, count in self._counts.items()}
        by_milli = {ask: count.pods * count.milli for ask, count in self._counts.items()}
        chosen = {
            **dict.fromkeys(_covering(by_pods, covered_percent)),
            **dict.fromkeys(_covering(by_milli, covered_percent)),
        }
        most = sorted(chosen, key=lambda ask: -by_pods[ask])[:_TYPICAL]
        return tuple(Typical(ask, by_pods[ask]) for ask in most)

    def _fade(self) -> None:
        """Halve all counts; what came once is forgotten."""
        self._counts = {
            ask: _Count(count.pods // 2, count.milli)
            for ask, count in self._counts.items()
            if count.pods > 1
        }
        self._pods = sum(count.pods for count in self._counts.values())


def _covering(amounts: dict[Ask, int], percent: int) -> list[Ask]:
    """Return as few as reach so many percent of the sum, the largest first."""
    total, covered = sum(amounts.values()), 0
    found = []
    for ask in sorted(amounts, key=lambda ask: -amounts[ask]):
        if 100 * covered >= percent * total:
            break
        covered += amounts[ask]
        found.append(ask)
    return found
