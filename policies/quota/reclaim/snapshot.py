# SPDX-License-Identifier: Apache-2.0
"""What reclaim is planned from: one picture of entitlements, waiting and running pods, and nodes.

Milli-GPU, MiB and counts as in `Amount`; times are Unix seconds. Whoever fills it must not decide.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeAlias

from policies.cluster.nodes import Node
from policies.cluster.shape import FitShape
from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Settings
from policies.quota.amount import NOTHING, Amount, total
from policies.quota.gangs import GangKey
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.pods import QuotaPod

EntitlementKey: TypeAlias = tuple[str, str]
"""A tenant's name and a pool's."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    """A tenant in one pool, by the entitlement ledger: what is being deleted is given back.

    What no node has taken does not count, in `fixed` neither. `cohort` is None for pods whose
    tenant is no more: they give back to every cohort. `fixed` is the part of `used` that can never
    be taken back. `fair_milli` is the fair share, if known.
    """

    tenant: str
    pool: str
    guarantee_milli: int
    used: Amount
    cohort: str | None
    priority: int = 0
    min_runtime_seconds: int = 0
    fair_milli: int | None = None
    fixed: Amount = NOTHING
    policy: ReclaimPolicy = field(default_factory=ReclaimPolicy)

    @property
    def key(self) -> EntitlementKey:
        """Return what it is found by."""
        return (self.tenant, self.pool)


@dataclass(frozen=True, slots=True)
class Member:
    """A waiting pod, the pool that it would be charged to, what it costs there, and what it asks.

    `fit` is what it asks of a node once it is kept in that pool.
    """

    pod: QuotaPod
    pool: str
    amount: Amount
    fit: FitShape


@dataclass(frozen=True, slots=True)
class Group:
    """A pod, or a gang, that nothing but room on nodes keeps from running.

    It waits for its release, or was let go already and no node has taken it.

    `reclaimable` is False if it could never be taken back again. `is_held_back` tells that there is
    room, and that the release planner keeps it for others. `others` are its members as they would
    be in other pools where it is owed: whether room can be made in the first, nobody knows yet.
    """

    name: str
    tenant: str
    members: tuple[Member, ...]
    is_gang: bool = False
    reclaimable: bool = True
    is_held_back: bool = False
    others: tuple[tuple[Member, ...], ...] = ()

    @property
    def pools(self) -> frozenset[str]:
        """Return every pool that it may get room in."""
        return frozenset(m.pool for members in (self.members, *self.others) for m in members)

    def ways(self) -> "Iterator[Group]":
        """Yield it as it would be in each of its pools, the best first."""
        yield self
        for members in self.others:
            yield replace(self, members=members, others=())

    @property
    def key(self) -> str:
        """Return what tells it from all others: a gang and a pod may have one name."""
        return self.members[0].pod.uid

    @property
    def priority(self) -> int:
        """Return the lowest priority among its pods."""
        return min(member.pod.priority for member in self.members)

    def amounts(self) -> Mapping[str, Amount]:
        """Return what it costs in each pool."""
        pools = {member.pool for member in self.members}
        return {
            pool: total(member.amount for member in self.members if member.pool == pool)
            for pool in pools
        }


class Held(NamedTuple):
    """A pod without our gate that has not ended, and what its tenant is charged for it."""

    pod: QuotaPod
    amount: Amount


@dataclass(frozen=True, slots=True)
class Disruption:
    """That work was disturbed: it counts against the budget for a while."""

    at: int
    tenant: str
    node: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Room on a node that the release planner keeps for a waiting pod: for nobody else it is free.

    Whether or not as much is free there. `is_repaid` tells that it is kept because the last plan of
    reclaim had it so; what lacks is for this plan to say.
    """

    node: str
    fit: FitShape
    is_repaid: bool = False


class Rooms(Protocol):
    """What is free on nodes beside all pods, those being deleted included."""

    def free(self, node_name: str) -> Mapping[str, int]:
        """Return what is free on a node by resource name, in base units."""
        ...

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod takes from, None if it takes from none."""
        ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The picture. `waiting` is in the order of release; `live` holds every entitlement's pods.

    `going` are UIDs whose end was asked for and that no watch has shown yet. `refused` says until
    when a pod is not to be tried again. `excess_milli` is, by cohort and pool, what a cohort
    borrows past what its own tenants may lend: that it has from outside of all guarantees.
    `kept` is by UID the room that is kept for waiting pods that are owed it. `gang_sizes` are those
    that PodGroups state; other gangs say themselves how many they need.
    Pods that no node has taken are not in `live`. Until `budget_used_up_until` nobody knows what a
    past leader has spent of the disruption budget. `unneeded_since` is by UID since when no pass
    has needed a pod that has a notice.
    """

    now: int
    generation: str
    settings: Settings
    entitlements: Mapping[EntitlementKey, Entitlement]
    waiting: Sequence[Group]
    live: Mapping[EntitlementKey, Sequence[Held]]
    nodes: Mapping[str, Node]
    rooms: Rooms
    pdbs: Sequence[PodDisruptionBudget] = ()
    spent: Sequence[Disruption] = ()
    budget_used_up_until: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    going: frozenset[str] = frozenset()
    unneeded_since: Mapping[str, int] = field(default_factory=dict)
    excess_milli: Mapping[tuple[str, str], int] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    gang_sizes: Mapping[GangKey, int] = field(default_factory=dict)
