# SPDX-License-Identifier: Apache-2.0
"""What is kept of a raw pod, and that alike pods share it."""

from typing import Any

import pytest

from policies.model.keys import (
    CHARGE,
    EVICTION_COST,
    GANG_LABEL,
    GANG_SIZE,
    MIRROR_ANNOTATION,
    NOTICE,
    QUOTA_GATE,
    REASON,
)
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from policies.quota.notice import write_notice
from policies.quota.pods import Gang, Notice, Phase, QuotaPod
from reconciler.quota.view import PodViews
from tests.support.builders import GPU, SHARED, Json, container, pod, rewritten

GATE = {"name": QUOTA_GATE}
CREATED = 1_936_785_600


def stored(raw: Json, number: int = 1, **status: Any) -> Json:
    """Return a pod with what the API server adds to each."""
    metadata = {
        **raw["metadata"],
        "name": f"llm-{number}",
        "uid": f"uid-{number}",
        "resourceVersion": str(100 + number),
        "creationTimestamp": "2031-05-17T12:00:00Z",
    }
    return {**raw, "metadata": metadata, "status": status}


def viewed(raw: Json, **status: Any) -> QuotaPod:
    view = PodViews().view(stored(raw, **status))
    assert view is not None
    return view


def test_a_gated_pod_is_kept_with_what_decides_on_it() -> None:
    owner = {"kind": "ReplicaSet", "name": "llm", "uid": "rs", "controller": True}
    raw = rewritten(pod(ownerReferences=[{"kind": "Node", "name": "n"}, owner], priority=7))

    view = viewed(raw)

    assert (view.namespace, view.name, view.uid, view.version) == ("chat", "llm-1", "uid-1", "101")
    assert (view.created_at, view.deleted_at, view.priority) == (CREATED, None, 7)
    assert (view.owner, view.owner_uid) == ("ReplicaSet/llm", "rs")
    assert view.phase is Phase.WAITING
    assert view.is_waiting
    assert view.gated_once
    assert view.shape.gpus == {SHARED: 1}
    assert view.shape.profiles == ("slice-4",)
    assert view.labels["state.sluice.dev/tenant"] == "chat"


@pytest.mark.parametrize(
    ("gates", "phase", "expected"),
    [
        ([GATE], "Pending", Phase.WAITING),
        ([GATE, {"name": "kueue.x-k8s.io/admission"}], "Pending", Phase.HELD),
        ([{"name": "kueue.x-k8s.io/admission"}], "Pending", Phase.LIVE),
        ([], "Running", Phase.LIVE),
        ([], "Succeeded", Phase.ENDED),
        ([], "Failed", Phase.ENDED),
    ],
)
def test_gates_and_phase_say_how_far_a_pod_is(
    gates: list[Json], phase: str, expected: Phase
) -> None:
    assert viewed(pod(schedulingGates=gates), phase=phase).phase is expected


def test_pods_without_gpus_are_kept_for_their_room_only_and_not_once_they_have_ended() -> None:
    amounts = {"requests": {"cpu": "500m"}}
    raw = pod(container(resources=amounts), labels={"app": "web"}, nodeSelector={"zone": "a"})
    raw["spec"]["nodeName"] = "node-1"

    view = viewed(raw, phase="Running")

    assert dict(view.shape.fit.requests) == {"cpu": 500, "pods": 1}
    assert view.node == "node-1"
    assert not view.shape.gpus
    assert not view.labels
    assert not view.holds_quota
    assert PodViews().view(stored(raw, phase="Succeeded")) is None


def test_a_gated_pod_without_gpus_waits_all_the_same() -> None:
    view = viewed(pod(container(), schedulingGates=[GATE]))

    assert view.is_waiting
    assert view.holds_quota


def test_what_only_sluice_writes_is_read_back() -> None:
    charge = ChargeRecord("chat", "h100", Amount({4: 1}, 5, {SHARED: 1}), "g", 9, borrowed=True)
    notice = Notice("vision", "guarantee", 10, 20)
    annotations = {
        CHARGE: charge.to_annotation(),
        NOTICE: write_notice(notice),
        REASON: "waits for 2 GPUs",
        EVICTION_COST: "-5",
        MIRROR_ANNOTATION: "hash",
        "karpenter.sh/do-not-disrupt": "true",
    }

    view = viewed(pod(annotations=annotations), phase="Running")

    assert (view.charge, view.notice, view.reason) == (charge, notice, "waits for 2 GPUs")
    assert (view.eviction_cost, view.mirror, view.do_not_disrupt) == (-5, True, True)
    assert view.started_at == 9


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"v":2}', "no JSON"])
def test_a_charge_that_cannot_be_read_is_none(text: str) -> None:
    assert viewed(pod(annotations={CHARGE: text})).charge is None


@pytest.mark.parametrize(
    ("size", "expected"),
    [("8", 8), ("", None), ("0", None), ("-1", None), ("8.0", None), ("٣", None), ("9" * 30, None)],
)
def test_a_gangs_size_is_a_whole_number_or_not_known(size: str, expected: int | None) -> None:
    raw = pod(labels={GANG_LABEL: "train"}, annotations={GANG_SIZE: size})

    assert viewed(raw).gang == Gang("train", expected)


def test_a_pod_group_is_a_gang_whose_size_stands_elsewhere() -> None:
    group = {"podGroupName": "train"}

    assert viewed(pod(schedulingGroup=group)).gang == Gang("train", None, is_pod_group=True)
    labelled = pod(schedulingGroup=group, labels={GANG_LABEL: "mine"})
    assert viewed(labelled).gang == Gang("mine", None)
    assert viewed(pod(schedulingGroup={"podGroupName": 3})).gang is None


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2031-05-17T12:00:00Z", CREATED),
        ("2031-05-17T14:00:00+02:00", CREATED),
        ("some day", 253402300799),
        (None, None),
    ],
)
def test_a_deletion_timestamp_is_unix_seconds(at: str | None, expected: int | None) -> None:
    raw = pod()
    raw["metadata"]["deletionTimestamp"] = at

    assert viewed(raw).deleted_at == expected


def test_alike_pods_share_all_that_is_alike() -> None:
    views, raw = PodViews(), rewritten(pod())
    charge = ChargeRecord("chat", "", Amount({4: 1}), "g", 9)
    raw["metadata"]["annotations"][CHARGE] = charge.to_annotation()
    one, two = views.view(stored(raw, 1)), views.view(stored(rewritten(raw), 2))
    assert one is not None
    assert two is not None

    three = views.view(stored(raw, 3))

    assert three is not None
    assert one.shape is two.shape is three.shape
    assert one.labels is two.labels
    assert one.charge is three.charge
    assert views.shapes == 1


def test_pods_that_mean_the_same_are_one_shape_however_they_are_spelled() -> None:
    views = PodViews()
    spelled = [
        {"limits": {GPU: "2", "cpu": "1"}},
        {"limits": {GPU: "2", "cpu": "1000m"}},
        {"limits": {"cpu": "1.0", GPU: 2}, "requests": {GPU: "2e0"}},
    ]

    seen = [views.view(stored(pod(container(resources=amounts)))) for amounts in spelled]

    assert len({view.shape for view in seen if view}) == 1


def test_shapes_of_pods_that_are_gone_are_forgotten() -> None:
    views = PodViews()
    for number in range(20_000):
        amounts = {"limits": {GPU: "1", "cpu": str(number + 1)}}
        views.view(stored(pod(container(resources=amounts))))

    assert views.shapes <= 8192


@pytest.mark.parametrize("raw", [{}, {"metadata": None}, {"spec": {"containers": "x"}}])
def test_a_malformed_pod_is_viewed_as_far_as_it_can_be_read(raw: Json) -> None:
    view = PodViews().view(raw)

    assert view is not None
    assert view.phase is Phase.LIVE
