# SPDX-License-Identifier: Apache-2.0
"""`decide()`: the one entry to the core, for webhook, command line and background audit alike.

Pure: the same policies, facts and request give the same decision. It never raises for any JSON in
the object; whatever it raises is a fault of Sluice.
"""

from policies.admission import claims, pods, subresources, updates, workloads
from policies.admission.answering import refuse
from policies.model.decision import Decision, Verdict, Violation
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.request import Operation, Request
from policies.pod.reading import MalformedError


def decide(policies: PolicySet, facts: Facts, request: Request) -> Decision:
    """Return the decision on one admission request, whichever pass asks."""
    try:
        return _route(policies, facts, request)
    except MalformedError as error:
        return refuse(policies, facts, Violation(Reason.MALFORMED_OBJECT, str(error)))
    except RecursionError:
        violation = Violation(Reason.MALFORMED_OBJECT, "the object is nested too deep")
        return refuse(policies, facts, violation)


def _route(policies: PolicySet, facts: Facts, request: Request) -> Decision:
    raw = request.object
    if raw is None:
        return not_ours(policies, facts)
    match (request.group, request.resource, request.subresource, request.operation):
        case ("", "pods", "", Operation.CREATE):
            return pods.decide_pod(policies, facts, request, raw)
        case ("", "pods", "", Operation.UPDATE):
            return updates.decide_update(policies, facts, request, raw)
        case ("", "pods", "ephemeralcontainers", Operation.UPDATE):
            return subresources.decide_ephemeral(policies, facts, request, raw)
        case ("", "pods", "resize", Operation.UPDATE):
            return subresources.decide_resize(policies, facts, request, raw)
        case ("resource.k8s.io", "resourceclaims" | "resourceclaimtemplates", "", _):
            return claims.decide_claim(policies, facts, request, raw)
        case (group, resource, "", Operation.CREATE | Operation.UPDATE) if (
            kind := policies.workloads.of_resource(group, resource)
        ):
            return workloads.decide_workload(policies, facts, request, raw, kind)
        case _:
            return not_ours(policies, facts)


def not_ours(policies: PolicySet, facts: Facts) -> Decision:
    """Return the answer for what Sluice has no say in: bindings, evictions, deletions."""
    return Decision(
        verdict=Verdict.ALLOWED,
        generation=policies.generation,
        stale_seconds=facts.stale_seconds,
    )
