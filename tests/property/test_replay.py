# SPDX-License-Identifier: Apache-2.0
"""Traces of pods that come and go, replayed with releases and reclaim in simulated time."""

import random

import pytest

from tests.prove.openb import TraceNode, figures, make_replay
from tests.prove.replay import TracePod
from tests.prove.scene import SHARED, WHOLE

_NODES = [TraceNode(f"node-{number:02}", 4) for number in range(12)]
_LS = ("ls-00", "ls-01", "ls-02", "ls-03")
_BE = ("be-00", "be-01")
_OWED_SECONDS = 1800


def trace(seed: int) -> list[TracePod]:
    """Best effort fills the cluster for long; then those with a guarantee come, and go."""
    chance = random.Random(seed)  # noqa: S311 - the same trace in every run

    def pod(tenants: tuple[str, ...], begin: int, seconds: int) -> TracePod:
        resource, most = chance.choice([(SHARED, 10), (SHARED, 5), (WHOLE, 2)])
        created, lasts = begin + chance.randrange(3600), chance.randrange(60, seconds)
        return TracePod(created, lasts, chance.choice(tenants), resource, chance.randint(1, most))

    best_effort = [pod(_BE, 3600, 20_000) for _ in range(90)]
    sensitive = [pod(_LS, 7200, 3000) for _ in range(90)]
    return sorted([*best_effort, *sensitive], key=lambda each: each.created)


@pytest.mark.parametrize("seed", range(4))
def test_who_has_a_guarantee_gets_it_back_from_who_borrows_and_no_law_is_broken(seed: int) -> None:
    replay = make_replay(_NODES, trace(seed))
    replay.run()
    assert replay.findings() == []
    found = figures(replay, [], 0.0)
    # It must have been tight, or nothing is proven.
    assert replay.evicted
    assert found["never_released"] == 0
    assert found["released"] == found["pods"] == 180
    # A guarantee is back after a notice, but where others hold the nodes by theirs.
    assert max(replay.owed.of("ls")) <= _OWED_SECONDS


def test_the_shares_of_a_trace_decide_how_many_nodes_are_cut_into_tenths() -> None:
    halves = [TracePod(0, 1, "ls-00", SHARED, 10), TracePod(0, 1, "ls-00", WHOLE, 1)]
    devices = make_replay(_NODES, halves).cluster.world.devices
    assert devices == {SHARED: 240, WHOLE: 24}
