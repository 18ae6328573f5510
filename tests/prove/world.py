# SPDX-License-Identifier: Apache-2.0
"""What a proof knows of its cluster: tenants, their quotas and what resources cost.

The numbers are the test's own and exact (Fractions of a thousandth of a GPU); nothing of Sluice's
documents, ledger or rounding may be used here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who owns which namespaces, and how much of the GPUs, in thousandths."""

    name: str
    namespaces: frozenset[str]
    guarantee: Fraction
    ceiling: Fraction
    cohort: str = ""


@dataclass(frozen=True)
class World:
    """Tenants, what one of each resource costs (thousandths of a GPU), and what nodes offer.

    `devices` counts each resource over all nodes.
    """

    tenants: tuple[Tenant, ...]
    costs: Mapping[str, Fraction]
    devices: Mapping[str, int] = field(default_factory=dict)
    most_grace_seconds: int = 600
    """Pods that may take longer to end are never taken back, and must fit the guarantee."""

    @cached_property
    def by_namespace(self) -> Mapping[str, Tenant]:
        """The tenants by the namespaces that they own."""
        return {name: tenant for tenant in self.tenants for name in tenant.namespaces}

    @cached_property
    def by_name(self) -> Mapping[str, Tenant]:
        """The tenants by name."""
        return {tenant.name: tenant for tenant in self.tenants}

    @cached_property
    def unguaranteed(self) -> Fraction:
        """What the nodes have beyond all guarantees: it can be borrowed at any time."""
        offered = sum((self.costs[name] * n for name, n in self.devices.items()), Fraction(0))
        return max(Fraction(0), offered - sum(t.guarantee for t in self.tenants))

    def cost(self, devices: Mapping[str, int]) -> Fraction:
        """Return what so many of each resource cost."""
        return sum((self.costs[name] * n for name, n in devices.items()), Fraction(0))

    def devices_of(self, pod: Json) -> dict[str, int]:
        """Return how many of each known resource a pod takes.

        The larger of all containers with the sidecars, and each init container with the sidecars
        before it (Kubernetes: Pod Lifecycle, resource sharing within containers).
        """
        spec = pod["spec"]
        taken = {}
        for name in self.costs:
            sidecars = peak = 0
            for container in spec.get("initContainers", ()):
                asked = _count(container, name)
                if container.get("restartPolicy") == "Always":
                    sidecars += asked
                    peak = max(peak, sidecars)
                else:
                    peak = max(peak, sidecars + asked)
            together = sidecars + sum(_count(each, name) for each in spec["containers"])
            if most := max(peak, together):
                taken[name] = most
        return taken


def rounded(cost: Fraction) -> int:
    """Return a pod's cost as people see it: whole thousandths, rounded up."""
    return ceil(cost)


def _count(container: Json, name: str) -> int:
    resources = container.get("resources", {})
    found = resources.get("limits", {}).get(name, resources.get("requests", {}).get(name, 0))
    return int(found)
