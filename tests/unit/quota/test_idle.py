# SPDX-License-Identifier: Apache-2.0
import pytest

from policies.quota.idle import IdleHistory, read_idle_history

HALF_HOUR = 1800


def observed(*samples: tuple[int, int], idle_after: int = HALF_HOUR) -> IdleHistory:
    history = IdleHistory(idle_after)
    for now, milli in samples:
        history.observe(now, milli)
    return history


def every_minute(history: IdleHistory, start: int, end: int, milli: int) -> None:
    for now in range(start, end + 1, 60):
        history.observe(now, milli)


def test_nothing_is_known_before_the_whole_time_was_observed() -> None:
    history = IdleHistory(HALF_HOUR)
    assert history.peak(0) is None
    every_minute(history, 0, 1740, 0)
    assert history.peak(1740) is None
    history.observe(1800, 0)
    assert history.peak(1800) == 0


def test_a_peak_is_forgotten_once_the_time_has_passed_but_not_before() -> None:
    history = IdleHistory(HALF_HOUR)
    every_minute(history, 0, 3600, 8000)
    every_minute(history, 3660, 3660 + 1740, 2000)
    assert history.peak(3660 + 1740) == 8000
    every_minute(history, 3660 + 1800, 3660 + 2100, 2000)
    assert history.peak(3660 + 2100) == 2000


def test_demand_of_a_moment_counts_for_the_whole_time() -> None:
    history = IdleHistory(HALF_HOUR)
    every_minute(history, 0, 3600, 0)
    history.observe(3601, 5000)
    history.observe(3602, 0)
    assert history.peak(3602) == 5000


def test_a_leader_that_was_away_has_not_seen_anything_stand_idle() -> None:
    history = IdleHistory(HALF_HOUR)
    every_minute(history, 0, 3600, 8000)
    history.observe(3660, 0)
    history.observe(3660 + 24 * 3600, 0)
    assert history.peak(3660 + 24 * 3600) == 8000


def test_a_clock_that_jumps_back_makes_nothing_older_or_forgotten() -> None:
    history = IdleHistory(HALF_HOUR)
    every_minute(history, 7200, 9000, 3000)
    history.observe(5400, 1000)
    assert history.peak(5400) == 3000
    every_minute(history, 5460, 5460 + 2100, 1000)
    assert history.peak(5460 + 2100) == 1000


def test_the_last_value_holds_until_the_next_observation() -> None:
    history = observed((0, 0), (60, 9000))
    every_minute(history, 120, 120 + 1800, 0)
    assert history.peak(120 + 1800) == 9000


def test_what_is_handed_on_is_what_the_next_leader_goes_on_with() -> None:
    history = IdleHistory(HALF_HOUR)
    every_minute(history, 0, 3600, 8000)
    every_minute(history, 3660, 4800, 1000)
    inherited = read_idle_history(history.to_plain(), HALF_HOUR)
    assert inherited.peak(4800) == history.peak(4800) == 8000
    for each in (history, inherited):
        every_minute(each, 4860, 4860 + 1800, 500)
    assert inherited.to_plain() == history.to_plain()
    assert inherited.peak(4860 + 1800) == history.peak(4860 + 1800)


def test_the_number_of_buckets_is_bounded() -> None:
    history = IdleHistory(HALF_HOUR)
    every_minute(history, 0, 30 * 3600, 1)
    peaks = history.to_plain()["peaks"]
    assert isinstance(peaks, list)
    assert len(peaks) <= 11
    assert len(history._peaks) <= 11


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        {},
        {"idleAfterSeconds": 60, "observedSeconds": 600, "at": 0, "last": 0, "peaks": []},
        {"idleAfterSeconds": 1800, "observedSeconds": -1, "at": 0, "last": 0, "peaks": []},
        {"idleAfterSeconds": 1800, "observedSeconds": 9e9, "at": 0, "last": 0, "peaks": []},
        {"idleAfterSeconds": 1800, "observedSeconds": 9000, "at": None, "last": 0, "peaks": []},
        {"idleAfterSeconds": 1800, "observedSeconds": 9000, "at": 0, "last": 0, "peaks": ["x"]},
        {"idleAfterSeconds": 1800, "observedSeconds": 9000, "at": 0, "last": 0, "peaks": [1] * 99},
        {"idleAfterSeconds": 1800, "observedSeconds": 9000, "at": 0, "last": True, "peaks": [1]},
    ],
)
def test_a_history_of_another_making_lends_nothing(plain: object) -> None:
    assert read_idle_history(plain, HALF_HOUR).peak(10**9) is None


def test_a_time_of_zero_lends_what_is_idle_at_once() -> None:
    history = observed((100, 3000), idle_after=0)
    assert history.peak(100) == 3000
    every_minute(history, 160, 160, 0)
    every_minute(history, 161, 161, 0)
    every_minute(history, 163, 163, 0)
    assert history.peak(163) == 0
