# SPDX-License-Identifier: Apache-2.0
"""The merge patches with which the quota controller changes pods (RFC 7386). Pure.

Each names the resourceVersion that it was made for: a stale one is a clean 409. Unlike operations
of a JSON patch, none can fail on a newer pod in another way, for what is taken away may be gone.
"""

from collections.abc import Mapping, Sequence

from policies.model.keys import CHARGE, QUOTA_GATE, REASON, VOIDED
from policies.model.labels import Expression
from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at
from policies.quota.charge import ChargeRecord

Patch = Mapping[str, object]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def release_patch(
    version: str, charge: ChargeRecord, node_selector: Mapping[str, str], reason: str
) -> Patch:
    """Return the patch that charges a pod whose last gate is ours, pins it and lets it go.

    `reason` is what the pod says of why it waits; that goes too.
    """
    annotations: dict[str, object] = {CHARGE: charge.to_annotation()}
    if reason:
        annotations[REASON] = None
    spec: dict[str, object] = {"schedulingGates": None}
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    return {"metadata": _metadata(version, annotations), "spec": spec}


def narrowed(patch: Patch, raw: JsonObject, expressions: Sequence[Expression]) -> Patch:
    """Return the patch for the pod as it was just read, with node affinity narrowed as well.

    Kubernetes lets a gated pod be narrowed only: expressions are added to each term, and a term is
    added only where there was none. Raises MalformedError.
    """
    added = [expression.to_json() for expression in expressions]
    affinity = object_at(object_at(raw, "spec"), "affinity")
    required = object_at(object_at(affinity, "nodeAffinity"), _REQUIRED)
    terms = [
        {**term, "matchExpressions": [*objects_at(term, "matchExpressions"), *added]}
        for term in objects_at(required, "nodeSelectorTerms")
    ]
    terms = terms or [{"matchExpressions": added}]
    spec = {
        **object_at(patch, "spec"),
        "affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}},
    }
    return {**patch, "spec": spec}


def reason_patch(version: str, reason: str) -> Patch:
    """Return the patch that says on a pod why it waits."""
    return {"metadata": _metadata(version, {REASON: reason})}


def void_patch(version: str, leader: str) -> Patch:
    """Return a patch that changes nothing but the version, so that no older write can land."""
    return {"metadata": _metadata(version, {VOIDED: leader})}


def is_gated(raw: JsonObject) -> bool:
    """Tell whether a pod as it was just read has our gate, and no other. Raises MalformedError."""
    gates = objects_at(object_at(raw, "spec"), "schedulingGates")
    return [gate.get("name") for gate in gates] == [QUOTA_GATE]


def _metadata(version: str, annotations: Mapping[str, object]) -> Patch:
    return {"resourceVersion": version, "annotations": dict(annotations)}
