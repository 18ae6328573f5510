# SPDX-License-Identifier: Apache-2.0
"""What the audit log says of one disturbance of running work, as one line of JSON.

With everything that explains it afterwards: for whom, by which rule, what the tenants used, what
became of it. Lines of decisions on reviews are elsewhere (audit_record).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import orjson

from policies.model.settings import Mode
from policies.quota.amount import Amount
from policies.quota.notice import rfc3339
from policies.quota.pods import QuotaPod
from policies.quota.reclaim.outcome import (
    Change,
    Command,
    Delete,
    Forewarn,
    GiveUp,
    Notify,
    Why,
    Withdraw,
)
from policies.quota.reclaim.torn import RULE

KIND: Final = "eviction"
_MOST_UIDS: Final = 100
_MAX_TEXT: Final = 1024
_OPTIONS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


class Outcome(StrEnum):
    """What became of a command."""

    DONE = "Done"
    REFUSED = "Refused"
    """A disruption budget, or the API server, keeps the pod for now."""
    STALE = "Stale"
    """The pod had changed, or was gone: nothing was done."""
    UNKNOWN = "Unknown"
    """No answer came; it counts as done until the pod shows."""
    OBSERVED = "Observed"
    """Mode Observe: it was decided, and not done."""


@dataclass(frozen=True, slots=True)
class EvictionEntry:
    """A command, what became of it, and what the API server said where it was not done."""

    command: Command
    outcome: Outcome
    mode: Mode
    at: datetime
    message: str = ""


def to_line(entry: EvictionEntry) -> bytes:
    """Return the line with its line feed. `time` comes first, as in every line of the log."""
    command = entry.command
    record = {
        "time": entry.at.astimezone(UTC),
        "kind": KIND,
        "action": type(command).__name__,
        "outcome": entry.outcome,
        "mode": entry.mode,
        "message": entry.message[:_MAX_TEXT] or None,
        **_pod(command.pod),
        **_reasons(command),
    }
    return orjson.dumps(record, option=_OPTIONS)


def _pod(pod: QuotaPod) -> dict[str, object]:
    charge, notice = pod.charge, pod.notice
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "resourceVersion": pod.version,
        "owner": pod.owner or None,
        "node": pod.node or None,
        "gang": pod.gang.name if pod.gang is not None else None,
        "priority": pod.priority,
        "evictionCost": pod.eviction_cost,
        "tenant": charge.tenant if charge is not None else None,
        "pool": charge.pool if charge is not None else None,
        "charge": _amount(charge.amount) if charge is not None else None,
        "releasedAt": rfc3339(charge.at) if charge is not None else None,
        "borrowed": charge.borrowed if charge is not None else None,
        "noticedAt": rfc3339(notice.at) if notice is not None else None,
        "evictAt": rfc3339(notice.evict_at) if notice is not None else None,
    }


def _reasons(command: Command) -> dict[str, object]:
    match command:
        case Withdraw():
            return {}
        case GiveUp():
            return {
                "rule": RULE,
                "generation": command.generation,
                "decidedAt": rfc3339(command.at),
                "because": command.text[:_MAX_TEXT],
            }
        case Forewarn():
            return {**_reasons(command.end), "evictAt": rfc3339(command.notice.evict_at)}
        case Notify():
            told = {"evictAt": rfc3339(command.notice.evict_at)}
            return {**_why(command.why), **told}
        case Delete():
            return {**_why(command.why), "refusedSince": rfc3339(command.refused_at)}
        case _:
            return _why(command.why)


def _why(why: Why) -> dict[str, object]:
    beneficiary = why.beneficiary
    return {
        "rule": why.rule,
        "generation": why.generation,
        "decidedAt": rfc3339(why.at),
        "freesOn": why.node or None,
        "beneficiary": {
            "name": beneficiary.name,
            "tenant": beneficiary.tenant,
            "isGang": beneficiary.is_gang,
            "pods": len(beneficiary.uids),
            "uids": beneficiary.uids[:_MOST_UIDS],
            "milli": beneficiary.milli,
        },
        "giver": _change(why.giver),
        "getter": _change(why.getter),
    }


def _change(change: Change) -> dict[str, object]:
    return {
        "tenant": change.tenant,
        "pool": change.pool,
        "guaranteeMilli": change.guarantee_milli,
        "beforeMilli": change.before_milli,
        "afterMilli": change.after_milli,
    }


def _amount(amount: Amount) -> dict[str, object]:
    return {"milli": amount.milli, "mib": amount.mib, "counts": dict(amount.counts)}
