# SPDX-License-Identifier: Apache-2.0
"""Who may sit on the same cards in forms without a wall: by anti-affinity between pods.

A node shares in one way only, so keeping pods apart by node keeps them apart on its cards. Pods
are told by a label that only Sluice writes; Kubernetes applies anti-affinity both ways.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from policies.admission.grant import Grant
from policies.model.keys import COHORT_LABEL, HOSTNAME_LABEL, TENANT_LABEL
from policies.model.profile import ShareWith, SharingMode
from policies.model.request import JsonObject
from policies.model.tenant import Tenant
from policies.pod.reading import object_at, objects_at

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
    labels = {TENANT_LABEL: tenant.name}
    if tenant.cohort is not None:
        labels[COHORT_LABEL] = tenant.cohort
    terms: dict[str, JsonObject] = {}
    for profile in open_forms:
        match profile.share_with:
            case ShareWith.TENANT:
                terms[TENANT_LABEL] = _others(TENANT_LABEL, tenant.name)
            case ShareWith.COHORT:
                # A tenant of no cohort shares with nobody else.
                label = COHORT_LABEL if COHORT_LABEL in labels else TENANT_LABEL
                terms[label] = _others(label, labels[label])
            case ShareWith.ANY:
                pass
    return Companions(labels, tuple(terms.values()))


def is_own_term(term: JsonObject) -> bool:
    """Tell whether an anti-affinity term is one that Sluice writes, for whichever tenant."""
    return any(term == _others(label, value) for label, value in _values(term))


def _values(term: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each label of Sluice that a term names, with the value that it lets in."""
    for expression in objects_at(object_at(term, "labelSelector"), "matchExpressions"):
        key, values = expression.get("key"), expression.get("values")
        if key in (TENANT_LABEL, COHORT_LABEL) and isinstance(values, list) and len(values) == 1:
            yield str(key), values[0]


def _others(label: str, value: str) -> JsonObject:
    """Return a term that matches the pods of Sluice with another value of the label, or none."""
    return {
        "labelSelector": {
            "matchExpressions": [
                {"key": TENANT_LABEL, "operator": "Exists"},
                {"key": label, "operator": "NotIn", "values": [value]},
            ]
        },
        "namespaceSelector": {},
        "topologyKey": HOSTNAME_LABEL,
    }
