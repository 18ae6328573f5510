# SPDX-License-Identifier: Apache-2.0
"""A pod being changed: what is Sluice's stays, everything else passes."""

from copy import deepcopy
from dataclasses import replace

import pytest

from policies.model.facts import Facts
from policies.model.keys import BREAK_GLASS_GROUP, DECISION, FORCED, QUOTA_GATE, TERM
from policies.model.reasons import Reason
from policies.model.request import Operation, Phase, User
from policies.model.term import LeaseTerm
from tests.support.builders import SLUICE, Json, facts, mutate, pod, rewritten, update

PLAIN = {"name": "other", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}


@pytest.fixture
def old() -> Json:
    return rewritten(pod())


@pytest.fixture
def new(old: Json) -> Json:
    return deepcopy(old)


def test_a_pod_that_does_not_change_passes(old: Json, new: Json) -> None:
    decision = update(old, new)

    assert decision.allowed
    assert decision.touches_gpus


def test_finalizers_and_others_keys_may_change(old: Json, new: Json) -> None:
    old["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    new["metadata"]["labels"]["app"] = "changed"
    new["metadata"]["annotations"]["team"] = "a"

    assert update(old, new).allowed
    assert update(new, old).allowed


def test_a_pod_from_before_sluice_may_end_as_it_likes() -> None:
    raw = pod(finalizers=["x"])

    assert update(raw, pod()).allowed
    assert not update(raw, pod()).patch


@pytest.mark.parametrize("section", ["annotations", "labels"])
@pytest.mark.parametrize("key", [DECISION, "state.sluice.dev/charge", "state.sluice.dev/new"])
def test_nobody_else_writes_or_removes_a_key_of_sluice(
    old: Json, new: Json, section: str, key: str
) -> None:
    new["metadata"].setdefault(section, {})[key] = "forged"

    for before, after in ((old, new), (new, old)):
        decision = update(before, after)
        assert decision.reasons == (Reason.OWNED_KEY,)
        assert f"{section[:-1]} {key} belongs to Sluice" in decision.message
        assert update(before, after, user=SLUICE).allowed


def test_only_sluice_takes_its_gate_off(old: Json, new: Json) -> None:
    new["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]

    assert update(old, new).reasons == (Reason.OWNED_KEY,)
    assert QUOTA_GATE in update(old, new).message
    assert update(old, new, user=SLUICE).allowed


def test_who_breaks_the_glass_takes_the_gate_off_and_nothing_else(old: Json, new: Json) -> None:
    somebody = User("admin", groups=("system:masters", BREAK_GLASS_GROUP))
    forged = deepcopy(old)
    forged["metadata"]["annotations"]["state.sluice.dev/charge"] = "{}"
    del new["spec"]["schedulingGates"]
    new["metadata"]["annotations"][FORCED] = "by admin"

    assert update(old, new, user=somebody).allowed
    assert update(old, new, user=User("admin", groups=("system:masters",))).reasons
    assert update(old, forged, user=somebody).reasons == (Reason.OWNED_KEY,)


def _seen(term: LeaseTerm | None) -> Facts:
    return replace(facts(), term=term)


NEWEST = LeaseTerm("sluice/sluice", "uid-2", "2026-03-01T10:00:00Z", 7)
AGAIN = replace(NEWEST, uid="uid-3", created="2026-03-01T11:00:00Z", transitions=1)


@pytest.fixture
def released(new: Json) -> Json:
    del new["spec"]["schedulingGates"]
    new["metadata"]["annotations"][TERM] = NEWEST.to_annotation()
    return new


@pytest.mark.parametrize("newest", [replace(NEWEST, transitions=8), AGAIN])
def test_a_release_of_a_leader_whose_term_is_over_is_refused(
    old: Json, released: Json, newest: LeaseTerm
) -> None:
    decision = update(old, released, user=SLUICE, facts=_seen(newest))

    assert decision.reasons == (Reason.PAST_TERM,)
    assert f"term 7 of Lease sluice/sluice is over: who holds it in term {newest.transitions}" in (
        decision.message
    )


@pytest.mark.parametrize(
    "newest",
    [
        NEWEST,
        None,
        replace(NEWEST, transitions=6),
        replace(AGAIN, created="2026-03-01T09:59:59Z"),
        replace(AGAIN, created=NEWEST.created),
        replace(AGAIN, lease="sluice/another"),
    ],
    ids=["current", "unknown", "behind", "deleted-before", "same-second", "another-lease"],
)
def test_any_other_release_of_a_leader_passes(
    old: Json, released: Json, newest: LeaseTerm | None
) -> None:
    assert update(old, released, user=SLUICE, facts=_seen(newest)).allowed


@pytest.mark.parametrize("term", [None, "", "7", "x sluice/sluice t u", "1 2 3 4 5"])
def test_a_release_that_names_no_term_passes(old: Json, released: Json, term: str | None) -> None:
    released["metadata"]["annotations"][TERM] = term
    if term is None:
        del released["metadata"]["annotations"][TERM]

    assert update(old, released, user=SLUICE, facts=_seen(replace(NEWEST, transitions=8))).allowed


def test_a_past_leader_may_still_write_what_releases_nothing(old: Json, new: Json) -> None:
    new["metadata"]["annotations"][TERM] = NEWEST.to_annotation()
    newer = _seen(replace(NEWEST, transitions=8))

    assert update(old, new, user=SLUICE, facts=newer).allowed
    del old["spec"]["schedulingGates"], new["spec"]["schedulingGates"]
    assert update(old, new, user=SLUICE, facts=newer).allowed


def test_others_take_their_own_gates_off(old: Json, new: Json) -> None:
    old["spec"]["schedulingGates"].append({"name": "kueue.x-k8s.io/admission"})

    assert update(old, new).allowed


def test_what_places_the_pod_may_not_be_taken_out(old: Json, new: Json) -> None:
    new["spec"]["nodeSelector"]["nvidia.com/gpu.replicas"] = "8"
    new["spec"]["tolerations"] = []
    decision = update(old, new)

    assert decision.reasons == (Reason.OWNED_KEY,)
    assert "node selector nvidia.com/gpu.replicas" in decision.message
    assert "toleration of nvidia.com/gpu" in decision.message


def test_placement_may_be_narrowed_and_tolerations_added(old: Json, new: Json) -> None:
    new["spec"]["nodeSelector"]["zone"] = "a"
    new["spec"]["tolerations"].insert(0, {"key": "x", "operator": "Exists"})

    assert update(old, new).allowed


def test_an_annotation_that_allocates_devices_may_not_be_added_while_the_pod_waits(
    old: Json, new: Json
) -> None:
    new["metadata"]["annotations"]["nvidia.cdi.k8s.io/pod"] = "nvidia.com/gpu=all"

    assert update(old, new).reasons == (Reason.DEVICE_ANNOTATION,)
    assert update(new, old).allowed
    assert update(new, new).allowed


def test_the_mutating_pass_changes_no_update(old: Json) -> None:
    for found in (pod(), old, pod(PLAIN)):
        decision = mutate(found, operation=Operation.UPDATE, old_object=old)
        assert decision.allowed
        assert not decision.patch


def test_an_update_without_its_old_object_shows_only_what_is_new(new: Json) -> None:
    decision = mutate(new, operation=Operation.UPDATE, phase=Phase.VALIDATE)

    assert decision.reasons == (Reason.OWNED_KEY,)
