# SPDX-License-Identifier: Apache-2.0
"""What the audit log says of one gate that was taken off by force, as one line of JSON."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from reconciler.runtime.audit_eviction import Outcome

KIND: Final = "release"
_MAX_TEXT: Final = 1024
_OPTIONS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


@dataclass(frozen=True, slots=True)
class Released:
    """The pod, as it was when its gate was to be taken off; `waited` is what it waited for."""

    namespace: str
    name: str
    uid: str
    version: str
    waited: str


@dataclass(frozen=True, slots=True)
class ForcedReleaseEntry:
    """One pod: `user` took its gate off, acting as `acting_as`, for a `reason` of their words."""

    pod: Released
    outcome: Outcome
    user: str
    acting_as: str
    reason: str
    at: datetime
    message: str = ""
    dry_run: bool = False


def to_line(entry: ForcedReleaseEntry) -> bytes:
    """Return the line with its line feed. `time` comes first, as in every line of the log."""
    pod = entry.pod
    record = {
        "time": entry.at.astimezone(UTC),
        "kind": KIND,
        "action": "BreakGlass",
        "outcome": entry.outcome,
        "dryRun": entry.dry_run,
        "user": entry.user[:_MAX_TEXT],
        "actingAs": entry.acting_as[:_MAX_TEXT],
        "reason": entry.reason[:_MAX_TEXT] or None,
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "resourceVersion": pod.version,
        "waitedFor": pod.waited[:_MAX_TEXT] or None,
        "message": entry.message[:_MAX_TEXT] or None,
    }
    return orjson.dumps(record, option=_OPTIONS)
