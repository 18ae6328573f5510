# SPDX-License-Identifier: Apache-2.0
"""One pod through both passes, as the API server takes it."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, cast

import jsonpatch

from policies.decide import decide
from policies.model.decision import Decision
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import JsonObject, Operation, Phase, Request, User
from policies.pod.defaulting import defaulted
from policies.preview.expand import PreviewPod

ANYBODY = User("kubernetes-admin", groups=("system:authenticated",))


@dataclass(frozen=True, slots=True)
class Preview:
    """What comes of a pod. `after` is None where it is refused."""

    pod: PreviewPod
    decision: Decision
    before: JsonObject
    after: JsonObject | None


def preview(policies: PolicySet, facts: Facts, pod: PreviewPod, user: User = ANYBODY) -> Preview:
    """Play the mutating pass, its patch and the validating pass. Raises MalformedError."""
    before = defaulted(pod.manifest, pod.namespace)
    request = Request(
        phase=Phase.MUTATE,
        operation=Operation.CREATE,
        group="",
        resource="pods",
        subresource="",
        kind="Pod",
        namespace=pod.namespace,
        name="",
        user=pod.user or user,
        object=before,
        old_object=None,
        raw=review_request(pod, pod.user or user),
    )
    mutated = decide(policies, facts, request)
    if not mutated.allowed:
        return Preview(pod, mutated, before, None)
    after = apply_patch(before, mutated)
    validated = decide(policies, facts, replace(request, phase=Phase.VALIDATE, object=after))
    if not validated.allowed:
        return Preview(pod, validated, before, None)
    return Preview(pod, mutated, before, after)


def apply_patch(pod: JsonObject, decision: Decision) -> JsonObject:
    """Return the pod as the API server stores it after a decision's patch."""
    patched = jsonpatch.apply_patch(
        deepcopy(dict(pod)), [dict(operation) for operation in decision.patch]
    )
    return cast("dict[str, Any]", patched)


def review_request(pod: PreviewPod, user: User) -> JsonObject:
    """Return the request of an AdmissionReview, but for its uid and objects."""
    return {
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "",
        "namespace": pod.namespace,
        "operation": str(Operation.CREATE),
        "userInfo": {"username": user.username, "groups": list(user.groups)},
        "dryRun": False,
    }
