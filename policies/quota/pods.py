# SPDX-License-Identifier: Apache-2.0
"""What the quota model keeps of a pod: small, frozen, and shared where pods are alike.

From raw JSON to these is a shell's matter (reconciler/quota/view.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from policies.cluster.constraints import Constraints
from policies.cluster.fit import FitShape
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that are released all or none. `size` is None where it is missing or unreadable."""

    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Notice:
    """That a pod will be taken back: for whom, by which rule, and when (Unix seconds).

    `refused_at` is since when disruption budgets have refused its eviction.
    """

    beneficiary: str
    rule: str
    at: int
    evict_at: int
    refused_at: int | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What pods that are alike share; equal shapes are one object.

    `claim` is the decision annotation, from which the form is known; `amount` what the pod costs
    as far as it can be told from the pod alone, None where only its node tells (a share that
    skipped the gate). `fit` is what a node must offer.
    """

    fit: FitShape
    amount: Amount | None
    gpus: Mapping[str, int]
    """Effective GPU request by resource name; empty for pods that take none."""
    profiles: tuple[str, ...] = ()
    """The sharing profiles that the claim names; empty without a claim."""
    exclusive: bool = False
    """Never taken back once released."""
    grace_seconds: int = 30
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def constraints(self) -> Constraints:
        """Return what the pod asks of a node's labels and taints."""
        return self.fit.constraints


class Phase(Enum):
    """How far a pod is. A pod with gates of others is waiting, but not for us."""

    WAITING = "Waiting"
    """Our gate is its last one."""
    HELD = "Held"
    """It has our gate and one of others: neither charged nor reserved for."""
    LIVE = "Live"
    """No gate of ours; not ended. It counts, whether it is on a node yet or not."""
    ENDED = "Ended"
    """Succeeded or Failed: its devices are free."""


@dataclass(frozen=True, slots=True)
class QuotaPod:
    """A pod as its watch last showed it. Times are Unix seconds.

    `deleted_at` is the deletionTimestamp (it includes the grace period), None while it is to live.
    `owner` is the controller as `Kind/name`, empty for a bare pod. `started_at` is when it was
    released, else None. `reason` is what Sluice last wrote of why it waits.
    """

    namespace: str
    name: str
    uid: str
    version: str
    created_at: int
    phase: Phase
    shape: Shape
    priority: int = 0
    node: str = ""
    deleted_at: int | None = None
    charge: ChargeRecord | None = None
    gang: Gang | None = None
    owner: str = ""
    owner_uid: str = ""
    notice: Notice | None = None
    reason: str = ""
    gated_once: bool = True
    """It has a decision of ours; False for pods that are older than Sluice or skipped the gate."""
    mirror: bool = False
    eviction_cost: int = 0
    """Among equals the pod with the lowest is taken back first (policies.quota.reclaimable)."""
    do_not_disrupt: bool = False
    """Its owner asks that nobody disturbs it; counts when it is released, not any more after."""

    @property
    def is_waiting(self) -> bool:
        """Tell whether it waits for quota, and for nothing else, and is to live."""
        return self.phase is Phase.WAITING and self.deleted_at is None
