# SPDX-License-Identifier: Apache-2.0
"""A pod being created: from what was received to what it deserves.

Both passes take this path. The first answers with the patch to the pod as it should be; the
second refuses a pod that is not so already.
"""

from dataclasses import replace

from policies.admission.answering import Subject, answer, refuse
from policies.admission.believing import believed
from policies.admission.context import Context
from policies.admission.outcome import Outcome, decide_forms
from policies.admission.tenancy import tenant_of
from policies.checks.registry import run_checks
from policies.model.decision import Decision, Violation
from policies.model.facts import Facts
from policies.model.keys import DECISION, MIRROR_ANNOTATION
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.request import JsonObject, Phase, Request
from policies.model.settings import WithoutTenant
from policies.model.tenant import Tenant
from policies.pod.asked import read_asked
from policies.pod.reading import string_at
from policies.pod.view import MAX_CONTAINERS, PodView, count_containers, read_pod
from policies.rewrite.claim import read_claim
from policies.rewrite.project import restore


def decide_pod(policies: PolicySet, facts: Facts, request: Request, raw: JsonObject) -> Decision:
    """Decide on a pod being created. Raises MalformedError."""
    subject = read_subject(policies, facts, request, raw)
    if isinstance(subject, Decision):
        return subject
    if is_mirror(request, subject.context.received):
        # A kubelet reports what runs already; it can be neither changed nor refused, only counted.
        return answer(replace(subject, violations=()), Outcome(), change=False)
    return answer(subject, outcome_of(subject.context))


def read_subject(
    policies: PolicySet, facts: Facts, request: Request, raw: JsonObject
) -> Subject | Decision:
    """Find the original pod and its tenant, or refuse a pod too large to look at."""
    containers = count_containers(raw)
    if containers > MAX_CONTAINERS:
        violation = Violation(
            Reason.TOO_MANY_CONTAINERS,
            f"{containers} containers; at most {MAX_CONTAINERS} are decided on",
        )
        return refuse(policies, facts, violation)
    received = read_pod(raw, policies.catalog)
    claim = read_claim(received.annotations.get(DECISION))
    if claim is not None and request.phase is Phase.MUTATE:
        # The second pass changes nothing: there, what is claimed must be demanded anew.
        claim = believed(claim, policies)
    original = restore(raw, claim, policies.catalog)
    pod = received if original is raw else read_pod(original, policies.catalog)
    asked, malformed = read_asked(pod)
    tenant = tenant_of(policies, facts, request.namespace)
    context = Context(
        policies=policies,
        facts=facts,
        request=request,
        received=received,
        pod=pod,
        asked=asked,
        tenant=tenant if isinstance(tenant, Tenant) else None,
        untold=tenant if isinstance(tenant, Violation) else None,
        claimed=claim.profiles if claim and request.phase is Phase.VALIDATE else {},
    )
    return Subject(context, claim, malformed)


def outcome_of(context: Context) -> Outcome:
    """Return what the pod deserves, whoever owns its namespace."""
    if not context.takes_gpus:
        return Outcome(violations=run_checks(context))
    if context.tenant is not None:
        return decide_forms(context, context.tenant)
    if context.untold is not None:
        return Outcome(violations=(context.untold, *run_checks(context)))
    return _without_tenant(context)


def _without_tenant(context: Context) -> Outcome:
    violations = run_checks(context)
    text = f"namespace {context.request.namespace} belongs to no tenant"
    match context.policies.settings.namespaces_without_tenant:
        case WithoutTenant.DENY:
            own = Violation(
                Reason.NO_TENANT, f"{text}, so it has no GPUs: ask the platform team for a tenant"
            )
            return Outcome(violations=(own, *violations))
        case WithoutTenant.WARN:
            return Outcome(
                violations=violations, warnings=(f"sluice: {text}: its GPUs are not managed",)
            )
        case WithoutTenant.ALLOW:
            return Outcome(violations=violations)


def is_mirror(request: Request, pod: PodView) -> bool:
    """Tell a mirror pod made by its own node's kubelet from one that only says so.

    Source: the node authorizer's naming of kubelets, `system:node:<name>`.
    """
    node = string_at(pod.spec, "nodeName")
    return (
        bool(node)
        and MIRROR_ANNOTATION in pod.annotations
        and request.user.username == f"system:node:{node}"
        and "system:nodes" in request.user.groups
    )
