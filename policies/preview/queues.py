# SPDX-License-Identifier: Apache-2.0
"""Kueue's queues beside rewritten pods: they count the template, which pods no longer ask for."""

from collections.abc import Iterator

from policies.model.policy import Enforcement, Policy
from policies.model.policyset import PolicySet
from policies.model.profile import SharingMode
from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at, string_at
from policies.vendors import Vendor

_KUEUE = "kueue.x-k8s.io/"


def miscounted(policies: PolicySet, manifest: JsonObject) -> Iterator[str]:
    """Yield what a ClusterQueue counts otherwise than pods will take it; nothing of other kinds.

    Source of the fields: Kueue `kueue.x-k8s.io` ClusterQueue. Raises MalformedError.
    """
    kind, api_version = string_at(manifest, "kind"), string_at(manifest, "apiVersion")
    if kind != "ClusterQueue" or not api_version.startswith(_KUEUE):
        return
    groups = objects_at(object_at(manifest, "spec"), "resourceGroups")
    covered = {name for group in groups for name in _names(group)}
    for vendor in policies.catalog.vendors:
        tenants = _given_shares(policies, vendor) if vendor.whole in covered else []
        if tenants:
            yield (
                f"covers {vendor.whole}, of which tenants may get shares "
                f"({', '.join(tenants)}): Kueue counts what templates ask for, not what pods get. "
                "Leave these tenants' namespaces out, or transform the resource"
            )


def _names(group: JsonObject) -> Iterator[str]:
    names = group.get("coveredResources")
    yield from (n for n in names if isinstance(n, str)) if isinstance(names, list) else ()


def _given_shares(policies: PolicySet, vendor: Vendor) -> list[str]:
    return [
        tenant.name
        for tenant in policies.tenants.values()
        if any(_gives_shares(policies, p, vendor) for p in policies.policies_of(tenant))
    ]


def _gives_shares(policies: PolicySet, policy: Policy, vendor: Vendor) -> bool:
    """Tell whether a policy in force makes less than a whole device of one."""
    if policy.enforcement is not Enforcement.ENFORCE:
        return False
    names = policy.fit.candidates if policy.fit else (policy.profile,)
    profiles = (policies.profiles[name] for name in names if name is not None)
    return any(p.vendor == vendor.name and p.mode is not SharingMode.EXCLUSIVE for p in profiles)
