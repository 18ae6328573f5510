# SPDX-License-Identifier: Apache-2.0
"""What an observer finds: breaches, which must not be, and facts, which are only told."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Breach(StrEnum):
    """What Sluice must never let happen."""

    CEILING = "Ceiling"
    """A release that takes the live pods of a tenant past its ceiling."""
    TWICE = "Twice"
    """A pod released a second time, or charged otherwise after its release."""
    UNCHARGED = "Uncharged"
    """A release without a charge."""
    MISCHARGED = "Mischarged"
    """A charge to another tenant, or of less than the pod takes."""
    BYPASS = "Bypass"
    """A GPU pod of a tenant that was made without the gate."""
    UNDECLARED = "Undeclared"
    """A release or eviction of which the Lease did not tell when it landed."""
    MISCOUNTED = "Miscounted"
    """A ledger that does not say what a tenant's live pods take."""
    UNLAWFUL = "Unlawful"
    """An eviction that the laws of reclaim forbid."""


class Fact(StrEnum):
    """What happened, right or not for others to judge."""

    OVER = "Over"
    """A tenant is past its ceiling without a release: the ceiling or a namespace has moved."""
    GAP = "Gap"
    """The watch broke and history was lost; the order of what happened meanwhile is unknown."""
    OVERTAKEN = "Overtaken"
    """A release while an older pod alike, of the same tenant and priority, waits on."""
    EVICTED = "Evicted"
    """Somebody ended a released pod before its time."""
    DRIFT = "Drift"
    """A new list disagrees with what the watch has told: a fault of the observer or the server."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One of them; `text` tells it all, `version` is the resourceVersion of the event."""

    kind: Breach | Fact
    text: str
    uid: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """A gate taken off, in the order of the API server. Times are the observer's seconds."""

    uid: str
    label: str
    tenant: str
    cost: Fraction
    version: int
    at: float
    waited_seconds: float
