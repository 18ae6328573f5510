# SPDX-License-Identifier: Apache-2.0
"""How often the cards of a node are looked at: by the class of its work."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.telemetry.freshness import Freshness

SAMPLING_LABEL: Final = "sluice.dev/sampling"
"""Label of a node: the name of its sampling class."""

_MISSES: Final = 3
"""An age limit leaves room for this many samples, so that one that is lost changes nothing."""


@dataclass(frozen=True, slots=True)
class SamplingClass:
    """Nodes that are looked at equally often. `max_age_seconds` of 0 is three intervals.

    `labels` are those of nodes that belong to it, each key with its possible values; a node with
    any of them does. Raises ValueError for an interval that is none.
    """

    name: str
    interval_seconds: float
    max_age_seconds: float = 0.0
    labels: tuple[tuple[str, frozenset[str]], ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.interval_seconds < math.inf or self.max_age_seconds < 0:
            raise ValueError(f"sampling class {self.name}: seconds must be above 0")

    def freshness(self, skew_seconds: float) -> Freshness:
        """Return how old its nodes' values may be."""
        limit = self.max_age_seconds or _MISSES * self.interval_seconds
        return Freshness(limit, skew_seconds)

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a node with these labels belongs to it."""
        if labels.get(SAMPLING_LABEL) == self.name:
            return True
        return any(labels.get(key) in values for key, values in self.labels)


_SHARED: Final = ("nvidia.com/gpu.sharing-strategy", frozenset({"time-slicing", "mps"}))

INFERENCE: Final = SamplingClass("inference", 10.0, labels=(_SHARED,))
TRAINING: Final = SamplingClass("training", 30.0)
DEFAULT_CLASSES: Final = (INFERENCE, TRAINING)
"""The last takes every node that no other does. Shared cards serve inference as a rule."""


def class_of(
    labels: Mapping[str, str], classes: tuple[SamplingClass, ...] = DEFAULT_CLASSES
) -> SamplingClass:
    """Return the class that a node's label names, else the first that takes it, else the last."""
    named = labels.get(SAMPLING_LABEL)
    for each in classes:
        if each.name == named:
            return each
    return next((each for each in classes if each.takes(labels)), classes[-1])
