# SPDX-License-Identifier: Apache-2.0
"""Telemetry that names pods tells which card is whose; what is measured counts card by card."""

from collections.abc import Mapping

import pytest

from policies.placement.gauging import gauge_of
from policies.placement.occupancy import Gauge
from policies.placement.sighting import Sighting, Sightings, sightings_of
from policies.telemetry.samples import PodName
from policies.telemetry.smoothing import Smoothed
from policies.telemetry.views import (
    CardTelemetry,
    InstanceTelemetry,
    NodeTelemetry,
    PodUse,
    Values,
)
from tests.controlplane import nodes
from tests.unit.extender.building import World, limits, raw_pod, shared
from webhook.extender.wire import Question

_MIB = nodes.H100.memory_mib
_NOW = 1_800_000_000.0


def _passes(world: World, mib: int, name: str = "new") -> bool:
    return bool(world.answers.filter(Question(raw_pod(name, mib=mib), ("a",))).names)


def _see(world: World, pods: Mapping[str, tuple[int, ...]], cards: int = 2) -> None:
    found = {("team-a", name): Sighting(where, _NOW) for name, where in pods.items()}
    world.model.put_sightings("a", Sightings(cards, found))


def _gauge(*free_mib: int) -> Gauge:
    return Gauge(load=100, loads=(100,) * len(free_mib), free_mib=free_mib)


@pytest.fixture
def world() -> World:
    """A node `a` of two cards, on which a pod of 60 GB was found, on a card that nobody knows."""
    made = World()
    made.node(shared("a", cards=2))
    made.bound(raw_pod("p", mib=60_000), "a", is_in_order=False)
    return made


def test_a_pod_that_is_seen_on_its_card_leaves_the_other_one_to_who_is_picked_next(
    world: World,
) -> None:
    assert not _passes(world, 60_000)
    _see(world, {"p": (1,)})
    assert _passes(world, 60_000)


def test_a_card_that_is_measured_full_is_not_given_though_no_pod_states_anything(
    world: World,
) -> None:
    _see(world, {"p": (1,)})
    world.model.put_gauge("a", _gauge(1_000, _MIB - 60_000))
    assert not _passes(world, 5_000)


def test_what_is_measured_counts_on_the_card_that_it_was_measured_of(world: World) -> None:
    # The plugin gives card 0 next, which has room; that card 1 is full as well does not matter.
    _see(world, {"p": (1,)})
    world.model.put_gauge("a", _gauge(50_000, 0))
    assert _passes(world, 40_000)
    assert not _passes(world, 55_000)


def test_pods_that_are_not_seen_leave_it_open_which_card_is_which(world: World) -> None:
    world.bound(raw_pod("q"), "a", is_in_order=False)
    _see(world, {"p": (1,)})
    assert not _passes(world, 60_000)
    _see(world, {"p": (1,), "q": (1,)})
    assert _passes(world, 60_000)


def test_a_pod_that_has_come_since_is_followed_from_where_the_others_were_seen(
    world: World,
) -> None:
    _see(world, {"p": (1,)})
    world.bound(raw_pod("q", mib=60_000), "a")  # only card 0 could have been given
    assert not _passes(world, 30_000)
    assert _passes(world, _MIB - 60_000)


def test_between_cards_of_which_one_is_measured_full_no_pick_is_taken_for_certain() -> None:
    world = World()
    world.node(shared("a", cards=2))
    world.model.put_gauge("a", _gauge(_MIB, 10_000))
    world.bound(raw_pod("p", mib=5_000), "a")  # on either
    assert not _passes(world, 40_000)
    _see(world, {"p": (1,)})
    assert _passes(world, 40_000)


def test_a_sighting_of_one_of_the_same_name_that_was_there_before_is_none() -> None:
    world = World()
    world.node(shared("a", cards=2))
    created = "2027-01-15T08:00:01Z"  # a second after the sighting
    pod = raw_pod("p", mib=60_000, creationTimestamp=created)
    world.bound(pod, "a", is_in_order=False)
    _see(world, {"p": (1,)})
    assert not _passes(world, 60_000)


@pytest.mark.parametrize("where", [(0,), (0, 0), (0, 1)])
def test_a_pod_of_two_shares_is_on_the_cards_that_name_it(where: tuple[int, ...]) -> None:
    world = World()
    world.node(shared("a", cards=2))
    world.bound(raw_pod("p", count=2, mib=30_000), "a", is_in_order=False)
    _see(world, {"p": tuple(dict.fromkeys(where))})
    here = world.model.occupancy("a")
    assert here is not None
    picks = here.cards.picks_of("uid-p")
    assert picks is not None
    assert set(picks["nvidia.com/gpu.shared"]) == set(where)


@pytest.mark.parametrize("cards", [1, 3])
def test_sightings_on_another_number_of_cards_than_the_node_has_are_none(
    world: World, cards: int
) -> None:
    _see(world, {"p": (0,)}, cards)
    assert not _passes(world, 60_000)


def test_a_node_that_leaves_and_comes_back_is_seen_anew(world: World) -> None:
    _see(world, {"p": (1,)})
    node = world.model.occupancy("a")
    assert node is not None
    world.model.remove_node("a")
    world.model.put_node(node.node)
    assert not _passes(world, 60_000)
    _see(world, {"p": (1,)})
    assert _passes(world, 60_000)


# From telemetry


def _card(index: int, *pods: str) -> CardTelemetry:
    uses = tuple(PodUse(PodName("team-a", name), None, None, is_own=False) for name in pods)
    return CardTelemetry("a", f"GPU-{index}", index, Values(pods=uses, time=_NOW + index))


def test_pods_are_seen_on_the_cards_that_name_them_since_the_oldest_was_measured() -> None:
    telemetry = NodeTelemetry("a", (_card(0, "p", "q"), _card(1, "q")))
    assert sightings_of(telemetry) == Sightings(
        2,
        {("team-a", "p"): Sighting((0,), _NOW), ("team-a", "q"): Sighting((0, 1), _NOW)},
    )


def test_pods_on_instances_are_not_told_apart() -> None:
    instance = InstanceTelemetry("1", "1g.10gb", Values())
    use = PodUse(PodName("team-a", "p"), None, None, is_own=False)
    card = CardTelemetry("a", "GPU-0", 0, Values(pods=(use,), time=_NOW), (instance,))
    assert sightings_of(NodeTelemetry("a", (card,))).pods == {}


def test_a_node_that_is_told_of_as_a_whole_bounds_what_any_card_can_have() -> None:
    world = World()
    node = world.node(shared("a", cards=2))
    told = NodeTelemetry("a", (), 2 * _MIB - 30_000.0, 2.0 * _MIB)
    world.model.put_gauge("a", gauge_of(node, told))
    assert _passes(world, 29_000)
    assert not _passes(world, 31_000)
    world.model.put_gauge("a", gauge_of(node, NodeTelemetry("a")))
    assert _passes(world, 31_000)


def test_headroom_is_kept_of_what_is_measured() -> None:
    world = World(limits(headroom_mib=2_000))
    world.node(shared("a"))
    world.model.put_gauge("a", _gauge(20_000))
    assert _passes(world, 18_000)
    assert not _passes(world, 18_001)


def test_load_and_free_memory_of_each_card_make_the_gauge() -> None:
    values = Values(
        utilisation=Smoothed(0.5),
        memory_used_mib=Smoothed(20_000.0),
        memory_free_mib=61_000.0,
        memory_total_mib=81_000.0,
    )
    world = World()
    node = world.node(shared("a"))
    gauge = gauge_of(node, NodeTelemetry("a", (CardTelemetry("a", "GPU-0", 0, values),)))
    assert gauge.free_mib == (60_992,)
    assert gauge.load == round(1000 * (0.7 * 0.5 + 0.3 * 20_000 / 81_000))
