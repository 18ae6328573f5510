# SPDX-License-Identifier: Apache-2.0
"""A scheduler that asks once about each pod: the filter leaves the one node that is best."""

from collections.abc import Iterator

import pytest

from reconciler.manifests.scheduler_config import Calls
from tests.controlplane import nodes
from tests.controlplane.extender import ExtenderLaunch
from tests.integration.extender.cluster import (
    answered,
    clear,
    create,
    packs,
    pod,
    preferring,
    wait_bound,
)
from tests.integration.extender.conftest import Scheduled

_CARDS, _SHARES, _NODES = 2, 4, 40
_NEEDS = (20_000, 12_000, 9_000, 6_000, 3_000)


@pytest.fixture(scope="module")
def launch() -> ExtenderLaunch:
    return ExtenderLaunch(calls=Calls.ONE)


@pytest.fixture
def cluster(scheduled: Scheduled) -> Iterator[Scheduled]:
    plane = scheduled.control_plane
    plane.create_namespace("t")
    plane.create_nodes(
        nodes.time_sliced(f"n{i}", nodes.L40S, count=_CARDS, replicas=_SHARES)
        for i in range(_NODES)
    )
    yield scheduled
    clear(plane, "t")


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
    needs |= {f"p{i}": _NEEDS[i % len(_NEEDS)] for i in range(150)}
    create(plane, "t", (pod(name, mib=needs[name]) for name in list(needs)[2:]))
    judged = answered(plane, "t", wait_bound(plane, "t", len(needs), seconds=60))
    assert judged, "the extender was asked for nothing"
    for node, names in judged.items():
        mine = [needs[name] for name in names]
        assert packs(mine, _CARDS, nodes.L40S.memory_mib, _SHARES), (node, mine)
    assert len(judged) < _NODES, "packed pods leave nodes whole"
