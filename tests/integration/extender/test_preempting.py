# SPDX-License-Identifier: Apache-2.0
"""Preemption by names alone (`nodeCacheCapable: true`), as the real scheduler asks about it."""

from collections.abc import Iterator

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.integration.extender.cluster import (
    WHOLE,
    clear,
    create,
    pod,
    wait_bound,
    wait_refused,
    where,
)
from tests.integration.extender.conftest import Scheduled

pytestmark = pytest.mark.timeout(120)

_CLASSES = {"low": 10, "high": 1000}


@pytest.fixture
def plane(scheduled: Scheduled) -> Iterator[ControlPlane]:
    """Two nodes of one card: inference is on one, training on the other."""
    found = scheduled.control_plane
    found.create_namespace("t")
    for name, value in _CLASSES.items():
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        found.kubectl(
            "create", "--filename=-", stdin={**kind, "metadata": {"name": name}, "value": value}
        )
    found.create_nodes(nodes.whole(f"n{number}", nodes.A100, count=1) for number in range(2))
    for work in ("training", "inference"):
        item = pod(work, WHOLE, priorityClassName="low", terminationGracePeriodSeconds=0)
        item["metadata"]["labels"] = {"sluice.dev/work": work}
        create(found, "t", [item])
    wait_bound(found, "t", 2)
    yield found
    clear(found, "t")
    found.kubectl("delete", "priorityclass", *_CLASSES)


def test_inference_goes_and_training_with_cards_of_its_own_never_does(plane: ControlPlane) -> None:
    before = where(plane, "t")
    create(plane, "t", [pod("urgent", WHOLE, priorityClassName="high")])
    plane.kubectl("wait", "pod/urgent", "-n", "t", "--for=condition=PodScheduled", "--timeout=30s")
    assert where(plane, "t") == {
        "training": before["training"],
        "urgent": before["inference"],
    }
    create(plane, "t", [pod("more-urgent", WHOLE, priorityClassName="high")])
    told = wait_refused(plane, "t", "more-urgent")
    assert "no candidate node for preemption" in told
    later = plane.get("pods", "-n", "t")["items"]
    assert {item["metadata"]["name"] for item in later} == {"training", "urgent", "more-urgent"}
    assert not any("deletionTimestamp" in item["metadata"] for item in later)
