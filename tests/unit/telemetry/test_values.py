# SPDX-License-Identifier: Apache-2.0
"""Smoothing, limits of age, weights and classes: what they come to, and what they refuse."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.telemetry.classes import DEFAULT_CLASSES, INFERENCE, TRAINING, SamplingClass, class_of
from policies.telemetry.counters import Growth
from policies.telemetry.freshness import Freshness
from policies.telemetry.load import LoadWeights, load
from policies.telemetry.smoothing import Method, Smoothing, smoother

_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(_VALUES, st.sampled_from(list(Method)))
def test_a_smoothed_value_lies_between_the_smallest_and_the_largest(
    values: list[float], method: Method
) -> None:
    made = smoother(Smoothing(method, 60.0))
    for second, value in enumerate(values[:-1]):
        made.add(second, value)
    smoothed = made.with_newest(len(values), values[-1])
    assert min(values) - 1e-9 <= smoothed <= max(values) + 1e-9


def test_exponential_smoothing_goes_by_time_and_not_by_the_number_of_samples() -> None:
    often, seldom = (smoother(Smoothing(Method.EXPONENTIAL, 30.0)) for _ in range(2))
    often.add(0, 0.0)
    seldom.add(0, 0.0)
    for second in range(1, 60):
        often.add(second, 1.0)
    expected = 1 - math.exp(-2)
    assert often.with_newest(60, 1.0) == pytest.approx(expected)
    assert seldom.with_newest(60, 1.0) == pytest.approx(expected)


def test_a_percentile_is_of_the_window_only() -> None:
    made = smoother(Smoothing(Method.PERCENTILE, 100.0, percentile=90.0))
    made.add(0, 1.0)
    for second in range(100, 190, 10):
        made.add(second, second / 1000)
    assert made.with_newest(190, 0.19) == 0.18
    assert made.with_newest(1000, 0.5) == 0.5


def test_a_window_holds_a_bounded_number_of_points() -> None:
    made = smoother(Smoothing(Method.PERCENTILE, 1e9, percentile=100.0))
    made.add(0, 1.0)
    for second in range(1, 3000):
        made.add(second, 0.1)
    assert made.with_newest(3000, 0.1) == 0.1


@pytest.mark.parametrize(
    ("method", "window", "percentile"),
    [
        (Method.EXPONENTIAL, 0.0, 95.0),
        (Method.PERCENTILE, -1.0, 95.0),
        (Method.PERCENTILE, math.nan, 95.0),
        (Method.PERCENTILE, math.inf, 95.0),
        (Method.PERCENTILE, 60.0, 0.0),
        (Method.PERCENTILE, 60.0, 101.0),
    ],
)
def test_smoothing_that_makes_no_sense_is_refused(
    method: Method, window: float, percentile: float
) -> None:
    with pytest.raises(ValueError, match=r"above 0"):
        Smoothing(method, window, percentile)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=20))
def test_a_counter_s_growth_never_falls(values: list[float]) -> None:
    growth = Growth(0, values[0])
    for second, value in enumerate(values[1:], start=1):
        then = growth.then(second, value)
        assert then.increase >= growth.increase
        assert then.rate is None or then.rate >= 0
        growth = then


def test_a_counter_s_value_of_the_same_time_changes_nothing() -> None:
    growth = Growth(5, 10.0)
    assert growth.then(5, 20.0) is growth
    assert growth.then(4, 20.0) is growth


@pytest.mark.parametrize(("age", "skew"), [(0, 5), (-1, 5), (30, -1), (math.nan, 5)])
def test_limits_that_nothing_keeps_are_refused(age: float, skew: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Freshness(age, skew)


@pytest.mark.parametrize(
    ("utilisation", "memory"), [(0.7, 0.4), (1.2, -0.2), (math.nan, 0.3), (0.0, 0.0)]
)
def test_weights_add_up_to_one(utilisation: float, memory: float) -> None:
    with pytest.raises(ValueError, match="together 1"):
        LoadWeights(utilisation, memory)


def test_a_part_that_does_not_count_may_be_unknown() -> None:
    assert load(0.5, None, None, LoadWeights(1.0, 0.0)) == 0.5
    assert load(None, 50, 100, LoadWeights(0.0, 1.0)) == 0.5


@pytest.mark.parametrize("total", [None, 0, 0.0])
def test_load_without_a_total_is_unknown(total: float | None) -> None:
    assert load(0.5, 10.0, total) is None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, TRAINING),
        ({"nvidia.com/gpu.sharing-strategy": "mps"}, INFERENCE),
        ({"nvidia.com/gpu.sharing-strategy": "none"}, TRAINING),
        ({"sluice.dev/sampling": "inference"}, INFERENCE),
        (
            {"sluice.dev/sampling": "training", "nvidia.com/gpu.sharing-strategy": "mps"},
            TRAINING,
        ),
        ({"sluice.dev/sampling": "unheard-of"}, TRAINING),
    ],
)
def test_a_node_s_label_names_its_class_and_else_its_sharing_does(
    labels: dict[str, str], expected: SamplingClass
) -> None:
    assert class_of(labels, DEFAULT_CLASSES) is expected


def test_an_age_limit_leaves_room_for_a_sample_that_is_lost() -> None:
    assert INFERENCE.freshness(5.0) == Freshness(30.0, 5.0)
    assert TRAINING.freshness(5.0) == Freshness(90.0, 5.0)
    assert SamplingClass("own", 10.0, 25.0).freshness(1.0) == Freshness(25.0, 1.0)
    with pytest.raises(ValueError, match="sampling class own"):
        SamplingClass("own", 0.0)
