# SPDX-License-Identifier: Apache-2.0
"""What a node's cards are by what it offers, and what pods leave of them."""

from typing import Final

import pytest

from policies.cluster.capacity import gpu_milli
from policies.cluster.nodes import read_node
from policies.model.profile import SharingMode
from policies.placement.asks import DeviceAsk
from policies.placement.cards import NodeCards, read_cards
from policies.placement.rooms import Picking
from tests.controlplane import nodes as fleet
from tests.support.builders import GPU, MIG, SHARED, Json, catalog

ONE: Final = (DeviceAsk(GPU, 1),)
SHARE: Final = (DeviceAsk(SHARED, 1),)


def _cards(raw: Json, shares_picked: Picking = Picking.SPREAD) -> NodeCards:
    return read_cards(read_node(raw), catalog(), shares_picked)


@pytest.mark.parametrize(
    ("raw", "mode", "cards", "units"),
    [
        (fleet.whole("a"), SharingMode.EXCLUSIVE, 8, 1),
        (fleet.time_sliced("a", count=4, replicas=3), SharingMode.TIME_SLICE, 4, 3),
        (fleet.mps("a"), SharingMode.MPS, 8, 8),
        (fleet.amd("a"), SharingMode.EXCLUSIVE, 8, 1),
    ],
)
def test_cards_have_the_mode_and_the_shares_that_the_node_says(
    raw: Json, mode: SharingMode, cards: int, units: int
) -> None:
    (group,) = _cards(raw).groups.values()
    assert (group.mode, group.units, group.free) == (mode, units, [units] * cards)
    assert group.milli == 1000


@pytest.mark.parametrize(
    "raw", [fleet.whole("a"), fleet.time_sliced("a"), fleet.mps("a"), fleet.mig_mixed("a")]
)
def test_empty_cards_are_worth_what_the_node_offers_to_quota(raw: Json) -> None:
    free = sum(group.free_milli for group in _cards(raw).devices)
    assert free == gpu_milli(read_node(raw), catalog())


def test_a_node_without_gpus_has_no_cards() -> None:
    assert _cards(fleet.cpu("a")).devices == ()


def test_mig_instances_lie_where_the_board_has_places_for_them() -> None:
    groups = _cards(fleet.mig_mixed("a")).groups
    taken: set[tuple[int, int]] = set()
    for group in groups.values():
        assert group.mode is SharingMode.MIG
        for instance in group.instances:
            assert instance is not None
            slices = {(instance.board, instance.start + n) for n in range(instance.size)}
            assert not taken & slices
            taken |= slices
    assert {board for board, _ in taken} == set(range(8))


def test_memory_is_that_of_the_card_or_what_an_instance_leaves_to_pods() -> None:
    (whole,) = _cards(fleet.whole("a")).groups.values()
    assert whole.free_mib == [81_559] * 8
    instances = _cards(fleet.mig_mixed("a")).groups[MIG]
    assert set(instances.free_mib) == {9984}


def test_memory_of_an_unknown_board_is_not_known() -> None:
    raw: Json = {"metadata": {"name": "a"}, "status": {"allocatable": {GPU: 2}}}
    assert _cards(raw).groups[GPU].free_mib == [None, None]


def test_shares_are_spread_as_the_time_slicing_plugin_does() -> None:
    cards = _cards(fleet.time_sliced("a", count=2, replicas=4))
    for number in range(3):
        cards.put(f"u{number}", SHARE)
    assert cards.groups[SHARED].free == [2, 3]


def test_shares_are_packed_where_that_is_the_plugins_habit() -> None:
    cards = _cards(fleet.time_sliced("a", count=2, replicas=4), Picking.PACKED)
    for number in range(5):
        cards.put(f"u{number}", SHARE)
    assert cards.groups[SHARED].free == [0, 3]


def test_what_a_pod_states_is_taken_from_its_card_and_given_back() -> None:
    cards = _cards(fleet.time_sliced("a", count=2, replicas=4))
    cards.put("u1", (DeviceAsk(SHARED, 1, mib=20_000),))
    assert cards.groups[SHARED].free_mib == [61_559, 81_559]
    assert cards.picks_of("u1") == {SHARED: (0,)}
    cards.drop("u1")
    assert cards.groups[SHARED].free_mib == [81_559] * 2
    assert cards.devices == _cards(fleet.time_sliced("a", count=2, replicas=4)).devices


def test_a_pod_is_on_the_card_where_it_was_seen() -> None:
    cards = _cards(fleet.time_sliced("a", count=2, replicas=4))
    cards.put("u1", SHARE)
    cards.put("u1", SHARE, seen={SHARED: (1,)})
    assert cards.groups[SHARED].free == [4, 3]
    cards.put("u1", SHARE)
    assert cards.picks_of("u1") == {SHARED: (1,)}


@pytest.mark.parametrize("seen", [(7,), (-1,), (0, 1)])
def test_a_card_that_is_not_there_was_not_seen(seen: tuple[int, ...]) -> None:
    cards = _cards(fleet.time_sliced("a", count=2, replicas=4))
    cards.put("u1", SHARE, seen={SHARED: seen})
    assert cards.picks_of("u1") == {SHARED: (0,)}


def test_pods_without_a_device_get_one_when_it_is_free() -> None:
    cards = _cards(fleet.whole("a", count=1))
    cards.put("u1", ONE)
    cards.put("u2", ONE)
    assert list(cards.excess) == ["u2"]
    cards.drop("u1")
    assert len(cards.excess) == 0
    assert cards.picks_of("u2") == {GPU: (0,)}


def test_a_pod_that_asks_what_the_node_does_not_offer_is_excess() -> None:
    cards = _cards(fleet.whole("a"))
    cards.put("u1", SHARE)
    assert list(cards.excess) == ["u1"]
    cards.drop("u1")
    assert len(cards.excess) == 0
    cards.drop("nobody")


def test_pods_stay_when_a_node_is_cut_anew() -> None:
    cards = _cards(fleet.time_sliced("a", count=1, replicas=4))
    for number in range(4):
        cards.put(f"u{number}", SHARE)
    smaller = cards.renewed(read_node(fleet.time_sliced("a", count=1, replicas=2)), catalog())
    assert smaller.excess == ("u2", "u3")
    assert smaller.groups[SHARED].free == [0]


def test_a_card_with_a_share_out_of_order_has_one_less() -> None:
    raw = fleet.time_sliced("a", count=2, replicas=4)
    raw["status"]["allocatable"][SHARED] = "7"  # type: ignore[index]  # a plain dict
    assert _cards(raw).groups[SHARED].free == [4, 3]


def test_an_absurd_number_of_devices_is_no_device() -> None:
    raw: Json = {"metadata": {"name": "a"}, "status": {"allocatable": {GPU: "9E"}}}
    assert _cards(raw).devices == ()


def _labelled(allocatable: dict[str, int], **labels: str) -> NodeCards:
    named = {f"nvidia.com/{key.replace('__', '-')}": value for key, value in labels.items()}
    named = {key.replace("gpu_", "gpu."): value for key, value in named.items()}
    return _cards({"metadata": {"labels": named}, "status": {"allocatable": allocatable}})


def test_instances_under_the_whole_gpus_name_are_instances() -> None:
    product = "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
    labels = {"gpu_product": product, "gpu_slices.gi": "1", "gpu_replicas": "1"}
    (group,) = _labelled({GPU: 14}, **labels).groups.values()
    assert (group.mode, group.units, group.milli) == (SharingMode.MIG, 1, 125)
    assert [i.start for i in group.instances if i] == [*range(7), *range(7)]
    assert {i.board for i in group.instances if i} == {0, 1}


def test_instances_of_an_unknown_board_lie_nowhere() -> None:
    (group,) = _labelled({MIG: 7}, gpu_product="NVIDIA-X1").groups.values()
    assert group.instances == (None,) * 7
    assert group.free_mib == [None] * 7


def test_instances_that_are_shared_in_time_have_several_units() -> None:
    raw: Json = {
        "metadata": {
            "labels": {
                "nvidia.com/mig-1g.10gb.replicas": "4",
                "nvidia.com/mig-1g.10gb.sharing-strategy": "time-slicing",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            }
        },
        "status": {"allocatable": {f"{MIG}.shared": 8}},
    }
    (group,) = _cards(raw).groups.values()
    assert (group.free, group.units, group.milli) == ([4, 4], 4, 125)
    assert group.picking is Picking.SPREAD
    assert [i.start for i in group.instances if i] == [0, 1]


def test_more_instances_than_boards_have_room_for_lie_nowhere() -> None:
    labels = {"gpu_product": "NVIDIA-H100-80GB-HBM3", "gpu_count": "1"}
    (group,) = _labelled({MIG: 9}, **labels).groups.values()
    assert [i is None for i in group.instances] == [False] * 7 + [True] * 2


def test_shares_of_a_number_that_no_label_says_are_told_by_the_number_of_gpus() -> None:
    (group,) = _labelled({SHARED: 8}, gpu_count="2").groups.values()
    assert (group.free, group.mode) == ([4, 4], SharingMode.TIME_SLICE)
    assert group.milli == 1000
