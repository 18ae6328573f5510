# SPDX-License-Identifier: Apache-2.0
"""A Lease as a value, and when a candidate may take it.

Pure: objects in, values and objects out; time is an argument. Source: Kubernetes API
`coordination.k8s.io/v1` LeaseSpec; client-go `tools/leaderelection/leaderelection.go`. Calls,
waiting and what a leader does are not here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from policies.model.term import LeaseTerm
from reconciler.kube.errors import MalformedAnswerError
from reconciler.kube.intents import INTENTS
from reconciler.kube.raw import mapping, strings, text

RELEASED_SECONDS: Final = 1
"""The duration that a released Lease names, as client-go writes it."""

_LONGEST_SECONDS: Final = 3600
_MAX_INT32: Final = 2**31 - 1
_MICRO_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class Term:
    """One stay in office. No two are equal, even if two processes share one identity."""

    holder: str
    acquired: str
    transitions: int


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The spec of a Lease: who holds it, until when unless renewed. Empty or 0 where absent.

    Times are the holder's wall clock, shown to people; no decision compares them with ours.
    """

    holder: str = ""
    seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0

    @property
    def term(self) -> Term:
        """The stay in office that it belongs to."""
        return Term(self.holder, self.acquired, self.transitions)

    @property
    def is_free(self) -> bool:
        """Whether it was released in order.

        A holder that was only edited away may not have noticed yet.
        """
        return not self.holder and self.seconds == RELEASED_SECONDS

    def taken(self, identity: str, seconds: int, now: datetime) -> "LeaseRecord":
        """Return the record of a new term after this one."""
        time = micro_time(now)
        transitions = self.transitions + 1 if self.transitions < _MAX_INT32 else 0
        return LeaseRecord(identity, seconds, time, time, transitions)

    def renewed_at(self, now: datetime) -> "LeaseRecord":
        """Return the record of a renewal in the same term."""
        return replace(self, renewed=micro_time(now))

    def released_at(self, now: datetime) -> "LeaseRecord":
        """Return the record that lets anyone take it at once."""
        return replace(self, holder="", seconds=RELEASED_SECONDS, renewed=micro_time(now))


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A Lease as the API holds it. `intents` is its annotation, None where it has none."""

    record: LeaseRecord
    intents: str | None
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Observation:
    """A record (None: there was no Lease) and since when, on our clock, it has not changed."""

    record: LeaseRecord | None
    since: float


def read_lease(body: Mapping[str, object]) -> StoredLease:
    """Return a Lease's value; fields that are absent or of a wrong type read as absent.

    Raises MalformedAnswerError for an object without resourceVersion: no write could name it.
    """
    if not text(mapping(body, "metadata"), "resourceVersion"):
        raise MalformedAnswerError("a Lease without resourceVersion")
    spec = mapping(body, "spec")
    record = LeaseRecord(
        text(spec, "holderIdentity"),
        _integer(spec, "leaseDurationSeconds"),
        text(spec, "acquireTime"),
        text(spec, "renewTime"),
        _integer(spec, "leaseTransitions"),
    )
    return StoredLease(record, strings(body, "metadata", "annotations").get(INTENTS), body)


def lease_term(body: Mapping[str, object]) -> LeaseTerm:
    """Return the term that a Lease is in, as releases name it."""
    metadata = mapping(body, "metadata")
    return LeaseTerm(
        f"{text(metadata, 'namespace')}/{text(metadata, 'name')}",
        text(metadata, "uid"),
        text(metadata, "creationTimestamp"),
        _integer(mapping(body, "spec"), "leaseTransitions"),
    )


def write_lease(
    base: Mapping[str, object], record: LeaseRecord, intents: str
) -> Mapping[str, object]:
    """Return `base` with this record and these intents; all else of its metadata stays.

    Fields of the spec that we do not write go: beside ours they might never be valid.
    """
    metadata = {key: value for key, value in mapping(base, "metadata").items() if key in _KEPT}
    annotations = {**strings(base, "metadata", "annotations"), INTENTS: intents}
    spec: dict[str, object] = {
        "leaseDurationSeconds": record.seconds,
        "acquireTime": record.acquired or record.renewed,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }
    if record.holder:
        spec["holderIdentity"] = record.holder
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {**metadata, "annotations": annotations},
        "spec": spec,
    }


def observe(before: Observation | None, record: LeaseRecord | None, now: float) -> Observation:
    """Return what is known once `record` was read; `now` is when its answer had come.

    Only the record counts: one who edits labels does not keep a dead leader in office.
    """
    if before is not None and before.record == record:
        return before
    return Observation(record, now)


def may_take(
    observation: Observation, ours: Collection[Term], lease_seconds: float, now: float
) -> bool:
    """Tell whether a candidate may take the Lease at `now`.

    `ours` are terms of this elector in which no work is running. A Lease that is missing may have
    been deleted under a leader, who will put it back: it is waited for like one that is held.
    """
    record = observation.record
    if record is not None and (record.is_free or record.term in ours):
        return True
    # What its holder has promised counts, unless somebody's edit has made it absurd.
    promised = record.seconds if record and record.seconds <= _LONGEST_SECONDS else 0
    return now >= observation.since + max(promised, lease_seconds)


def micro_time(now: datetime) -> str:
    """Return the API's MicroTime (RFC 3339 in UTC, six digits of a second)."""
    return now.astimezone(UTC).strftime(_MICRO_TIME)


_KEPT: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
    }
)
"""Metadata that an update states; what it leaves out of the rest, the server keeps."""


def _integer(item: Mapping[str, object], field: str) -> int:
    value = item.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
