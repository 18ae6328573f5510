# SPDX-License-Identifier: Apache-2.0
"""What a process knows of cards: of exporters that tell no total, by the labels of nodes."""

from collections.abc import Mapping

import pytest

from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample
from reconciler.telemetry.nodes import node_view
from reconciler.telemetry.store import TelemetryStore
from tests.controlplane import nodes
from tests.support.telemetry import CARD, LIMITS, NOW, Clock


def test_the_memory_of_a_card_is_the_boards_where_no_sample_tells_a_total() -> None:
    boards = {CARD.node: 80_000}
    store = TelemetryStore(lambda _: LIMITS, clock=Clock(), board_mib_of=boards.get)
    used = Sample(Quantity.MEMORY_USED, CARD, 60_000, NOW)
    store.put([used, Sample(Quantity.UTILISATION, CARD, 0.5, NOW)])
    view = store.node(CARD.node)
    assert view.cards[0].values.memory_free_mib == 20_000
    assert view.load() == pytest.approx(0.7 * 0.5 + 0.3 * 0.75)
    boards[CARD.node] = 100_000  # the label was wrong
    assert store.node(CARD.node).cards[0].values.memory_free_mib == 40_000
    boards.clear()
    assert store.node(CARD.node).load() is None
    store.put([Sample(Quantity.MEMORY_TOTAL, CARD, 70_000, NOW)])
    boards[CARD.node] = 80_000
    assert store.node(CARD.node).cards[0].values.memory_free_mib == 10_000


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"nvidia.com/gpu.memory": "81559"}, 81_559),
        ({"nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.product": "A-SHARED"}, 81_559),
        # The single strategy tells the memory of an instance under this name.
        ({"nvidia.com/gpu.memory": "9856", "nvidia.com/gpu.product": "A-MIG-1g.10gb"}, None),
        ({"nvidia.com/gpu.memory": "0"}, None),
        ({"nvidia.com/gpu.memory": "much"}, None),
        ({"nvidia.com/gpu.memory": 81_559}, None),
        ({}, None),
    ],
)
def test_a_node_says_how_much_memory_a_card_of_it_has(
    labels: Mapping[str, object], expected: int | None
) -> None:
    assert node_view()({"metadata": {"name": "n", "labels": labels}}).board_mib == expected


def test_nodes_as_feature_discovery_labels_them_say_it() -> None:
    raw = nodes.time_sliced("n", nodes.L40S, count=2, replicas=4)
    assert node_view()(raw).board_mib == nodes.L40S.memory_mib
