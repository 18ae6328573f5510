# SPDX-License-Identifier: Apache-2.0
"""What people read of reclaim: reasons and notes of Events. Wording only; nothing is decided."""

from dataclasses import dataclass
from enum import StrEnum

from policies.admission.charging import amount, gpus
from policies.quota.notice import rfc3339
from policies.quota.reclaim.outcome import (
    Change,
    Command,
    Delete,
    Evict,
    Forewarn,
    GiveUp,
    Notify,
    Why,
    Withdraw,
)


class ReclaimReason(StrEnum):
    """Reasons of Events."""

    NOTICE = "ReclaimNotice"
    WITHDRAWN = "ReclaimWithdrawn"
    EVICTED = "Reclaimed"
    DELETED = "ReclaimedAfterPdbTimeout"
    GANG = "GangTakenBack"
    REFUSED = "ReclaimRefused"


@dataclass(frozen=True, slots=True)
class Told:
    """An Event's reason and note, and whether its owner needs to know of it."""

    reason: ReclaimReason
    note: str
    is_warning: bool = False


def told(command: Command) -> Told:
    """Return what is said on the pod once a command is carried out."""
    match command:
        case Notify():
            at = rfc3339(command.notice.evict_at)
            note = f"will be evicted at {at} {_for(command.why)}"
            return Told(ReclaimReason.NOTICE, note, is_warning=True)
        case Withdraw():
            return Told(ReclaimReason.WITHDRAWN, "will not be evicted: its room is not needed")
        case Evict():
            return Told(ReclaimReason.EVICTED, f"evicted {_for(command.why)}", is_warning=True)
        case Delete():
            since = rfc3339(command.refused_at)
            return Told(
                ReclaimReason.DELETED,
                f"deleted {_for(command.why)}; disruption budgets refuse eviction since {since}",
                is_warning=True,
            )
        case Forewarn():
            at = rfc3339(command.notice.evict_at)
            note = f"will be evicted at {at}: {command.end.text}"
            return Told(ReclaimReason.NOTICE, note, is_warning=True)
        case GiveUp():
            return Told(ReclaimReason.GANG, f"evicted: {command.text}", is_warning=True)


def refused(why: str) -> Told:
    """Return what is said when a disruption budget keeps a pod for now."""
    return Told(ReclaimReason.REFUSED, f"not evicted yet: {why}")


def _for(why: Why) -> str:
    return (
        f"for {why.beneficiary}, which is owed {amount(why.beneficiary.milli)}: "
        f"{_uses(why.giver)}, {_uses(why.getter)} "
        f"({why.rule}, policy generation {why.generation})"
    )


def _uses(change: Change) -> str:
    pool = f" of pool {change.pool}" if change.pool else ""
    return (
        f"tenant {change.tenant} uses {gpus(change.before_milli)}{pool} "
        f"with {gpus(change.guarantee_milli)} guaranteed"
    )
