# SPDX-License-Identifier: Apache-2.0
"""What a pod takes from its node: kube-scheduler's sums, of all resources."""

from typing import Any

import pytest

from policies.cluster.demand import read_requests
from policies.cluster.reading import MOST
from tests.support.builders import GPU, Json


def _container(name: str = "main", limits: Json | None = None, **requests: Any) -> Json:
    named = {key.replace("gpu", GPU): value for key, value in requests.items()}
    resources = {"requests": named, **({"limits": limits} if limits else {})}
    return {"name": name, "resources": resources}


def _sidecar(name: str, **requests: Any) -> Json:
    return {**_container(name, **requests), "restartPolicy": "Always"}


def _requests(*containers: Json, status: object = None, **spec: Any) -> dict[str, int]:
    found = {"spec": {"containers": list(containers), **spec}, "status": status}
    return dict(read_requests(found))


def test_containers_add_up_in_base_units_and_the_pod_counts_as_one() -> None:
    found = _requests(
        _container("a", cpu="1500m", memory="1Gi", gpu="1"), _container("b", cpu=1, gpu="2")
    )
    assert found == {"cpu": 2500, "memory": 2**30, GPU: 3, "pods": 1}


def test_a_pod_that_asks_nothing_takes_a_place_of_a_pod() -> None:
    assert _requests({"name": "main"}) == {"pods": 1}
    assert _requests(_container(cpu="0", gpu=0)) == {"pods": 1}


def test_parts_of_a_unit_are_rounded_up_for_each_container() -> None:
    assert _requests(_container("a", cpu="100u", memory="1m"), _container("b", cpu="100u")) == {
        "cpu": 2,
        "memory": 1,
        "pods": 1,
    }


def test_a_limit_alone_is_the_request_too() -> None:
    found = _requests(_container(limits={"cpu": "2", GPU: "1"}, cpu="1"))
    assert found == {"cpu": 1000, GPU: 1, "pods": 1}


def test_init_containers_count_where_they_need_more_with_the_sidecars_before_them() -> None:
    found = _requests(
        _container("app", cpu="2", gpu="1"),
        initContainers=[
            _container("first", cpu="4"),
            _sidecar("side", cpu="1"),
            _container("last", cpu="3", memory="5", gpu="1"),
        ],
    )
    assert found == {"cpu": 4000, "memory": 5, GPU: 1, "pods": 1}


def test_overhead_comes_on_top() -> None:
    found = _requests(_container(cpu="1"), overhead={"cpu": "250m", "memory": "10"})
    assert found == {"cpu": 1250, "memory": 10, "pods": 1}


def test_requests_of_the_pod_hold_instead_of_its_containers_for_what_they_may_name() -> None:
    found = _requests(
        _container(cpu="1", memory="10", gpu="2"),
        resources={"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", GPU: "9"}},
        overhead={"cpu": "1"},
    )
    assert found == {"cpu": 4000, "memory": 10, "hugepages-2Mi": 4 * 2**20, GPU: 2, "pods": 1}


def test_a_limit_of_the_pod_is_a_request_of_what_no_container_asks() -> None:
    found = _requests(_container(cpu="1"), resources={"limits": {"cpu": "3", "memory": "7"}})
    assert found == {"cpu": 1000, "memory": 7, "pods": 1}


@pytest.mark.parametrize("amount", ["much", "-1", None, [], True, "1K", "1e30"])
def test_an_amount_that_cannot_be_read_is_more_than_any_node_has(amount: object) -> None:
    assert _requests(_container(cpu=amount))["cpu"] == MOST


def _status(name: str = "main", **parts: Any) -> Json:
    return {"containerStatuses": [{"name": name, **parts}]}


def test_while_a_pod_shrinks_it_takes_what_is_still_in_force() -> None:
    status = _status(allocatedResources={"cpu": "1"}, resources={"requests": {"cpu": "4"}})
    assert _requests(_container(cpu="1", gpu="1"), status=status) == {
        "cpu": 4000,
        GPU: 1,
        "pods": 1,
    }


def test_while_a_pod_grows_it_takes_what_is_written() -> None:
    status = _status(allocatedResources={"cpu": "1"}, resources={"requests": {"cpu": "1"}})
    assert _requests(_container(cpu="4"), status=status)["cpu"] == 4000


def test_a_resize_that_the_node_cannot_grant_takes_what_is_granted() -> None:
    status = _status(allocatedResources={"cpu": "2"}, resources={"requests": {"cpu": "1"}})
    status["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert _requests(_container(cpu="64", gpu="1"), _container("b", cpu="1"), status=status) == {
        "cpu": 3000,
        GPU: 1,
        "pods": 1,
    }


def test_a_status_that_says_what_is_written_changes_nothing() -> None:
    asked = {"cpu": "1", GPU: "1"}
    status = _status(allocatedResources=asked, resources={"requests": asked})
    assert _requests(_container(cpu="1", gpu="1"), status=status) == {
        "cpu": 1000,
        GPU: 1,
        "pods": 1,
    }


def test_the_status_of_the_pod_counts_where_the_pod_itself_asks() -> None:
    status = {
        **_status(allocatedResources={"cpu": "9", "memory": "9"}),
        "allocatedResources": {"cpu": "5"},
        "resources": {"requests": {"cpu": "4"}},
    }
    found = _requests(
        _container(cpu="1", memory="1"),
        status=status,
        resources={"requests": {"cpu": "2"}},
        overhead={"cpu": "1"},
    )
    assert found == {"cpu": 5000, "memory": 9, "pods": 1}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"spec": None, "status": 3},
        {"spec": {"containers": {"name": "a"}, "initContainers": [None, 3]}},
        {"spec": {"containers": [{"resources": []}], "overhead": "much", "resources": 1}},
        {"spec": {"containers": [{}]}, "status": {"containerStatuses": [5], "conditions": "x"}},
    ],
)
def test_an_odd_pod_is_read_all_the_same(pod: dict[str, object]) -> None:
    assert read_requests(pod) == {"pods": 1}
