# SPDX-License-Identifier: Apache-2.0
"""Delays after failures."""

import random

from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.backoff import Backoff

BACKOFF = Backoff(first_seconds=0.5, cap_seconds=30.0)


def longest(_low: float, high: float) -> float:
    return high


def test_the_delay_doubles_up_to_the_cap() -> None:
    assert [BACKOFF.seconds(n, longest) for n in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


@given(failures=st.integers(-1, 10**9), seed=st.integers())
def test_the_delay_is_at_least_half_and_never_above_the_cap(failures: int, seed: int) -> None:
    delay = BACKOFF.seconds(failures, random.Random(seed).uniform)  # noqa: S311 - no secret
    assert BACKOFF.seconds(failures, longest) / 2 <= delay <= 30.0


def test_replicas_part_ways() -> None:
    uniform = random.Random(7).uniform  # noqa: S311 - no secret
    assert len({BACKOFF.seconds(3, uniform) for _ in range(20)}) == 20
