# SPDX-License-Identifier: Apache-2.0
"""One whole, consistent set of documents: what decisions are made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.cel import Environment
from policies.model.exemption import Exemption
from policies.model.policy import Policy
from policies.model.pool import Pool
from policies.model.profile import Profile
from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Settings
from policies.model.tenant import Tenant
from policies.model.workload import Workloads
from policies.vendors import Catalog

_RECLAIM: Final = ReclaimPolicy()


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Compiled documents. `generation` is the hash of their content; a set is served whole or not.

    `policies` is in (order, name) order. `tenant_by_namespace` holds the namespaces that are
    claimed by name; `selecting_tenants` those that claim by label, in name order.
    """

    generation: str
    settings: Settings
    catalog: Catalog
    environment: Environment
    tenants: Mapping[str, Tenant]
    tenant_by_namespace: Mapping[str, Tenant]
    selecting_tenants: tuple[Tenant, ...]
    profiles: Mapping[str, Profile]
    policies: tuple[Policy, ...]
    _by_tenant: dict[str | None, tuple[Policy, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    exemptions: tuple[Exemption, ...] = ()
    pools: Mapping[str, Pool] = field(default_factory=dict)
    reclaim_policies: tuple[ReclaimPolicy, ...] = ()

    def owners(self, namespace: str, labels: Mapping[str, str]) -> tuple[Tenant, ...]:
        """Return the tenants that claim a namespace with these labels; only a single one owns it.

        A name claimed by a document wins over any label, since tenants may write labels.
        """
        named = self.tenant_by_namespace.get(namespace)
        if named is not None:
            return (named,)
        return tuple(
            tenant
            for tenant in self.selecting_tenants
            if tenant.selector is not None and tenant.selector.matches(labels)
        )

    def reclaim_policy_of(self, cohort: str | None) -> ReclaimPolicy:
        """Return the policy that names a cohort, else one for all, else the defaults."""
        for policy in self.reclaim_policies:
            if policy.cohorts is not None and cohort in policy.cohorts:
                return policy
        return next((p for p in self.reclaim_policies if p.cohorts is None), _RECLAIM)

    @property
    def workloads(self) -> Workloads:
        """Return the kinds whose pods are told of: the shipped ones and those of the settings."""
        return self.catalog.workloads.joined(self.settings.workloads)

    def policies_of(self, tenant: Tenant | None) -> tuple[Policy, ...]:
        """Return the policies that may speak of a tenant's pods, in order."""
        name = tenant.name if tenant else None
        found = self._by_tenant.get(name)
        if found is None:
            found = tuple(
                policy
                for policy in self.policies
                if policy.match.tenants is None or name in policy.match.tenants
            )
            # Names are those of this set's tenants, so this cannot grow.
            self._by_tenant[name] = found
        return found
