# SPDX-License-Identifier: Apache-2.0
"""Which gated pods may go on."""

from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

from reconciler.quota.plan import GatedPod, plan_release, release_patch
from reconciler.quota.view import gated_pod

GATE = "sluice.dev/quota"
POD = GatedPod("team", "a", "uid-a", "7", "2026-01-01T00:00:00Z", (GATE,))


def is_guarded(namespace: str) -> bool:
    return namespace == "team"


def test_a_pod_that_waits_for_quota_alone_goes_on() -> None:
    assert plan_release([POD], is_guarded) == (POD,)


@pytest.mark.parametrize(
    "pod",
    [
        replace(POD, namespace="other"),
        replace(POD, is_deleting=True),
        replace(POD, gates=(GATE, "kueue.x-k8s.io/admission")),
        replace(POD, gates=("kueue.x-k8s.io/admission",)),
        replace(POD, gates=()),
    ],
    ids=["unguarded", "deleting", "gates of others too", "gate of others", "no gate"],
)
def test_any_other_pod_is_left_alone(pod: GatedPod) -> None:
    assert plan_release([pod], is_guarded) == ()


def test_the_longest_waiting_goes_first_and_ties_are_broken_by_name() -> None:
    old = replace(POD, name="old", created="2025-12-31T23:59:59Z")
    b = replace(POD, name="b")
    assert plan_release([b, POD, old], is_guarded) == (old, POD, b)
    assert plan_release([old, b, POD], is_guarded) == (old, POD, b)


@pytest.mark.parametrize(
    "spec", [{"schedulingGates": [{"name": GATE}]}, {"schedulingGates": []}, {}]
)
def test_the_patch_is_conditional_and_applies_even_where_another_was_faster(
    spec: dict[str, Any],
) -> None:
    """Else the API server would answer with 422 and not with a conflict."""
    item = {"metadata": {"name": "a", "resourceVersion": "8"}, "spec": {**spec, "containers": []}}
    patched = jsonpatch.apply_patch(item, [dict(operation) for operation in release_patch(POD)])
    assert patched == {
        "metadata": {"name": "a", "resourceVersion": "7"},
        "spec": {"schedulingGates": [], "containers": []},
    }


def test_the_patch_leaves_gates_of_others() -> None:
    both = replace(POD, gates=(GATE, "other"))
    assert release_patch(both)[1]["value"] == [{"name": "other"}]


def raw_pod(**metadata: Any) -> dict[str, Any]:
    gates = [{"name": "first"}, {"name": GATE}]
    return {
        "metadata": {
            "namespace": "team",
            "name": "a",
            "uid": "uid-a",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {"schedulingGates": gates},
    }


def test_the_view_keeps_what_the_plan_needs() -> None:
    assert gated_pod(raw_pod()) == replace(POD, gates=("first", GATE))
    deleting = gated_pod(raw_pod(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert deleting is not None
    assert deleting.is_deleting


@pytest.mark.parametrize(
    "spec",
    [{}, None, {"schedulingGates": None}, {"schedulingGates": []}, {"schedulingGates": ["x"]}],
)
def test_a_pod_without_the_gate_is_of_no_interest(spec: object) -> None:
    assert gated_pod({**raw_pod(), "spec": spec}) is None
