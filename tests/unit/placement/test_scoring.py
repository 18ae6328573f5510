# SPDX-License-Identifier: Apache-2.0
"""By what nodes are ordered, and what they are given."""

from collections.abc import Mapping

import pytest

from policies.placement.outlook import Outlook
from policies.placement.scoring import KEY_NAMES, Signals, Strategy, rank

NOTHING = Signals()
SAME = Outlook()


def _order(
    outlooks: Mapping[str, Outlook | None],
    signals: Signals = NOTHING,
    strategy: Strategy = Strategy.PACK,
) -> tuple[str, ...]:
    return rank(outlooks, signals, strategy).order


def test_least_fragmentation_comes_first_then_least_left() -> None:
    outlooks = {
        "c": Outlook(gradient=5, left_milli=0),
        "b": Outlook(gradient=-1, left_milli=400),
        "a": Outlook(gradient=-1, left_milli=500),
    }
    assert _order(outlooks) == ("b", "a", "c")


@pytest.mark.parametrize(
    "signals",
    [
        Signals(load={"a": 800, "b": 100}),
        Signals(topology={"a": 350, "b": 50}),
        Signals(replicas={"a": 1}),
        Signals(tasks={"a": 3, "b": 2}),
    ],
)
@pytest.mark.parametrize("strategy", list(Strategy))
def test_less_is_better_of_every_signal(signals: Signals, strategy: Strategy) -> None:
    assert _order({"a": SAME, "b": SAME}, signals, strategy) == ("b", "a")


def test_packing_heeds_load_before_topology_before_replicas_before_tasks() -> None:
    names = ("load", "topology", "replicas", "tasks")
    worst = dict.fromkeys("abcd", SAME)
    for index in range(3):
        first = Signals(**{names[index]: {"a": 1, "b": 0}, names[index + 1]: {"a": 0, "b": 1}})
        assert _order({k: worst[k] for k in "ab"}, first)[0] == "b", names[index]


def test_spreading_takes_the_node_with_most_left() -> None:
    outlooks = {"full": Outlook(gradient=-9, left_milli=0), "empty": Outlook(left_milli=7000)}
    assert _order(outlooks, strategy=Strategy.SPREAD) == ("empty", "full")
    assert _order(outlooks, strategy=Strategy.PACK) == ("full", "empty")


def test_spreading_heeds_load_first() -> None:
    outlooks = {"empty": Outlook(left_milli=7000), "cool": Outlook()}
    signals = Signals(load={"empty": 900, "cool": 100})
    assert _order(outlooks, signals, Strategy.SPREAD) == ("cool", "empty")


def test_a_node_of_unknown_load_is_between_the_others() -> None:
    signals = Signals(load={"hot": 900, "cool": 100, "warm": 500})
    found = _order({"hot": SAME, "dark": SAME, "warm": SAME, "cool": SAME}, signals)
    assert found[0] == "cool"
    assert found[-1] == "hot"


def test_loads_of_nodes_that_are_not_asked_about_make_no_difference() -> None:
    signals = Signals(load={"elsewhere": 0, "hot": 900})
    assert rank({"hot": SAME, "dark": SAME}, signals).keys["dark"][3] == 900


def test_a_node_that_is_not_known_is_between_the_others() -> None:
    outlooks = {"new": None, "b": Outlook(gradient=9), "a": Outlook(gradient=-9), "m": SAME}
    found = _order(outlooks)
    assert (found[0], found[-1]) == ("a", "b")


def test_a_node_that_seems_too_small_comes_last_and_is_not_left_out() -> None:
    outlooks = {"small": Outlook(is_too_small=True), "b": Outlook(gradient=99), "new": None}
    assert _order(outlooks) == ("b", "new", "small")


def test_where_nothing_is_known_all_are_equal_and_one_wins() -> None:
    ranking = rank({"b": None, "a": None, "c": None}, NOTHING)
    assert ranking.order[0] == "a"
    assert len(set(ranking.keys.values())) == 1


def test_who_chooses_between_equals_is_asked_only_about_equals() -> None:
    asked: list[tuple[str, ...]] = []

    def last(names: object) -> str:
        asked.append(tuple(names))  # type: ignore[arg-type]  # a sequence of names
        return asked[-1][-1]

    outlooks = {"a": SAME, "b": SAME, "c": Outlook(gradient=1)}
    assert rank(outlooks, NOTHING, choose=last).order == ("b", "a", "c")
    assert rank({"a": SAME, "c": Outlook(gradient=1)}, NOTHING, choose=last).order == ("a", "c")
    assert asked == [("a", "b")]


def test_one_gets_ten_and_the_others_nine_to_nothing_by_rank() -> None:
    outlooks = {f"n{number:02d}": Outlook(gradient=number) for number in range(21)}
    scores = rank(outlooks, NOTHING).scores
    assert [scores[name] for name in sorted(outlooks)] == [
        10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0,
    ]  # fmt: skip


def test_a_lone_node_gets_ten_and_none_get_nothing() -> None:
    assert rank({"a": None}, NOTHING).scores == {"a": 10}
    assert rank({}, NOTHING).scores == {}


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_number_of_a_key_has_a_name(strategy: Strategy) -> None:
    (key,) = rank({"a": SAME}, NOTHING, strategy).keys.values()
    assert len(key) == len(KEY_NAMES[strategy])
