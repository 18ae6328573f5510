# SPDX-License-Identifier: Apache-2.0
"""What is known of cards: only what was measured, is fresh, and is told by somebody."""

import math
from dataclasses import replace

import pytest

from policies.telemetry.freshness import Freshness
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Subject
from policies.telemetry.smoothing import Method, Smoothing
from policies.telemetry.state import Outcome
from tests.support.telemetry import CARD, Known, of_pod

_OTHER = Subject("node-a", "GPU-1", 1)


def test_nothing_is_known_of_a_node_that_nobody_tells_of() -> None:
    view = Known().state.node("node-z", 1.0)
    assert (view.cards, view.load(), view.time) == ((), None, None)


def test_load_is_seven_parts_of_utilisation_and_three_of_memory() -> None:
    known = Known()
    known.busy(0.5)
    known.memory(20_000, 60_000)
    view = known.state.node("node-a", known.now)
    assert view.load() == pytest.approx(0.7 * 0.5 + 0.3 * 0.25)
    assert view.cards[0].values.memory_total_mib == 80_000


@pytest.mark.parametrize("lacking", [Quantity.UTILISATION, Quantity.MEMORY_USED])
def test_load_is_unknown_while_a_part_of_it_is(lacking: Quantity) -> None:
    known = Known()
    for quantity, value in (
        (Quantity.UTILISATION, 0.9),
        (Quantity.MEMORY_USED, 70_000.0),
        (Quantity.MEMORY_TOTAL, 80_000.0),
    ):
        if quantity is not lacking:
            known.put(quantity, value)
    assert known.state.node("node-a", known.now).load() is None


def test_a_node_s_load_is_unknown_while_one_of_its_cards_is() -> None:
    known = Known()
    for card in (CARD, _OTHER):
        known.busy(0.9, card)
        known.memory(70_000, 10_000, card)
    assert known.state.node("node-a", known.now).load(expected_cards=2) is not None
    assert known.state.node("node-a", known.now).load(expected_cards=3) is None
    known.now += 20
    known.busy(0.9)
    known.memory(70_000, 10_000)
    known.now += 20
    assert known.state.node("node-a", known.now).load() is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 42.0, 9.2e18, 2147483632.0])
def test_what_is_no_measurement_changes_nothing(value: float) -> None:
    known = Known()
    known.busy(0.3, age=5)
    assert known.busy(value) is Outcome.NOT_A_MEASUREMENT
    view = known.state.node("node-a", known.now).cards[0].values
    assert view.utilisation is not None
    assert view.utilisation.value == 0.3


@pytest.mark.parametrize(
    "blank", [2147483632.0, 140737488355328.0, 9223372036854775807.0, 17592186044415.0]
)
def test_blanks_of_exporters_are_no_memory(blank: float) -> None:
    known = Known()
    known.put(Quantity.MEMORY_USED, blank)
    assert known.state.node("node-a", known.now).cards == ()


def test_a_vanished_exporter_is_unknown_once_the_limit_has_passed() -> None:
    known = Known()
    known.busy(0.9)
    known.memory(70_000, 10_000)
    last = known.state.node("node-a", known.now + 35.0)
    gone = known.state.node("node-a", known.now + 35.1)
    assert last.load() is not None
    assert gone.load() is None
    values = gone.cards[0].values
    assert (values.utilisation, values.memory_used_mib, values.memory_free_mib) == (None,) * 3
    assert last.fresh_until == known.now + 35.0


def test_a_value_that_prometheus_repeats_keeps_its_own_age() -> None:
    known = Known()
    for _ in range(10):
        known.busy(0.9, age=known.now - 1_800_000_000.0)
        known.now += 10
    assert known.state.node("node-a", known.now).load() is None
    assert known.state.node("node-a", known.now).cards[0].values.utilisation is None


@pytest.mark.parametrize(("age", "outcome"), [(-5.0, Outcome.TAKEN), (-5.1, Outcome.AHEAD)])
def test_a_clock_that_is_ahead_is_borne_up_to_the_skew(age: float, outcome: Outcome) -> None:
    known = Known()
    assert known.busy(0.9, age=age) is outcome
    assert bool(known.state.node("node-a", known.now).cards) is (outcome is Outcome.TAKEN)


@pytest.mark.parametrize(("age", "outcome"), [(35.0, Outcome.TAKEN), (35.1, Outcome.STALE)])
def test_a_clock_that_is_behind_is_borne_up_to_the_skew(age: float, outcome: Outcome) -> None:
    known = Known()
    assert known.busy(0.9, age=age) is outcome


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_none_is_not_taken(time: float) -> None:
    known = Known()
    assert known.busy(0.9, age=-time) in {Outcome.AHEAD, Outcome.STALE}
    assert known.state.node("node-a", known.now).cards == ()


def test_a_sample_from_far_ahead_does_not_hide_those_that_follow() -> None:
    known = Known()
    known.busy(0.9, age=-3600)
    assert known.busy(0.2) is Outcome.TAKEN


def test_samples_are_taken_again_after_our_own_clock_was_set_back() -> None:
    known = Known()
    known.busy(0.9)
    known.now -= 3600
    assert known.state.node("node-a", known.now).cards[0].values.utilisation is None
    assert known.busy(0.2) is Outcome.TAKEN
    utilisation = known.state.node("node-a", known.now).cards[0].values.utilisation
    assert utilisation is not None
    assert utilisation.value == 0.2


def test_of_two_exporters_of_one_card_the_newest_wins_in_any_order() -> None:
    for order in ((0.9, 4.0), (0.1, 2.0)), ((0.1, 2.0), (0.9, 4.0)):
        known = Known()
        for value, age in order:
            known.busy(value, age=age)
        (card,) = known.state.node("node-a", known.now).cards
        assert card.values.utilisation is not None
        assert card.values.utilisation.value == 0.1


def test_the_same_series_twice_at_one_time_is_one() -> None:
    known = Known()
    known.memory(70_000, 10_000)
    known.memory(70_000, 10_000)
    values = known.state.node("node-a", known.now).cards[0].values
    assert values.memory_used_mib is not None
    assert values.memory_used_mib.value == 70_000


def test_duplicates_that_differ_count_as_the_worse() -> None:
    known = Known()
    known.memory(10_000, 70_000)
    known.memory(70_000, 10_000)
    values = known.state.node("node-a", known.now).cards[0].values
    assert values.memory_used_mib is not None
    assert (values.memory_used_mib.value, values.memory_free_mib) == (70_000, 10_000)


def test_a_card_s_value_repeated_for_each_pod_is_not_added_up() -> None:
    known = Known()
    for pod in ("a", "b", "c"):
        known.busy(0.6, of_pod(CARD, pod))
    (card,) = known.state.node("node-a", known.now).cards
    assert card.values.utilisation is not None
    assert card.values.utilisation.value == 0.6
    assert [use.is_own for use in card.values.pods] == [False] * 3


def test_each_pod_s_own_value_is_added_up_but_never_beyond_the_card() -> None:
    known = Known()
    for pod, value in (("a", 0.5), ("b", 0.3), ("c", 0.4)):
        known.busy(value, of_pod(CARD, pod))
    (card,) = known.state.node("node-a", known.now).cards
    assert card.values.utilisation is not None
    assert card.values.utilisation.value == 1.0
    assert {use.pod.name: use.utilisation for use in card.values.pods} == {
        "a": 0.5,
        "b": 0.3,
        "c": 0.4,
    }
    assert all(use.is_own for use in card.values.pods)


def test_a_row_of_the_card_itself_comes_before_those_of_its_pods() -> None:
    known = Known()
    known.busy(0.2, of_pod(CARD, "a"))
    known.busy(0.7)
    known.busy(0.4, of_pod(CARD, "b"))
    (card,) = known.state.node("node-a", known.now).cards
    assert card.values.utilisation is not None
    assert card.values.utilisation.value == 0.7


def test_a_pod_that_left_the_card_is_told_of_no_more() -> None:
    known = Known()
    known.busy(0.9, of_pod(CARD, "a"))
    known.now += 10
    known.busy(0.1, of_pod(CARD, "b"))
    (card,) = known.state.node("node-a", known.now).cards
    assert [use.pod.name for use in card.values.pods] == ["b"]
    assert card.values.utilisation is not None
    assert card.values.utilisation.value == 0.1


def test_the_better_metric_counts_while_it_is_fresh_and_the_other_then() -> None:
    known = Known()
    known.put(Quantity.UTILISATION, 0.3, rank=0)
    known.put(Quantity.UTILISATION, 0.9, rank=1)
    first = known.state.node("node-a", known.now).cards[0].values.utilisation
    known.now += 40
    known.put(Quantity.UTILISATION, 0.9, rank=1)
    then = known.state.node("node-a", known.now).cards[0].values.utilisation
    assert first is not None
    assert then is not None
    assert (first.value, then.value) == (0.3, 0.9)


def test_free_memory_follows_from_used_and_total_and_the_other_way_round() -> None:
    known = Known()
    known.put(Quantity.MEMORY_USED, 30_000)
    board = known.state.node("node-a", known.now, board_mib=80_000).cards[0].values
    assert (board.memory_free_mib, board.memory_total_mib) == (50_000, 80_000)
    known.put(Quantity.MEMORY_FREE, 20_000, _OTHER)
    known.put(Quantity.MEMORY_TOTAL, 24_000, _OTHER)
    other = known.state.node("node-a", known.now).cards[1].values
    assert other.memory_used_mib is not None
    assert other.memory_used_mib.value == 4_000


def test_reserved_memory_is_part_of_the_total() -> None:
    known = Known()
    known.memory(30_000, 50_000)
    known.put(Quantity.MEMORY_RESERVED, 500)
    assert known.state.node("node-a", known.now).cards[0].values.memory_total_mib == 80_500


def test_a_counter_that_is_reset_counts_on_and_never_back() -> None:
    known = Known()
    for value in (100.0, 103.0, 2.0, 5.0):
        known.put(Quantity.UNCORRECTABLE_ERRORS, value)
        known.now += 10
    known.now -= 10
    assert known.state.node("node-a", known.now).cards[0].values.uncorrectable_errors == 8


def test_power_follows_from_energy_where_it_is_not_told_but_not_across_a_reset() -> None:
    known = Known()
    seen = []
    for joules in (10_000.0, 17_000.0, 300.0, 3_300.0):
        known.put(Quantity.ENERGY, joules)
        seen.append(known.state.node("node-a", known.now).cards[0].values.power_watts)
        known.now += 10
    assert seen == [None, 700.0, None, 300.0]


def test_the_last_xid_is_told_and_zero_means_none() -> None:
    known = Known()
    known.put(Quantity.XID, 0)
    assert known.state.node("node-a", known.now).cards[0].values.xid == 0
    known.now += 1
    known.put(Quantity.XID, 79)
    assert known.state.node("node-a", known.now).cards[0].values.xid == 79


def test_instances_are_told_apart_and_the_card_is_what_they_come_to() -> None:
    known = Known()
    for id_, profile, busy, used in (("1", "3g.40gb", 0.8, 30_000), ("2", "1g.10gb", 0.0, 100)):
        instance = replace(CARD, instance=id_, profile=profile)
        known.busy(busy, instance)
        known.memory(used, 1_000, instance)
        known.put(Quantity.XID, 13, instance)
        known.put(Quantity.TEMPERATURE, 60, instance)
    (card,) = known.state.node("node-a", known.now).cards
    assert [(each.id, each.profile) for each in card.instances] == [
        ("1", "3g.40gb"),
        ("2", "1g.10gb"),
    ]
    assert card.values.utilisation is not None
    assert card.values.utilisation.value == pytest.approx(0.6)
    assert card.values.memory_used_mib is not None
    assert card.values.memory_used_mib.value == 30_100
    assert card.values.memory_total_mib == 32_100
    assert (card.values.xid, card.values.temperature_celsius) == (13, 60)


def test_an_instance_that_was_unmade_does_not_make_the_card_unknown() -> None:
    known = Known()
    known.busy(0.8, replace(CARD, instance="1", profile="3g.40gb"))
    known.now += 60
    known.busy(0.2, replace(CARD, instance="2", profile="1g.10gb"))
    (card,) = known.state.node("node-a", known.now).cards
    assert [each.id for each in card.instances] == ["2"]
    assert card.values.utilisation is not None
    assert card.values.utilisation.value == pytest.approx(0.2)


def test_smoothing_is_declared_in_the_value() -> None:
    smoothing = {Quantity.UTILISATION: Smoothing(Method.EXPONENTIAL, 30.0)}
    known = Known(smoothing)
    known.busy(0.0)
    known.now += 30
    known.busy(1.0)
    value = known.state.node("node-a", known.now).cards[0].values.utilisation
    assert value is not None
    assert (value.method, value.window_seconds) == (Method.EXPONENTIAL, 30.0)
    assert value.value == pytest.approx(1 - math.exp(-1))


def test_after_a_gap_smoothing_begins_anew() -> None:
    known = Known({Quantity.UTILISATION: Smoothing(Method.EXPONENTIAL, 3600.0)})
    known.busy(1.0)
    known.now += 100
    known.busy(0.0)
    value = known.state.node("node-a", known.now).cards[0].values.utilisation
    assert value is not None
    assert value.value == 0.0


def test_what_is_told_of_the_node_as_a_whole_has_limits_of_its_own_and_comes_last() -> None:
    known = Known()
    whole = Subject("node-a")
    known.put(Quantity.MEMORY_USED, 100, whole, age=200)
    known.put(Quantity.MEMORY_TOTAL, 160_000, whole, age=200)
    view = known.state.node("node-a", known.now)
    assert (view.memory_used_mib, view.memory_total_mib, view.cards) == (100, 160_000, ())
    assert view.load() is None
    known.memory(70_000, 10_000)
    assert known.state.node("node-a", known.now).memory_used_mib == 70_000


def test_cards_that_nobody_tells_of_are_forgotten() -> None:
    known = Known()
    known.busy(0.5)
    known.state.prune(known.now + 299)
    assert known.state.nodes() == ("node-a",)
    known.state.prune(known.now + 301)
    assert known.state.nodes() == ()


def test_each_node_has_the_limits_of_its_class() -> None:
    known = Known(limits=lambda node: Freshness(90.0 if node == "node-t" else 30.0, 5.0))
    training = Subject("node-t", "GPU-9", 0)
    known.busy(0.5)
    known.busy(0.5, training)
    later = known.now + 60
    assert known.state.node("node-a", later).cards[0].values.utilisation is None
    assert known.state.node("node-t", later).cards[0].values.utilisation is not None


def test_cards_come_in_the_order_of_their_index_and_are_found_by_it_or_by_uuid() -> None:
    known = Known()
    for index in (10, 2, 0):
        known.busy(0.1, Subject("node-a", f"GPU-{index}", index))
    view = known.state.node("node-a", known.now)
    assert [card.index for card in view.cards] == [0, 2, 10]
    assert view.card(index=2) is view.card(uuid="GPU-2")
    assert view.card(uuid="GPU-7") is None
