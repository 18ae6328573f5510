# SPDX-License-Identifier: Apache-2.0
"""The merge patches with which the quota controller changes pods (RFC 7386). Pure.

Each names the resourceVersion that it was made for: a stale one is a clean 409. Unlike operations
of a JSON patch, none can fail on a newer pod in another way, for what is taken away may be gone.
"""

from collections.abc import Callable, Mapping, Sequence

from policies.model.keys import CHARGE, QUOTA_GATE, REASON, TERM, VOIDED
from policies.model.request import JsonObject
from policies.model.term import LeaseTerm
from policies.pod.reading import object_at, objects_at
from policies.quota.charge import ChargeRecord
from policies.rewrite.pinning import Pins, pinned
from policies.rewrite.preferring import preferring

Patch = Mapping[str, object]


def release_patch(
    version: str, charge: ChargeRecord, spec: JsonObject, reason: str, term: LeaseTerm | None
) -> Patch:
    """Return the patch that charges a pod whose last gate is ours, pins it and lets it go.

    `spec` holds what pins it: the parts of its spec that become others. `reason` is what the pod
    says of why it waits; that goes too. `term` is the leader's, by which a past one is refused.
    """
    annotations: dict[str, object] = {CHARGE: charge.to_annotation()}
    if term is not None:
        annotations[TERM] = term.to_annotation()
    if reason:
        annotations[REASON] = None
    return {
        "metadata": _metadata(version, annotations),
        "spec": {"schedulingGates": None, **spec},
    }


def pinning(
    raw: JsonObject, pins: Pins, prefer: Callable[[JsonObject], Sequence[str]] | None = None
) -> JsonObject:
    """Return the parts of a pod's spec that pin it, from the pod as it was just read.

    `prefer` names the nodes that it should prefer once it is pinned. Raises MalformedError.
    """
    before = object_at(raw, "spec")
    after = pinned(before, pins)
    if prefer is not None:
        after = preferring(after, prefer({**raw, "spec": after}))
    return {key: value for key, value in after.items() if before.get(key) != value}


def reason_patch(version: str, reason: str) -> Patch:
    """Return the patch that says on a pod why it waits."""
    return {"metadata": _metadata(version, {REASON: reason})}


def void_patch(version: str, leader: str) -> Patch:
    """Return a patch that changes nothing but the version, so that no older write can land.

    It says another thing each time: the API server makes no new version of what is as it was.
    """
    return {"metadata": _metadata(version, {VOIDED: f"{version} by {leader}"})}


def is_gated(raw: JsonObject) -> bool:
    """Tell whether a pod as it was just read has our gate, and no other. Raises MalformedError."""
    gates = objects_at(object_at(raw, "spec"), "schedulingGates")
    return [gate.get("name") for gate in gates] == [QUOTA_GATE]


def _metadata(version: str, annotations: Mapping[str, object]) -> Patch:
    return {"resourceVersion": version, "annotations": dict(annotations)}
