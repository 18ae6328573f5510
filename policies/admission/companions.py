# SPDX-License-Identifier: Apache-2.0
"""Who may sit on the same cards in forms without a wall: by anti-affinity between pods.

A node shares in one way only, so keeping pods apart by node keeps them apart on its cards. Pods
are told by a label that only Sluice writes; Kubernetes applies anti-affinity both ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.admission.grant import Grant
from policies.model.keys import COHORT_LABEL, HOSTNAME_LABEL, TENANT_LABEL
from policies.model.profile import ShareWith, SharingMode
from policies.model.request import JsonObject
from policies.model.tenant import Tenant

_WITHOUT_WALL = (SharingMode.TIME_SLICE, SharingMode.MPS)


@dataclass(frozen=True, slots=True)
class Companions:
    """The labels that tell whose a pod is, and the terms that keep others away."""

    labels: Mapping[str, str] = field(default_factory=dict)
    anti_affinity: tuple[JsonObject, ...] = ()


def companions_of(tenant: Tenant, grants: tuple[Grant, ...]) -> Companions:
    """Return what a pod carries because of whom its forms share with."""
    open_forms = [g.profile for g in grants if g.profile.mode in _WITHOUT_WALL]
    if not open_forms:
        return Companions()
    # A tenant of no cohort shares with nobody else.
    cohort = tenant.cohort or tenant.name
    terms: dict[str, JsonObject] = {}
    for profile in open_forms:
        match profile.share_with:
            case ShareWith.TENANT:
                terms[TENANT_LABEL] = _others(TENANT_LABEL, tenant.name)
            case ShareWith.COHORT:
                terms[COHORT_LABEL] = _others(COHORT_LABEL, cohort)
            case ShareWith.ANY:
                pass
    return Companions({COHORT_LABEL: cohort, TENANT_LABEL: tenant.name}, tuple(terms.values()))


def _others(label: str, value: str) -> JsonObject:
    """Return a term that no pod of another value of the label, in any namespace, may match."""
    return {
        "labelSelector": {
            "matchExpressions": [
                {"key": label, "operator": "Exists"},
                {"key": label, "operator": "NotIn", "values": [value]},
            ]
        },
        "namespaceSelector": {},
        "topologyKey": HOSTNAME_LABEL,
    }
