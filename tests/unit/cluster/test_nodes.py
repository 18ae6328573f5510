# SPDX-License-Identifier: Apache-2.0
"""The view of a node: base units, what makes a difference, and what is shared."""

import pytest

from policies.cluster.nodes import Taint, read_node
from tests.support.cluster import node, raw_node


def test_amounts_are_in_base_units() -> None:
    found = node(allocatable={"cpu": "7910m", "memory": "1Gi", "ephemeral-storage": "10k"})
    assert found.allocatable["cpu"] == 7910
    assert found.allocatable["memory"] == 2**30
    assert found.allocatable["ephemeral-storage"] == 10_000
    assert found.allocatable["pods"] == 110
    assert found.allocatable["nvidia.com/gpu"] == 8


@pytest.mark.parametrize("amount", ["eight", "-1", None, [], True, "1K", float("nan")])
def test_an_amount_that_is_none_is_nothing(amount: object) -> None:
    assert node(allocatable={"cpu": amount}).allocatable["cpu"] == 0


def test_a_heartbeat_makes_no_difference() -> None:
    before, after = raw_node(), raw_node()
    after["metadata"]["resourceVersion"] = "2"
    after["status"]["conditions"][0]["lastHeartbeatTime"] = "2031-05-17T12:00:00Z"
    assert read_node(before) == read_node(after)
    assert (read_node(before).version, read_node(after).version) == ("1", "2")


@pytest.mark.parametrize(
    "changed",
    [
        node(labels={"zone": "a"}),
        node(allocatable={"cpu": "7"}),
        node(ready="False"),
        node(unschedulable=True),
        node(taints=[{"key": "a", "effect": "NoSchedule"}]),
    ],
)
def test_what_decides_where_pods_go_makes_a_difference(changed: object) -> None:
    assert changed != node()


def test_equal_parts_of_nodes_are_the_same_objects() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    one, other = node("n1", taints=[taint]), node("n2", taints=[taint])
    assert one.allocatable is other.allocatable
    assert one.taints[0] is other.taints[0]
    assert one.taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"),)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"metadata": 1, "spec": [], "status": "up"},
        {"metadata": {"name": 5, "labels": {"a": 1}}, "spec": {"taints": [None, {"key": 1}]}},
        {"status": {"allocatable": ["cpu"], "conditions": {"type": "Ready"}}},
    ],
)
def test_an_odd_node_is_read_all_the_same(raw: dict[str, object]) -> None:
    found = read_node(raw)
    assert (found.name, dict(found.labels), dict(found.allocatable)) == ("", {}, {})
