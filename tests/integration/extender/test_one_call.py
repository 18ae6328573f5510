# SPDX-License-Identifier: Apache-2.0
"""A scheduler that asks once about each pod: the filter leaves the one node that is best."""

from collections.abc import Iterator

import pytest

from reconciler.manifests.scheduler_config import Calls
from tests.controlplane.extender import ExtenderLaunch
from tests.integration.extender.cluster import (
    NEEDS,
    answered,
    check_packed,
    create,
    pod,
    preferring,
    shared_nodes,
    wait_bound,
)
from tests.integration.extender.conftest import Scheduled

_NODES = 40


@pytest.fixture(scope="module")
def launch() -> ExtenderLaunch:
    return ExtenderLaunch(calls=Calls.ONE)


@pytest.fixture
def cluster(scheduled: Scheduled) -> Iterator[Scheduled]:
    with shared_nodes(scheduled.control_plane, _NODES):
        yield scheduled


def test_pods_come_together_whatever_the_scheduler_would_like_and_pack_onto_their_cards(
    cluster: Scheduled,
) -> None:
    plane = cluster.control_plane
    create(plane, "t", [pod("first", mib=3000)])
    (home,) = wait_bound(plane, "t", 1).values()
    other = next(f"n{i}" for i in range(_NODES) if f"n{i}" != home)
    create(plane, "t", [pod("second", mib=3000, **preferring(other))])
    assert wait_bound(plane, "t", 2)["second"] == home

    needs = {"first": 3000, "second": 3000}
    needs |= {f"p{i}": NEEDS[i % len(NEEDS)] for i in range(150)}
    create(plane, "t", (pod(name, mib=needs[name]) for name in list(needs)[2:]))
    judged = answered(plane, "t", wait_bound(plane, "t", len(needs), seconds=60))
    check_packed(judged, needs)
    assert len(judged) < _NODES, "packed pods leave nodes whole"
