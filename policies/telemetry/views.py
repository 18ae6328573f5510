# SPDX-License-Identifier: Apache-2.0
"""What may be told of cards and nodes at a moment: fresh values only, None for the unknown."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.telemetry.load import DEFAULT_WEIGHTS, LoadWeights, load, mean_load
from policies.telemetry.samples import PodName
from policies.telemetry.smoothing import Smoothed


@dataclass(frozen=True, slots=True)
class PodUse:
    """What a pod uses of a card. `is_own` is False where it is the whole card's, repeated."""

    pod: PodName
    utilisation: float | None
    memory_used_mib: float | None
    is_own: bool


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a card or a MIG instance. Utilisation and occupancy are ratios of 1."""

    utilisation: Smoothed | None = None
    memory_used_mib: Smoothed | None = None
    memory_free_mib: float | None = None
    memory_total_mib: float | None = None
    sm_occupancy: float | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    xid: int | None = None
    """The last XID error's code; 0 for none, None for unknown."""
    uncorrectable_errors: int | None = None
    """How many came since the first sample."""
    pods: tuple[PodUse, ...] = ()
    time: float | None = None
    """The oldest time of a sample that utilisation or memory are from, in Unix seconds."""
    fresh_until: float = float("inf")
    """When the first of all values will be unknown, if nothing comes."""

    def load(self, weights: LoadWeights = DEFAULT_WEIGHTS) -> float | None:
        """Return the load, from 0 to 1; None where a part of it is unknown."""
        used = self.memory_used_mib
        return load(
            None if self.utilisation is None else self.utilisation.value,
            None if used is None else used.value,
            self.memory_total_mib,
            weights,
        )


@dataclass(frozen=True, slots=True)
class InstanceTelemetry:
    """A MIG instance: its GPU instance id on the card, and its profile, such as `1g.10gb`."""

    id: str
    profile: str
    values: Values


@dataclass(frozen=True, slots=True)
class CardTelemetry:
    """A card. Where its instances alone are told, `values` are what they come to together."""

    node: str
    uuid: str
    index: int | None
    values: Values
    instances: tuple[InstanceTelemetry, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTelemetry:
    """A node's cards by index, and its memory, which may be known without them."""

    name: str
    cards: tuple[CardTelemetry, ...] = ()
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    time: float | None = None
    """The oldest time of a sample of its cards' (or its own) utilisation and memory."""
    fresh_until: float = float("inf")
    """Until when this holds if no sample comes."""

    def load(self, weights: LoadWeights = DEFAULT_WEIGHTS, expected_cards: int = 0) -> float | None:
        """Return the mean load of all cards; None if any is unknown or not all are told of."""
        return mean_load((card.values.load(weights) for card in self.cards), expected_cards)

    def card(self, uuid: str = "", index: int | None = None) -> CardTelemetry | None:
        """Return a card by its UUID, or by its index on the node."""
        for card in self.cards:
            if (uuid and card.uuid == uuid) or (index is not None and card.index == index):
                return card
        return None

    def pods(self) -> Iterator[tuple[CardTelemetry, PodUse]]:
        """Yield every pod that a card is attributed to, with the card."""
        for card in self.cards:
            for values in (card.values, *(instance.values for instance in card.instances)):
                for use in values.pods:
                    yield card, use
