# SPDX-License-Identifier: Apache-2.0
import pytest

from reconciler.kube.server_clock import ServerClock

_DATE = "Sun, 29 Nov 2026 21:39:20 GMT"
_SECONDS = 1795988360.0


def test_the_time_is_unknown_before_the_first_answer() -> None:
    assert ServerClock().now(5.0) is None


def test_the_servers_time_goes_on_with_the_monotonic_clock() -> None:
    clock = ServerClock()
    clock.observe(_DATE, 100.0)
    assert clock.now(107.5) == pytest.approx(_SECONDS + 7.5)


def test_a_later_header_corrects_the_time_once_the_last_is_old() -> None:
    clock = ServerClock()
    clock.observe(_DATE, 100.0)
    clock.observe("Sun, 29 Nov 2026 21:49:20 GMT", 101.0)
    assert clock.now(101.0) == pytest.approx(_SECONDS + 1)
    clock.observe("Sun, 29 Nov 2026 21:49:20 GMT", 111.0)
    assert clock.now(111.0) == pytest.approx(_SECONDS + 600)


@pytest.mark.parametrize("date", [None, "", "yesterday", "Sun, 99 Nov 2026 21:39:20 GMT"])
def test_a_header_that_is_no_date_changes_nothing(date: str | None) -> None:
    clock = ServerClock()
    clock.observe(_DATE, 100.0)
    clock.observe(date, 200.0)
    assert clock.now(200.0) == pytest.approx(_SECONDS + 100)
