# SPDX-License-Identifier: Apache-2.0
"""Fragmentation of small nodes, by hand."""

from typing import Final

from policies.cluster.constraints import Constraints
from policies.placement.asks import Ask, DeviceAsk
from policies.placement.fgd import Fragmentation, Typical
from policies.placement.rooms import Devices, Room
from tests.support.builders import GPU, SHARED, catalog
from tests.support.cluster import node, shape

CARD: Final = "example.com/milli"


def _asks(milli: int, cards: int = 1, cpu: int = 0) -> Ask:
    amounts = (("cpu", cpu),) if cpu else ()
    return Ask((DeviceAsk(CARD, cards, milli),), amounts)


def _room(measure: Fragmentation, *free: int, cpu: int = 0) -> Room:
    kinds = measure.kinds(node())
    return measure.room(kinds, {"cpu": cpu}, (Devices(CARD, tuple(sorted(free)), 1000),))


def test_what_no_typical_pod_can_use_is_fragmented() -> None:
    measure = Fragmentation([Typical(_asks(500), 1)])
    assert measure.milli(_room(measure, 1000, 500)) == 0
    assert measure.milli(_room(measure, 1000, 400)) == 400
    assert measure.milli(_room(measure, 400, 400)) == 800


def test_pods_count_by_how_popular_they_are() -> None:
    measure = Fragmentation([Typical(_asks(500), 3), Typical(_asks(1000), 1)])
    assert measure.milli(_room(measure, 600)) == 600
    assert measure.milli(_room(measure, 400)) == 4 * 400


def test_all_of_a_node_is_fragmented_for_a_pod_that_lacks_cpu() -> None:
    measure = Fragmentation([Typical(_asks(500, cpu=4000), 1)])
    assert measure.milli(_room(measure, 1000, 1000, cpu=3999)) == 2000
    assert measure.milli(_room(measure, 1000, 1000, cpu=4000)) == 0


def test_a_pod_that_asks_no_cpu_lacks_none_where_too_much_is_taken() -> None:
    measure = Fragmentation([Typical(_asks(500), 1), Typical(_asks(500, cpu=1), 1)])
    assert measure.milli(_room(measure, 1000, cpu=-1)) == 1000


def test_all_of_a_node_is_fragmented_for_a_pod_that_asks_more_cards() -> None:
    measure = Fragmentation([Typical(_asks(1000, cards=2), 1)])
    assert measure.milli(_room(measure, 1000, 999)) == 1999
    assert measure.milli(_room(measure, 1000, 1000, 999)) == 999


def test_all_of_a_node_is_fragmented_for_a_pod_that_may_not_go_there() -> None:
    elsewhere = Ask(_asks(500).devices, (), Constraints(node_selector=(("zone", "b"),)))
    measure = Fragmentation([Typical(elsewhere, 1)])
    devices = (Devices(CARD, (1000,), 1000),)
    assert measure.milli(measure.room(measure.kinds(node()), {}, devices)) == 1000
    there = measure.kinds(node(labels={"zone": "b"}))
    assert measure.milli(measure.room(there, {}, devices)) == 0


def test_devices_of_another_resource_are_of_no_use() -> None:
    measure = Fragmentation([Typical(Ask((DeviceAsk(GPU, 1),)), 1)])
    kinds = measure.kinds(node())
    both = (Devices(GPU, (1, 1)), Devices(SHARED, (2, 4), units=4))
    assert measure.milli(measure.room(kinds, {}, both)) == 1500
    assert measure.milli(measure.room(kinds, {}, both[1:])) == 1500


def test_pods_without_gpus_make_no_difference() -> None:
    measure = Fragmentation([Typical(Ask((), (("cpu", 1),)), 9), Typical(_asks(500), 1)])
    assert measure.weight == 1
    assert measure.milli(_room(measure, 400)) == 400


def test_a_pod_that_asks_two_resources_needs_both() -> None:
    both = Ask((DeviceAsk(GPU, 1), DeviceAsk(SHARED, 1)))
    measure = Fragmentation([Typical(both, 1)])
    whole, shares = Devices(GPU, (0, 1)), Devices(SHARED, (1, 4), units=4)
    kinds = measure.kinds(node())
    assert measure.milli(measure.room(kinds, {}, (whole, shares))) == 0
    assert measure.milli(measure.room(kinds, {}, (whole,))) == 1000
    assert measure.milli(measure.room(kinds, {}, (Devices(GPU, (0, 0)), shares))) == 1250


def test_nothing_is_fragmented_where_no_pod_is_typical() -> None:
    measure = Fragmentation(())
    assert measure.milli(_room(measure, 400)) == 0


def test_a_pods_ask_tells_devices_from_the_rest() -> None:
    ask = Ask.of(shape(2, requests={"cpu": "1", "example.com/nic": "1"}), catalog(), mib=4096)
    assert ask.devices == (DeviceAsk(GPU, 2, mib=4096),)
    assert dict(ask.amounts) == {"cpu": 1000, "pods": 1, "example.com/nic": 1}
    assert ask.resources == (GPU,)
