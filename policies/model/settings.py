# SPDX-License-Identifier: Apache-2.0
"""The cluster-wide settings, part of the policy generation."""

from dataclasses import dataclass
from enum import StrEnum

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
class Settings:
    """Kind `Settings`, with the safe defaults of a set that has none.

    `workloads` are kinds beside the shipped ones, or in their place.
    """

    mode: Mode = Mode.ENFORCE
    namespaces_without_tenant: WithoutTenant = WithoutTenant.DENY
    failure_mode: FailureMode = FailureMode.DENY
    account: str = "system:serviceaccount:sluice:sluice"
    workloads: tuple[WorkloadKind, ...] = ()

    @property
    def observes(self) -> bool:
        """Tell whether decisions have no effect, so that no pass finds what another has done."""
        return self.mode is Mode.OBSERVE
