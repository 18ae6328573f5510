# SPDX-License-Identifier: Apache-2.0
"""What is told of a whole node, and of all nodes of a model: means over cards, None if unknown."""

from collections.abc import Iterable
from dataclasses import dataclass

from policies.telemetry.load import DEFAULT_WEIGHTS, LoadWeights
from policies.telemetry.views import NodeTelemetry


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node's utilisation and load from 0 to 1, and its memory in MiB.

    `time` is when the oldest of these was measured, in Unix seconds.
    """

    utilisation: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    load: float | None = None
    time: float | None = None


def node_load(
    view: NodeTelemetry, expected_cards: int = 0, weights: LoadWeights = DEFAULT_WEIGHTS
) -> NodeLoad:
    """Return the load of a node that has so many cards; of some of them nothing follows."""
    values = known_utilisations(view)
    is_whole = bool(view.cards) and len(values) == len(view.cards) >= expected_cards
    return NodeLoad(
        utilisation=sum(values) / len(values) if is_whole else None,
        memory_used_mib=view.memory_used_mib,
        memory_total_mib=view.memory_total_mib,
        load=view.load(weights, expected_cards),
        time=view.time,
    )


def known_utilisations(view: NodeTelemetry) -> tuple[float, ...]:
    """Return the utilisation, from 0 to 1, of each card of which it is known."""
    found = (card.values.utilisation for card in view.cards)
    return tuple(min(each.value, 1.0) for each in found if each is not None)


def mean(values: Iterable[float]) -> float | None:
    """Return the mean; None of nothing."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else None
