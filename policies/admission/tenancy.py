# SPDX-License-Identifier: Apache-2.0
"""Which tenant a namespace belongs to."""

from policies.model.decision import Violation
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.tenant import Tenant


def tenant_of(policies: PolicySet, facts: Facts, namespace: str) -> Tenant | Violation | None:
    """Return the namespace's tenant, None if it has none, or why that cannot be told.

    Where only names claim, a namespace that has not been seen is no hindrance.
    """
    named = policies.tenant_by_namespace.get(namespace)
    if named is not None or not policies.selecting_tenants:
        return named
    known = facts.cluster.namespaces.get(namespace)
    if known is None:
        return Violation(
            Reason.NAMESPACE_UNKNOWN,
            f"namespace {namespace} has not been seen yet, so its tenant is not known: try again",
        )
    found = policies.owners(namespace, known.labels)
    if len(found) > 1:
        names = ", ".join(tenant.name for tenant in found)
        return Violation(
            Reason.AMBIGUOUS_TENANT,
            f"namespace {namespace} is claimed by tenants {names}: ask the platform team",
        )
    return found[0] if found else None
