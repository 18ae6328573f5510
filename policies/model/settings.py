# SPDX-License-Identifier: Apache-2.0
"""The cluster-wide settings, part of the policy generation."""

from dataclasses import dataclass
from enum import StrEnum

from policies.model.placement import SpreadSettings
from policies.model.workload import WorkloadKind


class Mode(StrEnum):
    """Whether decisions take effect."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"
    """Decide, log and count; change and refuse nothing."""


class WithoutTenant(StrEnum):
    """What a GPU pod gets in a namespace of no tenant."""

    DENY = "Deny"
    WARN = "Warn"
    ALLOW = "Allow"


class FailureMode(StrEnum):
    """What an internal error answers for a pod that touches GPUs."""

    DENY = "Deny"
    ALLOW = "Allow"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work may be disturbed within `per_seconds`; None sets no bound."""

    per_tenant: int | None = None
    per_node: int | None = None
    per_cluster: int | None = None
    per_seconds: int = 600


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How pods wait.

    After `reserve_after_seconds` the oldest pod or gang that is held back reserves what it lacks,
    for `reserve_for_seconds` at a time; 0 reserves nothing.
    With `release_without_nodes` pods of the default pool are released though no node seen could
    hold them, so that a cluster autoscaler sees them.
    """

    reserve_after_seconds: int = 600
    reserve_for_seconds: int = 1800
    release_without_nodes: bool = False
    gang_timeout_seconds: int = 300
    """How long a gang of which some were released may lack the rest before it is taken back."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Kind `Settings`, with the safe defaults of a set that has none.

    `workloads` are kinds beside the shipped ones, or in their place.
    """

    mode: Mode = Mode.ENFORCE
    namespaces_without_tenant: WithoutTenant = WithoutTenant.DENY
    failure_mode: FailureMode = FailureMode.DENY
    account: str = "system:serviceaccount:sluice:sluice"
    workloads: tuple[WorkloadKind, ...] = ()
    budget: Budget = Budget()
    priority_threshold: int | None = None
    """Pods of a lower priority never have others evicted for them; None sets no threshold."""
    queue: QueueSettings = QueueSettings()
    placement: SpreadSettings | None = None
    """How nodes are ranked of which no pool says it; None leaves it to whoever ranks them."""

    @property
    def observes(self) -> bool:
        """Tell whether decisions have no effect, so that no pass finds what another has done."""
        return self.mode is Mode.OBSERVE
