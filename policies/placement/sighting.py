# SPDX-License-Identifier: Apache-2.0
"""On which of a node's cards its pods were seen, where telemetry names them. Pure.

Cards are numbered in the order of their indices on the node. Pods on MIG instances are left out:
which instance is which device cannot be told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from policies.telemetry.views import NodeTelemetry

PodKey: TypeAlias = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The cards of one pod, ascending; `time` is when the oldest of them was measured."""

    cards: tuple[int, ...]
    time: float


@dataclass(frozen=True, slots=True)
class Sightings:
    """Of how many cards a node's pods were looked for, and which were seen."""

    cards: int
    pods: Mapping[PodKey, Sighting]


def sightings_of(telemetry: NodeTelemetry) -> Sightings:
    """Return the pods that were seen on the cards of a node."""
    found: dict[PodKey, Sighting] = {}
    for number, card in enumerate(telemetry.cards):
        time = card.values.time
        if card.instances or time is None:
            continue
        for key in {(use.pod.namespace, use.pod.name) for use in card.values.pods}:
            before = found.get(key, Sighting((), time))
            found[key] = Sighting((*before.cards, number), min(before.time, time))
    return Sightings(len(telemetry.cards), found)
