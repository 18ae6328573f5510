# SPDX-License-Identifier: Apache-2.0
"""Reservations last for a while, and take turns."""

from policies.quota.planning.turns import Lane, Turns

LANE: Lane = ("owed", "")
FOR = 100


def keepers(turns: Turns, standing: str, until: int, step: int = 10) -> list[tuple[int, str]]:
    """Return who keeps from when on, of those that stand in a lane all the time."""
    found: list[tuple[int, str]] = []
    for now in range(0, until, step):
        keeper = turns.next(LANE, standing, now, FOR) or "-"
        if not found or found[-1][1] != keeper:
            found.append((now, keeper))
    return found


def test_a_turn_in_vain_ends_and_the_lane_rests_as_long() -> None:
    assert keepers(Turns(), "a", 200) == [(0, "a"), (100, "-")]


def test_who_had_a_turn_in_vain_rests_twice_as_long_and_then_longer_each_time() -> None:
    begins = [now for now, keeper in keepers(Turns(), "a", 2000) if keeper == "a"]
    assert begins == [0, 300, 800, 1700]


def test_the_next_has_its_turn_while_the_first_rests() -> None:
    found = keepers(Turns(), "ab", 900)
    assert found[:4] == [(0, "a"), (100, "-"), (200, "b"), (300, "-")]
    assert found[4] == (400, "a")


def test_others_get_by_for_half_of_the_time_however_many_stand_in_line() -> None:
    turns, times = Turns(), range(0, 4000, 10)
    kept = sum(turns.next(LANE, "abcdefghijkl", now, FOR) is not None for now in times)
    assert kept == len(times) // 2


def test_who_is_released_leaves_its_turn_to_the_next_at_once() -> None:
    turns = Turns()
    assert turns.next(LANE, "ab", 0, FOR) == "a"
    assert turns.next(LANE, "b", 50, FOR) == "b"
    assert turns.next(LANE, "b", 149, FOR) == "b"
    assert turns.next(LANE, "b", 150, FOR) is None


def test_a_turn_goes_on_though_an_older_one_comes_to_stand_in_the_lane() -> None:
    turns = Turns()
    assert turns.next(LANE, "b", 0, FOR) == "b"
    assert turns.next(LANE, "ab", 50, FOR) == "b"


def test_who_was_free_to_go_for_a_moment_goes_on_with_its_turn() -> None:
    turns = Turns()
    assert turns.next(LANE, "a", 0, FOR) == "a"
    assert turns.next(LANE, "", 50, FOR) is None
    assert turns.next(LANE, "a", 60, FOR) == "a"
    assert turns.next(LANE, "a", 100, FOR) is None


def test_lanes_take_turns_apart() -> None:
    turns = Turns()
    assert turns.next(LANE, "a", 0, FOR) == "a"
    assert turns.next(("borrowed", ""), "b", 0, FOR) == "b"
    assert turns.next(LANE, "a", 100, FOR) is None
    assert turns.next(("borrowed", ""), "c", 100, FOR) == "c"


def test_room_stays_kept_where_it_is_until_the_turn_is_over() -> None:
    turns = Turns()
    turns.next(LANE, "a", 0, FOR)
    turns.kept("a", {"a": "n1"})
    assert turns.nodes("a") == {"a": "n1"}
    turns.next(LANE, "a", 100, FOR)
    turns.next(LANE, "a", 300, FOR)
    assert turns.nodes("a") == {}


def test_whoever_waits_no_more_is_forgotten() -> None:
    turns = Turns()
    turns.next(LANE, "a", 0, FOR)
    turns.kept("a", {"a": "n1"})
    turns.forget_all_but({"b"})
    assert turns.nodes("a") == {}
    assert turns.next(LANE, "a", 10, FOR) == "a"
    assert turns.next(LANE, "a", 105, FOR) == "a"


def test_a_turn_of_no_time_keeps_nothing() -> None:
    assert Turns().next(LANE, "a", 0, 0) is None
