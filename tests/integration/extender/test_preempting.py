# SPDX-License-Identifier: Apache-2.0
"""Preemption by names alone (`nodeCacheCapable: true`), as the real scheduler asks about it."""

from collections.abc import Iterator

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.integration.extender.cluster import (
    SHARED,
    WHOLE,
    Json,
    clear,
    create,
    pod,
    wait_bound,
    wait_refused,
    where,
)
from tests.integration.extender.conftest import Scheduled

pytestmark = pytest.mark.timeout(120)

_CLASSES = {"least": 5, "low": 10, "middle": 20, "high": 1000}
_CARD = 2
"""The shares of a card that one pod takes together."""


@pytest.fixture
def classes(scheduled: Scheduled) -> Iterator[ControlPlane]:
    """A namespace `t`, and priorities."""
    found = scheduled.control_plane
    found.create_namespace("t")
    for name, value in _CLASSES.items():
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        found.kubectl(
            "create", "--filename=-", stdin={**kind, "metadata": {"name": name}, "value": value}
        )
    yield found
    clear(found, "t")
    found.kubectl("delete", "priorityclass", *_CLASSES)


def test_inference_goes_and_training_with_cards_of_its_own_never_does(
    classes: ControlPlane,
) -> None:
    plane = classes
    plane.create_nodes(nodes.whole(f"n{number}", nodes.A100, count=1) for number in range(2))
    for work in ("training", "inference"):
        create(plane, "t", [_working(work, work, "low", WHOLE, 1)])
    wait_bound(plane, "t", 2)
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


def test_inference_goes_before_training_and_what_a_budget_guards_goes_last(
    classes: ControlPlane,
) -> None:
    plane = classes
    plane.create_nodes(nodes.time_sliced(f"n{i}", count=1, replicas=_CARD) for i in range(3))
    # By itself the scheduler would take training before, by its lower priority.
    guarded = _working("guarded", "inference", "least")
    guarded["metadata"]["labels"]["app"] = "guarded"
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded", "namespace": "t"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    plane.kubectl("create", "--filename=-", stdin=budget)
    train = _working("train", "training", "low")
    serve = _working("serve", "inference", "middle")
    create(plane, "t", [guarded, train, serve])
    before = wait_bound(plane, "t", 3)
    for number, victim in enumerate(("serve", "train", "guarded")):
        urgent = f"urgent{number}"
        create(plane, "t", [pod(urgent, count=_CARD, priorityClassName="high")])
        plane.kubectl(
            *("wait", f"pod/{urgent}", "-n", "t"),
            *("--for=condition=PodScheduled", "--timeout=30s"),
        )
        assert where(plane, "t")[urgent] == before[victim], (number, victim)


def _working(
    name: str, work: str, priority: str, resource: str = SHARED, count: int = _CARD
) -> Json:
    """Return a pod that says what it does, and goes at once when it has to."""
    item = pod(name, resource, count, priorityClassName=priority, terminationGracePeriodSeconds=0)
    item["metadata"]["labels"] = {"sluice.dev/work": work}
    return item
