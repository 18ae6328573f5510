# SPDX-License-Identifier: Apache-2.0
"""Resource claims and their templates: GPUs through them are refused for now.

A pod that uses a claim is refused in its own right (policies.checks.resource_claims); here the
claim is, so that its maker learns it at once. Source of the fields: `resource.k8s.io/v1`.
"""

from collections.abc import Iterator

from policies.model.decision import Decision, Verdict, Violation
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.request import JsonObject, Operation, Request
from policies.pod.reading import object_at, objects_at, string_at

_TEMPLATES = "resourceclaimtemplates"


def decide_claim(policies: PolicySet, facts: Facts, request: Request, raw: JsonObject) -> Decision:
    """Refuse to make a claim of a GPU class; what exists may be updated and end."""
    spec = object_at(raw, "spec")
    if request.resource == _TEMPLATES:
        spec = object_at(spec, "spec")
    words = policies.catalog.device_class_words
    violations = tuple(
        Violation(
            Reason.CLAIMS_UNSUPPORTED,
            f"device class {name[:128]} gives GPUs that no policy saw: ask for nvidia.com/gpu "
            "under resources.limits of a pod",
        )
        for name in dict.fromkeys(_classes(spec))
        if request.operation is Operation.CREATE and any(w in name.lower() for w in words)
    )
    return Decision(
        verdict=Verdict.DENIED if violations else Verdict.ALLOWED,
        generation=policies.generation,
        violations=violations,
        touches_gpus=bool(violations),
        stale_seconds=facts.stale_seconds,
    )


def _classes(spec: JsonObject) -> Iterator[str]:
    for asked in objects_at(object_at(spec, "devices"), "requests"):
        # v1 nests the class under `exactly`; v1beta1 had it beside the name.
        alternatives = (asked, object_at(asked, "exactly"), *objects_at(asked, "firstAvailable"))
        for alternative in alternatives:
            if name := string_at(alternative, "deviceClassName"):
                yield name
