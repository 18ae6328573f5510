# SPDX-License-Identifier: Apache-2.0
"""What a reclaim plan says: commands with their reasons, rooms kept, and who gets nothing, why."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from policies.quota.pods import Notice, QuotaPod
from policies.quota.reserves import Reserve


@dataclass(frozen=True, slots=True)
class Change:
    """What a tenant uses in a pool before and after (milli-GPU, entitlement ledger)."""

    tenant: str
    pool: str
    guarantee_milli: int
    before_milli: int
    after_milli: int


@dataclass(frozen=True, slots=True)
class Beneficiary:
    """Who gets the room: `namespace/name` of a pod, or of a gang of so many pods."""

    name: str
    tenant: str
    uids: tuple[str, ...]
    milli: int
    is_gang: bool = False

    def __str__(self) -> str:
        gang = f" (gang of {len(self.uids)})" if self.is_gang else ""
        return f"{self.name}{gang} of tenant {self.tenant}"


@dataclass(frozen=True, slots=True)
class Why:
    """Everything that explains a disturbance afterwards.

    `getter` is the beneficiary's tenant, `giver` the pod's. `node` is where the pod makes room.
    """

    beneficiary: Beneficiary
    rule: str
    getter: Change
    giver: Change
    node: str
    generation: str
    at: int


@dataclass(frozen=True, slots=True)
class Notify:
    """Tell a pod that it will be evicted."""

    pod: QuotaPod
    notice: Notice
    why: Why


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Tell a pod that it is not needed any more."""

    pod: QuotaPod


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask the Eviction API for a pod's end."""

    pod: QuotaPod
    why: Why


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a pod that disruption budgets have refused to let go for too long."""

    pod: QuotaPod
    why: Why
    refused_at: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Evict what runs of a gang whose rest finds no room; `text` says so. Nobody gets the room."""

    pod: QuotaPod
    tenant: str
    text: str
    generation: str
    at: int


@dataclass(frozen=True, slots=True)
class Forewarn:
    """Tell a pod of a torn gang that it will be evicted; `end` is what follows."""

    end: GiveUp
    notice: Notice

    @property
    def pod(self) -> QuotaPod:
        """Return the pod."""
        return self.end.pod


Command: TypeAlias = Notify | Withdraw | Evict | Delete | Forewarn | GiveUp


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room kept for who is to be released next: node by UID, free once `victims` are gone.

    `milli` is what that is in each pool.
    """

    group: str
    tenant: str
    places: Mapping[str, str]
    milli: Mapping[str, int]
    victims: tuple[str, ...]


class Unmet(StrEnum):
    """Why nothing is taken back for a group."""

    DISABLED = "its cohort's reclaim policy takes nothing back"
    PRIORITY = "its priority is below the threshold under which nothing is taken back"
    GUARANTEE = "it does not fit what is left of its tenant's guarantee"
    ROOM = "no borrowed work that may be taken back would make room for it on any node"
    KEPT = (
        "what would be free is kept for who has waited longer, and nothing else may be taken back"
    )
    BUDGET = "the disruption budget is used up by what is taken back already"


@dataclass(frozen=True, slots=True)
class ReclaimPlan:
    """What to do now. `next_at` is when time alone may change the plan, None if never.

    `victims` is the UID of each pod that is to go, with the name of the group it goes for.
    """

    commands: tuple[Command, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    victims: Mapping[str, str] | None = None
    unmet: Mapping[str, Unmet] | None = None
    next_at: int | None = None


def reserves_of(plan: ReclaimPlan, until: int) -> Mapping[tuple[str, str], Reserve]:
    """Return by tenant and pool what a plan has releases keep until then (Unix seconds)."""
    milli: Counter[tuple[str, str]] = Counter()
    nodes: dict[tuple[str, str], dict[str, str]] = {}
    for reservation in plan.reservations:
        for pool, count in reservation.milli.items():
            milli[reservation.tenant, pool] += count
            nodes.setdefault((reservation.tenant, pool), {}).update(reservation.places)
    return {key: Reserve(count, until, nodes[key]) for key, count in milli.items()}
