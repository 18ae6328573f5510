# SPDX-License-Identifier: Apache-2.0
"""From what containers wrote to whole GPUs, with the one fault told of each bad amount."""

from typing import Any

import pytest

from policies.model.reasons import Reason
from policies.pod.asked import MAX_DEVICES, read_asked
from policies.pod.defaulting import defaulted
from policies.pod.view import ContainerKind, read_pod
from tests.support.builders import GPU, Json, catalog, container, mutate, pod


def _read(found: Json) -> tuple[list[dict[str, int]], list[str]]:
    asked, violations = read_asked(read_pod(found, catalog()))
    return [dict(a.counts) for a in asked], [str(v) for v in violations]


def _asking(**resources: Any) -> Json:
    return container(resources={key: {GPU: amount} for key, amount in resources.items()})


@pytest.mark.parametrize(
    "resources",
    [
        {"limits": "2"},
        {"limits": "2", "requests": "2"},
        {"limits": 2, "requests": "2.0"},
        {"limits": "2", "requests": None},
    ],
)
def test_a_limit_alone_is_the_request_too(resources: Json) -> None:
    assert _read(pod(_asking(**resources))) == ([{GPU: 2}], [])


@pytest.mark.parametrize(
    ("resources", "fault"),
    [
        ({"requests": "1"}, "is in requests but not in limits: write it under limits"),
        ({"requests": "0"}, "is in requests but not in limits: write it under limits"),
        ({"limits": None, "requests": "1"}, "is in requests but not in limits"),
        ({"limits": "2", "requests": "1"}, "has request 1 and limit 2: they must be equal"),
        ({"limits": "500m"}, "'500m' must be an integer: ask for 1, the policy gives the share"),
        ({"limits": 0.5}, "0.5 must be an integer"),
        ({"limits": "1500m"}, "'1500m' must be an integer"),
        ({"limits": "-3", "requests": "-3"}, "'-3' must not be negative"),
        ({"limits": "1K"}, "'1K' is not a quantity"),
        ({"limits": True}, "True is not a quantity"),
        ({"limits": ["1"]}, "['1'] is not a quantity"),
        ({"limits": "1", "requests": "x"}, "'x' is not a quantity"),
        ({"limits": 2**63 - 1}, "9223372036854775807 is more than 100000, the most accepted"),
        ({"limits": "1M"}, "'1M' is more than 100000"),
        ({"limits": str(MAX_DEVICES + 1)}, "'100001' is more than 100000"),
    ],
)
def test_a_bad_amount_is_told_with_container_name_and_value(resources: Json, fault: str) -> None:
    counts, faults = _read(pod(_asking(**resources)))

    assert counts == [{}]
    assert len(faults) == 1
    assert f"container main: {GPU} {fault}" in faults[0]


def test_what_a_value_shows_is_cut_and_stays_on_one_line() -> None:
    _, faults = _read(pod(_asking(limits="\n" * 1000)))

    assert len(faults[0]) < 200
    assert "\n" not in faults[0]


def test_an_odd_amount_beside_a_good_one_does_not_hide_it() -> None:
    found = container(resources={"limits": {GPU: "1", "nvidia.com/mig-1g.10gb": "x"}})
    counts, faults = _read(pod(found))

    assert counts == [{GPU: 1}]
    assert len(faults) == 1


def test_a_debug_container_cannot_have_resources() -> None:
    _, faults = _read(pod(container(), ephemeralContainers=[container("dbg", "1")]))

    assert "a debug container cannot have resources" in faults[0]


def test_containers_are_told_apart_by_section_and_restart_policy() -> None:
    view = read_pod(
        pod(
            container("app"),
            initContainers=[
                container("init"),
                container("sidecar", restartPolicy="Always"),
                container("odd", restartPolicy="Never"),
            ],
            ephemeralContainers=[container("dbg")],
        ),
        catalog(),
    )

    assert [(c.name, c.kind) for c in view.containers] == [
        ("init", ContainerKind.INIT),
        ("sidecar", ContainerKind.SIDECAR),
        ("odd", ContainerKind.INIT),
        ("app", ContainerKind.APP),
        ("dbg", ContainerKind.EPHEMERAL),
    ]


@pytest.mark.parametrize("resources", [None, {}, {"limits": None}, {"limits": {"cpu": "1"}}])
def test_a_container_without_gpus_asks_nothing(resources: Any) -> None:
    assert _read(pod(container(resources=resources))) == ([], [])


def test_manifests_from_files_are_defaulted_as_the_api_server_does() -> None:
    found: Any = defaulted(
        pod(
            container("a", resources={"limits": {GPU: 1, "cpu": "1"}, "requests": {"cpu": "500m"}}),
            container("b", resources={"requests": {GPU: 1}}),
            container("c"),
            initContainers=[container("d", resources={"limits": {GPU: 2}})],
        ),
        "vision",
    )

    assert found["metadata"]["namespace"] == "vision"
    assert [c.get("resources") for c in found["spec"]["containers"]] == [
        {"limits": {GPU: "1", "cpu": "1"}, "requests": {GPU: "1", "cpu": "500m"}},
        {"requests": {GPU: "1"}},
        None,
    ]
    assert found["spec"]["initContainers"][0]["resources"]["requests"] == {GPU: "2"}


def test_a_pod_of_too_many_containers_is_refused_unread() -> None:
    many = [container(f"c{index}") for index in range(500)]

    assert mutate(pod(*many)).allowed
    decision = mutate(pod(*many, {"name": 7}))
    assert decision.reasons == (Reason.TOO_MANY_CONTAINERS,)
    assert "501 containers; at most 500 are decided on" in decision.message
    init = mutate(pod(*many, initContainers=[container("one-more")]))
    assert init.reasons == (Reason.TOO_MANY_CONTAINERS,)


def test_a_pod_that_names_gpus_without_end_is_refused_before_each_is_looked_up() -> None:
    names = {f"nvidia.com/gpu-{index}": "1" for index in range(600)}
    two = pod(
        container("a", resources={"limits": names}), container("b", resources={"limits": names})
    )
    decision = mutate(two)

    assert decision.reasons == (Reason.UNKNOWN_GPU_RESOURCE,)
    assert decision.message.endswith("1200 GPU resources are named; at most 1000 are decided on")
    assert decision.asked == {}


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"metadata": None, "spec": None},
        {"spec": {"containers": None}},
        {"spec": {"containers": []}},
    ],
)
def test_an_object_that_holds_nothing_is_allowed_unchanged(found: Json) -> None:
    decision = mutate(found, namespace="chat")

    assert decision.allowed
    assert decision.patch == ()


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ({"metadata": []}, "metadata is not an object"),
        ({"spec": "x"}, "spec is not an object"),
        ({"spec": {"containers": {}}}, "containers is not a list of objects"),
        ({"spec": {"containers": ["a"]}}, "containers is not a list of objects"),
        ({"spec": {"containers": [{"name": 1}]}}, "name is not a string"),
        ({"spec": {"containers": [{"resources": {"limits": [GPU]}}]}}, "limits is not an object"),
        ({"metadata": {"annotations": {"a": 1}}}, "annotations is not a map of strings"),
    ],
)
def test_a_field_of_a_wrong_type_is_refused_by_its_name(found: Json, fault: str) -> None:
    decision = mutate(found, namespace="chat")

    assert decision.reasons == (Reason.MALFORMED_OBJECT,)
    assert decision.message == f"sluice: [MalformedObject] {fault}"
