# SPDX-License-Identifier: Apache-2.0
"""Which part of which card each pod is taken to have."""

from collections.abc import Mapping

import pytest

from policies.model.profile import SharingMode
from policies.placement.mapping import WIDTH, Card, NodeMap, Part, map_node
from tests.controlplane import nodes
from tests.support.builders import GPU, MIG, SHARED, catalog
from tests.support.fleets import Json, fleet, pod, ready


def mapped(*items: Json) -> NodeMap:
    found = fleet(items)
    (name,) = found.model.nodes()
    here = found.model.occupancy(name)
    assert here is not None
    return map_node(here, catalog())


def holders(card: Card) -> list[str]:
    return [part.uid for part in card.parts]


def test_shares_are_spread_over_cards_and_whole_cards_are_given_in_order() -> None:
    node = ready(nodes.time_sliced("a", count=2, replicas=2))
    shared = mapped(node, *(pod(f"p{i}", "a", {SHARED: 1}) for i in range(3)))
    assert [holders(card) for card in shared.cards] == [["uid-p0", "uid-p2"], ["uid-p1", ""]]
    whole = mapped(ready(nodes.whole("a", count=3)), pod("p", "a", {GPU: 2}))
    assert [holders(card) for card in whole.cards] == [["uid-p"], ["uid-p"], [""]]
    assert whole.cards[0].parts == (Part(GPU, "uid-p", 0, WIDTH),)


def test_parts_are_as_wide_as_they_are_of_the_card() -> None:
    (card,) = mapped(ready(nodes.time_sliced("a", count=1, replicas=3))).cards
    assert [(part.start, part.end) for part in card.parts] == [(0, 333), (333, 666), (666, 1000)]


def test_instances_lie_on_their_boards_and_leave_what_is_not_cut() -> None:
    found = mapped(ready(nodes.mig_mixed("a")), pod("p", "a", {MIG: 1}))
    assert len(found.cards) == 8
    assert all(card.mode is SharingMode.MIG for card in found.cards)
    widths = [sum(part.end - part.start for part in card.parts) for card in found.cards]
    assert widths == [1000, 1000, 875, 875, 875, 875, 875, 875]
    for card in found.cards:
        ends = [0, *(part.end for part in card.parts)]
        assert all(part.start >= end for part, end in zip(card.parts, ends, strict=False))
    assert sum(holders(card).count("uid-p") for card in found.cards) == 1


def test_instances_of_a_board_that_nobody_knows_stand_in_a_row() -> None:
    node = ready(nodes.mig_mixed("a"))
    node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-X9000"
    cards = mapped(node).cards
    assert cards
    assert all(0 <= part.start < part.end <= WIDTH for card in cards for part in card.parts)


def test_pods_for_whom_there_is_no_card_are_named() -> None:
    found = mapped(ready(nodes.whole("a", count=1)), pod("p", "a", {GPU: 2}))
    assert found.excess == ("uid-p",)
    assert holders(found.cards[0]) == [""]


@pytest.mark.parametrize(
    "changes", [{"nvidia.com/gpu.replicas": "4"}, {"nvidia.com/gpu.product": "", "x": "y"}]
)
def test_a_node_with_a_broken_device_has_a_part_less(changes: Mapping[str, str]) -> None:
    node = ready(nodes.time_sliced("a", count=2, replicas=4))
    node["metadata"]["labels"].update(changes)
    node["status"]["allocatable"][SHARED] = "7"
    first, second = mapped(node).cards
    assert (len(first.parts), len(second.parts)) == (4, 3)
    assert second.parts[-1].end == 750


def test_a_node_without_devices_has_no_cards() -> None:
    node = ready(nodes.whole("a"))
    node["status"]["allocatable"].pop(GPU)
    assert mapped(node).cards == ()
