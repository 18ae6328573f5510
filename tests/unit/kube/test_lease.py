# SPDX-License-Identifier: Apache-2.0
"""A Lease read, written, observed and taken, as values."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from policies.model.term import LeaseTerm, read_term
from reconciler.kube.errors import MalformedAnswerError
from reconciler.kube.intents import INTENTS
from reconciler.kube.lease import (
    LeaseRecord,
    lease_term,
    may_take,
    micro_time,
    observe,
    read_lease,
    write_lease,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 67, tzinfo=UTC)
HELD = LeaseRecord("x", 15, "a", "b", 3)


def test_times_are_utc_whatever_the_zone() -> None:
    assert micro_time(NOW) == "2026-01-02T03:04:05.000067Z"
    zone = timezone(timedelta(hours=5, minutes=30))
    assert micro_time(NOW.astimezone(zone)) == "2026-01-02T03:04:05.000067Z"


def test_what_is_written_is_read_again_and_the_rest_of_the_metadata_stays() -> None:
    metadata = {
        "name": "leader",
        "resourceVersion": "9",
        "uid": "u",
        "labels": {"a": "b"},
        "annotations": {"note": "x", INTENTS: "old"},
        "ownerReferences": [{"name": "owner"}],
        "managedFields": [{}],
    }
    body = write_lease({"metadata": metadata, "spec": {"strategy": "s"}}, HELD, "new")
    stored = read_lease(body)
    assert (stored.record, stored.intents) == (HELD, "new")
    del metadata["managedFields"]
    assert body["metadata"] == {**metadata, "annotations": {"note": "x", INTENTS: "new"}}


def test_a_lease_tells_the_term_that_releases_name() -> None:
    metadata = {
        "namespace": "sluice",
        "name": "leader",
        "uid": "u",
        "creationTimestamp": "2026-01-02T03:04:05Z",
    }
    term = lease_term({"metadata": metadata, "spec": {"leaseTransitions": 4}})
    assert term == LeaseTerm("sluice/leader", "u", "2026-01-02T03:04:05Z", 4)
    assert read_term(term.to_annotation()) == term
    assert lease_term({"metadata": metadata}).transitions == 0


def test_a_lease_of_which_nothing_is_known_is_older_than_none() -> None:
    known = LeaseTerm("sluice/leader", "u", "2026-01-02T03:04:05Z", 4)
    assert not LeaseTerm("sluice/leader", "", "", 0).is_older_than(known)


def test_a_release_has_no_holder_and_a_second_to_run() -> None:
    record = HELD.released_at(NOW)
    spec = write_lease({"metadata": {"name": "leader"}}, record, "")["spec"]
    assert spec == {
        "leaseDurationSeconds": 1,
        "acquireTime": "a",
        "renewTime": "2026-01-02T03:04:05.000067Z",
        "leaseTransitions": 3,
    }
    assert record.is_free


@pytest.mark.parametrize("body", [{}, {"metadata": None}, {"metadata": {"resourceVersion": 7}}])
def test_a_lease_without_a_version_is_malformed(body: dict[str, object]) -> None:
    with pytest.raises(MalformedAnswerError):
        read_lease(body)


def test_only_a_change_of_the_record_begins_the_wait_anew() -> None:
    first = observe(None, HELD, 100.0)
    assert observe(first, HELD, 110.0) is first
    assert observe(first, HELD.renewed_at(NOW), 110.0).since == 110.0
    assert observe(first, None, 111.0).since == 111.0


@pytest.mark.parametrize(
    ("record", "waits"),
    [
        (HELD, 15.0),
        (LeaseRecord("x", 40), 40.0),
        (LeaseRecord("x", 3), 15.0),
        (LeaseRecord("x", 99_999_999), 15.0),
        (LeaseRecord(), 15.0),
        (LeaseRecord("", 15, "a", "b", 3), 15.0),
        (None, 15.0),
        (LeaseRecord("", 1, "a", "b", 3), 0.0),
    ],
)
def test_a_lease_may_be_taken_when_its_holder_has_surely_stopped(
    record: LeaseRecord | None, waits: float
) -> None:
    observation = observe(None, record, 100.0)
    assert may_take(observation, (), 15, 100.0 + waits)
    if waits:
        assert not may_take(observation, (), 15, 100.0 + waits - 0.001)


def test_a_term_of_ones_own_needs_no_wait() -> None:
    observation = observe(None, HELD, 100.0)
    assert may_take(observation, (HELD.term,), 15, 100.0)
    assert not may_take(observation, (HELD.taken("x", 15, NOW).term,), 15, 100.0)


def test_every_term_differs_from_the_one_before() -> None:
    assert HELD.taken("x", 15, NOW) == LeaseRecord("x", 15, micro_time(NOW), micro_time(NOW), 4)
    assert LeaseRecord(transitions=2**31 - 1).taken("x", 15, NOW).transitions == 0
