# SPDX-License-Identifier: Apache-2.0
"""The scorer knows nodes as they were last put, and forgets what nobody asks about."""

from typing import Final

from policies.cluster.constraints import Constraints
from policies.placement.asks import Ask, DeviceAsk
from policies.placement.fgd import Fragmentation, Typical
from policies.placement.rooms import Devices
from policies.placement.scorer import Scorer
from tests.support.builders import GPU
from tests.support.cluster import node

ONE: Final = Ask((DeviceAsk(GPU, 1),), (("cpu", 1000),))
TWO: Final = Ask((DeviceAsk(GPU, 2),), (("cpu", 1000),))


def _scorer(**free: int) -> Scorer:
    """Return a scorer of nodes with so many cards free of four, each with eight CPUs."""
    scorer = Scorer(Fragmentation([Typical(ONE, 1), Typical(TWO, 1)]), max_asks=2)
    for name, cards in free.items():
        _put(scorer, name, cards)
    return scorer


def _put(scorer: Scorer, name: str, cards: int, cpu: int = 8000) -> None:
    free = tuple(sorted([1] * cards + [0] * (4 - cards)))
    scorer.put(node(name), {"cpu": cpu}, (Devices(GPU, free),))


def test_a_single_goes_beside_a_single_so_that_pairs_stay() -> None:
    scorer = _scorer(a=4, b=1, c=2)
    assert scorer.rank(ONE, ("a", "b", "c")).order[0] == "b"
    assert scorer.rank(TWO, ("a", "b", "c")).order == ("c", "a", "b")


def test_a_node_that_changed_is_looked_at_again() -> None:
    scorer = _scorer(a=4, b=1)
    assert scorer.rank(ONE, ("a", "b")).order[0] == "b"
    _put(scorer, "b", 0)
    _put(scorer, "a", 3)
    assert scorer.rank(ONE, ("a", "b")).order == ("a", "b")


def test_a_node_that_may_take_other_pods_is_looked_at_again() -> None:
    scorer = _scorer(a=1)
    before = scorer.fragmented_milli("a")
    _put(scorer, "a", 1, cpu=500)
    assert (before, scorer.fragmented_milli("a")) == (500, 1000)
    assert scorer.fragmented_milli("b") is None


def test_a_node_that_says_the_same_again_is_not_looked_at_again() -> None:
    scorer = _scorer(a=4)
    same = node("a")
    free, devices = {"cpu": 8000}, (Devices(GPU, (1, 1, 1, 1)),)
    before = scorer.room("a")
    for _ in range(2):
        scorer.put(same, free, devices)
    assert scorer.room("a") is before


def test_a_node_with_other_labels_takes_other_pods() -> None:
    only = Ask(ONE.devices, (), Constraints(node_selector=(("zone", "b"),)))
    scorer = Scorer(Fragmentation([Typical(only, 1)]))
    devices = (Devices(GPU, (1,)),)
    scorer.put(node("a"), {}, devices)
    assert scorer.fragmented_milli("a") == 1000
    scorer.put(node("a", labels={"zone": "b"}), {}, devices)
    assert scorer.fragmented_milli("a") == 0


def test_cpu_that_would_be_left_is_part_of_the_outlook() -> None:
    scorer = _scorer(a=4)
    (found,) = scorer.outlooks(ONE, ("a",)).values()
    assert found is not None
    assert (found.left_milli, found.left_cpu_milli) == (3000, 7000)


def test_slots_of_nodes_that_are_gone_are_used_again_for_others() -> None:
    scorer = _scorer(a=4, b=1)
    scorer.outlooks(ONE, ("a", "b"))
    scorer.remove("b")
    scorer.remove("b")
    assert scorer.room("b") is None
    assert scorer.outlooks(ONE, ("b",)) == {"b": None}
    _put(scorer, "c", 3)
    _put(scorer, "d", 2)
    found = scorer.outlooks(ONE, ("a", "c", "d"))
    assert [o.left_milli for o in found.values() if o] == [3000, 2000, 1000]


def test_asks_that_nobody_asks_about_are_forgotten() -> None:
    scorer = _scorer(a=4)
    for cpu in range(1, 10):
        scorer.rank(Ask(ONE.devices, (("cpu", cpu),)), ("a",))
    assert len(scorer._asks) == 2


def test_nothing_is_fragmented_before_anything_is_typical() -> None:
    scorer = Scorer(Fragmentation(()))
    _put(scorer, "a", 1)
    assert scorer.fragmented_milli("a") is None
    assert scorer.rank(ONE, ("a",)).order == ("a",)
