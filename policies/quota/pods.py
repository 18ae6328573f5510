# SPDX-License-Identifier: Apache-2.0
"""What the quota model keeps of a pod: small, frozen, and shared where pods are alike.

From raw JSON to these is a shell's matter (reconciler/quota/view.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from policies.cluster.constraints import Constraints
from policies.cluster.fit import FitShape
from policies.pod.view import ContainerKind
from policies.quota.charge import ChargeRecord

Source: TypeAlias = tuple[str, str]
"""What makes pods again: a namespace, and a controller's UID or the name of a bare pod."""


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods of one namespace that are released all or none.

    `size` is None where it is missing or unreadable, and where `is_pod_group`: then it stands in
    the PodGroup (scheduling.k8s.io) of this name.
    """

    name: str
    size: int | None
    is_pod_group: bool = False


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
class Ask:
    """GPUs of one container, in the order in which containers start.

    `counts` is by resource name, as the pod has them now; `profile` is what the container's claim
    says it was given, empty without one.
    """

    kind: ContainerKind
    counts: Mapping[str, int]
    profile: str = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Shape:
    """What pods that are alike share. Equal shapes are one object, and are told by identity.

    What one costs depends on the policies: see policies.quota.charging. `fit` is what a node must
    offer. `claimed` tells that there is a decision of Sluice.
    """

    fit: FitShape
    asks: tuple[Ask, ...] = ()
    gpus: Mapping[str, int] = field(default_factory=dict)
    """Effective GPU request by resource name; empty for pods that take none."""
    profiles: tuple[str, ...] = ()
    """The sharing profiles that the claim names; empty without a claim."""
    claimed: bool = False
    exclusive: bool = False
    """Never taken back once released."""
    grace_seconds: int = 30

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
    `owner` is the controller as `Kind/name`, empty for a bare pod. `reason` is what Sluice last
    wrote of why it waits.
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
    mirror: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of a pod that takes GPUs or has our gate, which disruption budgets select it by."""
    eviction_cost: int = 0
    """Among equals the pod with the lowest is taken back first (policies.quota.reclaimable)."""
    do_not_disrupt: bool = False
    """Its owner asks that nobody disturbs it; counts when it is released, not any more after."""

    @property
    def is_waiting(self) -> bool:
        """Tell whether it waits for quota, and for nothing else, and is to live."""
        return self.phase is Phase.WAITING and self.deleted_at is None

    @property
    def gated_once(self) -> bool:
        """Tell whether it has a decision of ours: not older than Sluice, nor past the gate."""
        return self.shape.claimed

    @property
    def source(self) -> Source:
        """Return what makes such a pod again: its controller, or whoever makes it by its name."""
        return (self.namespace, self.owner_uid or self.name)

    @property
    def started_at(self) -> int | None:
        """Return since when it counts: when it was released, else made; None if it does not."""
        if self.phase is not Phase.LIVE:
            return None
        return self.created_at if self.charge is None else self.charge.at

    @property
    def holds_quota(self) -> bool:
        """Tell whether it takes GPUs or waits for them; all others only take room on nodes."""
        return bool(self.shape.gpus) or self.phase in (Phase.WAITING, Phase.HELD)
