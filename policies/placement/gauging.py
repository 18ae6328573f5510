# SPDX-License-Identifier: Apache-2.0
"""From telemetry to what the model keeps of a node's cards. Pure."""

from typing import Final

from policies.cluster.capacity import COUNT_LABEL, label_number
from policies.cluster.nodes import Node
from policies.placement.occupancy import UNKNOWN, Gauge
from policies.telemetry.load import DEFAULT_WEIGHTS, LoadWeights
from policies.telemetry.views import NodeTelemetry

_STEP_MIB: Final = 64
"""Measured memory is rounded down to so much: small changes make no difference to anybody."""


def gauge_of(node: Node, telemetry: NodeTelemetry, weights: LoadWeights = DEFAULT_WEIGHTS) -> Gauge:
    """Return the gauge of a node; what is not known of all of its cards is not known."""
    expected = label_number(node.labels, COUNT_LABEL)
    cards = telemetry.cards
    if not cards:
        return _gauge_of_whole(telemetry, expected)
    if len(cards) < expected:
        return UNKNOWN
    loads = [card.values.load(weights) for card in cards]
    known = [load for load in loads if load is not None]
    free = [card.values.memory_free_mib for card in cards]
    measured = [int(mib) // _STEP_MIB * _STEP_MIB for mib in free if mib is not None]
    is_known = len(known) == len(cards)
    return Gauge(
        load=round(1000 * sum(known) / len(known)) if is_known else None,
        loads=tuple(round(1000 * load) for load in known) if is_known else (),
        free_mib=tuple(measured) if len(measured) == len(cards) else (),
    )


def _gauge_of_whole(telemetry: NodeTelemetry, cards: int) -> Gauge:
    """Return the gauge of a node whose cards are only told of together, as by annotations.

    No card can have more free than all of them, nor than there is of it.
    """
    used, total = telemetry.memory_used_mib, telemetry.memory_total_mib
    if used is None or not total or not cards:
        return UNKNOWN
    most = min(max(0.0, total - used), total / cards)
    return Gauge(free_mib=(int(most) // _STEP_MIB * _STEP_MIB,) * cards)
