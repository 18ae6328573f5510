# SPDX-License-Identifier: Apache-2.0
"""What a plan says: who is released, what is taken back, and why the rest waits."""

from dataclasses import dataclass
from enum import StrEnum

from policies.cluster.shape import FitShape
from policies.quota.charge import ChargeRecord
from policies.quota.gangs import GangKey, GangProblem
from policies.quota.pods import QuotaPod
from policies.quota.pools import Pins


class Why(StrEnum):
    """What a pod waits for, as reasons begin; the text beside it may change, this may not."""

    NO_TENANT = "NoTenant"
    """No tenant, or more than one, claims its namespace."""
    GANG = "GangIncomplete"
    """Not all of its gang are there, or they do not agree on what it is."""
    NEVER = "NeverFits"
    """It asks for more than its tenant may ever have."""
    CEILING = "Ceiling"
    """With it, its tenant would pass a ceiling: GPUs, memory, or devices of a name."""
    FIXED = "FixedGuarantee"
    """It can never be taken back, and its tenant's guarantee is full of such work."""
    BORROWING = "NothingToBorrow"
    """Its tenant is past its guarantee, and there is not enough to borrow."""
    TAKEN_BACK = "TakenBack"
    """One of its controller was just taken back, so that it may not borrow again yet."""
    NO_SUCH_NODE = "NoSuchNode"
    """No node could hold it, were it empty."""
    NO_ROOM = "NoNodeFits"
    """Quota is free, and no node has room."""
    RESERVED = "Reserved"
    """What is free is kept for others that have waited longer, or that it was taken back for."""
    REFUSED = "Refused"
    """The API server, or a webhook of others, refuses its release; it is tried again."""
    NEXT = "Next"
    """Nothing holds it: it goes with one of the next batches."""


@dataclass(frozen=True, slots=True)
class Release:
    """A pod to let go, what it is charged, and what keeps it in the pool that it is charged in.

    `node` is where the plan found room for it, empty where it goes without any.
    """

    pod: QuotaPod
    charge: ChargeRecord
    pins: Pins
    node: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps a pod waiting: `text` names who and how much, not what is used just now.

    `is_of_quota` tells of what is reserved that it is its own tenant's quota, not room on nodes.
    """

    why: Why
    text: str
    is_of_quota: bool = False

    def __str__(self) -> str:
        """Return it as it is written on a pod: `Ceiling: ...`."""
        return f"{self.why}: {self.text}"


@dataclass(frozen=True, slots=True)
class Wait:
    """Pods of one tenant that wait for the same reason, the oldest first.

    `tenant` is empty for none. `place` is that of the first among its tenant's waiting pods.
    """

    tenant: str
    pods: tuple[QuotaPod, ...]
    hold: Hold
    place: int

    @property
    def reason(self) -> str:
        """Return what is to be read on the pods."""
        return str(self.hold)


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """Room on a node that is kept for a pod that waits, whether or not enough is free there yet.

    `owed` tells that the pod stays within its tenant's guarantee; else what is owed may take it.
    `is_repaid` tells that room is taken back for it there: what lacks will come.
    """

    uid: str
    node: str
    fit: FitShape
    owed: bool
    is_repaid: bool = False


@dataclass(frozen=True, slots=True)
class TakeBack:
    """That what runs of a torn gang is to be evicted, since the rest of it finds no room."""

    gang: GangKey
    tenant: str
    pods: tuple[QuotaPod, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now. Pods that would be next but for the limit of a plan are in no wait.

    `kept` is room that nobody else was given, and nobody else is to be given.
    """

    releases: tuple[Release, ...] = ()
    take_back: tuple[TakeBack, ...] = ()
    waits: tuple[Wait, ...] = ()
    problems: tuple[GangProblem, ...] = ()
    kept: tuple[KeptRoom, ...] = ()
