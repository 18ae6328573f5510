# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes Event as an object: its name, its size, its fields.

Pure. Source: Kubernetes API `core/v1` Event; `pkg/apis/core/validation/events.go`. When events are
written is not decided here.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from reconciler.kube.raw import mapping, text

MAX_NOTE_BYTES: Final = 1024
"""Longer texts are cut: the API refuses them. Source: `core/v1` Event.message, events.k8s.io note.
"""

_CUT: Final = "..."
_MAX_NAME: Final = 253
_CLUSTER_NAMESPACE: Final = "default"
"""Where Events of cluster-scoped objects lie (`pkg/apis/core/validation/events.go`)."""


class EventType(StrEnum):
    """Whether people need to act."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about; `namespace` is empty for cluster-scoped ones."""

    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str = "v1"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What makes two events the same; `note` is as `cut_note` returns it."""

    regarding: Regarding
    type: EventType
    reason: str
    action: str
    note: str

    @property
    def namespace(self) -> str:
        """Where its Event lies."""
        return self.regarding.namespace or _CLUSTER_NAMESPACE


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports: the component, and which process of it (such as its pod's name)."""

    component: str = "sluice"
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    """How often something occurred, and when first and last."""

    count: int
    first: datetime
    last: datetime


def event_body(what: Occurrence, seen: Count, reporter: Reporter) -> Mapping[str, object]:
    """Return the Event to create."""
    regarding = what.regarding
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event_name(what), "namespace": what.namespace},
        "involvedObject": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "namespace": regarding.namespace,
            "name": regarding.name,
            "uid": regarding.uid,
        },
        "type": str(what.type),
        "reason": what.reason,
        "action": what.action,
        "message": what.note,
        "count": seen.count,
        "firstTimestamp": event_time(seen.first),
        "lastTimestamp": event_time(seen.last),
        "source": {"component": reporter.component},
        "reportingComponent": reporter.component,
        "reportingInstance": reporter.instance or reporter.component,
    }


def repeat_patch(
    found: Mapping[str, object], more: int, last: datetime
) -> list[Mapping[str, object]]:
    """Return the patch that counts `more` occurrences to an Event as it was found.

    Another process, or a write whose outcome was unknown, may have counted meanwhile.
    """
    known, metadata = found.get("count"), mapping(found, "metadata")
    total = (known if isinstance(known, int) else 0) + more
    return [
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": text(metadata, "resourceVersion"),
        },
        {"op": "add", "path": "/count", "value": total},
        {"op": "add", "path": "/lastTimestamp", "value": event_time(last)},
    ]


def event_name(what: Occurrence) -> str:
    """Return a name that is the same for the same event, whoever records it."""
    parts = (
        *(what.regarding.kind, what.regarding.uid, what.regarding.name),
        *(what.type, what.reason, what.action, what.note),
    )
    digest = hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]
    return f"{what.regarding.name[: _MAX_NAME - 17].rstrip('.-')}.{digest}"


def cut_note(note: str) -> str:
    """Return a note that the API takes: at most 1 KiB of UTF-8, cut between characters."""
    encoded = note.encode(errors="replace")
    if len(encoded) <= MAX_NOTE_BYTES:
        return encoded.decode()
    return encoded[: MAX_NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def event_time(time: datetime) -> str:
    """Return the API's Time (RFC 3339 in UTC, whole seconds)."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
