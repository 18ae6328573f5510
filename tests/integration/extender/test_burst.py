# SPDX-License-Identifier: Apache-2.0
"""Bursts onto many nodes, with the extender alive, killed in the middle, and back again."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.extender.cluster import (
    NEEDS,
    answered,
    check_packed,
    create,
    pod,
    shared_nodes,
    unasked,
    wait_bound,
)
from tests.integration.extender.conftest import Scheduled

pytestmark = pytest.mark.timeout(240)

_NODES = 100


@pytest.fixture
def cluster(scheduled: Scheduled) -> Iterator[Scheduled]:
    """A hundred nodes of two cards, and a namespace `t`, emptied after the test."""
    with shared_nodes(scheduled.control_plane, _NODES):
        yield scheduled


def test_at_every_moment_of_a_burst_the_memory_of_each_nodes_pods_packs_onto_its_cards(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    needs = {f"p{i}": NEEDS[i % len(NEEDS)] for i in range(500)}
    create(plane, "t", (pod(name, mib=mib) for name, mib in needs.items()))
    bound: dict[str, str] = {}
    judged: Mapping[str, list[str]] = {}
    while len(bound) < len(needs):
        bound = dict(wait_bound(plane, "t", min(len(bound) + 50, len(needs)), seconds=60))
        judged = answered(plane, "t", bound)
        check_packed(judged, needs)
    assert len(judged) < _NODES, "packed pods leave nodes whole"


def test_an_extender_that_is_killed_in_the_middle_of_a_burst_stops_no_pod(
    cluster: Scheduled,
) -> None:
    plane, extender = cluster.control_plane, cluster.extender
    pods = [pod(f"q{i}") for i in range(400)]
    with ThreadPoolExecutor(1) as threads:
        # kubectl creates one after the other: they are bound while others are still to come.
        creating = threads.submit(create, plane, "t", pods)
        bound = wait_bound(plane, "t", 40, seconds=60)
        extender.kill()
        creating.result()
    assert len(bound) < 400, "it was killed too late to show anything"
    try:
        wait_bound(plane, "t", 400, seconds=60)
        assert unasked(plane, "t"), "it was not missed"
    finally:
        extender.start()
    create(plane, "t", [pod("later", mib=40_000)])
    assert "later" in wait_bound(plane, "t", 401)
