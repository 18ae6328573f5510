# SPDX-License-Identifier: Apache-2.0
"""How loaded a card and a node are, as one number from 0 to 1; None where that is not known."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LoadWeights:
    """What utilisation and used memory count for. They add up to 1; ValueError else."""

    utilisation: float = 0.7
    memory: float = 0.3

    def __post_init__(self) -> None:
        parts = (self.utilisation, self.memory)
        if not all(0 <= part <= 1 for part in parts) or not math.isclose(sum(parts), 1.0):
            raise ValueError(
                "the weights of utilisation and memory must be from 0 to 1, together 1"
            )


DEFAULT_WEIGHTS: Final = LoadWeights()


def load(
    utilisation: float | None,
    memory_used_mib: float | None,
    memory_total_mib: float | None,
    weights: LoadWeights = DEFAULT_WEIGHTS,
) -> float | None:
    """Return a card's load; None while a part that counts is unknown."""
    total = 0.0
    if weights.utilisation:
        if utilisation is None:
            return None
        total += weights.utilisation * min(utilisation, 1.0)
    if weights.memory:
        if memory_used_mib is None or not memory_total_mib:
            return None
        total += weights.memory * min(memory_used_mib / memory_total_mib, 1.0)
    return total


def mean_load(loads: Iterable[float | None], expected: int = 0) -> float | None:
    """Return the mean of all cards' loads; None if any is unknown or there are not enough.

    `expected` is how many cards the node has: a few hot ones of many are not a hot node.
    """
    known: list[float] = []
    for value in loads:
        if value is None:
            return None
        known.append(value)
    return sum(known) / len(known) if known and len(known) >= expected else None
