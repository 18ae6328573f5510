# SPDX-License-Identifier: Apache-2.0
"""Workloads: what will become of their pods, told to the person who applies them.

The pods are what is decided on, later; here the same decision is taken on each pod template so
that `kubectl apply` shows it. Templates are never changed: their operators count the GPUs in them.
Only what could never run is refused, and only when the template is new: an update that does not
touch it (a scale-down, a status) must always go through.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from policies.admission.answering import describe
from policies.admission.pods import outcome_of, read_subject
from policies.admission.workload_advice.registry import advice
from policies.admission.workload_wording import Judged, Work, told
from policies.model.decision import Decision, Verdict, Violation
from policies.model.facts import Facts
from policies.model.policy import Enforcement
from policies.model.policyset import PolicySet
from policies.model.reasons import PERMANENT, Reason
from policies.model.request import JsonObject, Operation, Phase, Request
from policies.model.workload import WorkloadKind
from policies.pod.reading import MalformedError, object_at
from policies.pod.view import MAX_CONTAINERS, count_containers
from policies.workloads.pods import PodSet, pod_sets
from policies.workloads.source import name_of

MAX_TEMPLATES = 200
"""So many templates of one object are looked at."""

_POD = {"group": "", "version": "v1", "kind": "Pod"}
_PODS = {"group": "", "version": "v1", "resource": "pods"}
_POD_CREATION = {
    "kind": _POD,
    "requestKind": _POD,
    "resource": _PODS,
    "requestResource": _PODS,
    "name": "",
    "operation": str(Operation.CREATE),
}
"""What expressions see as `request` beside the user."""


def decide_workload(
    policies: PolicySet, facts: Facts, request: Request, raw: JsonObject, kind: WorkloadKind
) -> Decision:
    """Warn of what the pods will get; refuse what none could ever get. Raises MalformedError."""
    silent = Decision(
        verdict=Verdict.ALLOWED,
        generation=policies.generation,
        stale_seconds=facts.stale_seconds,
    )
    if request.phase is Phase.MUTATE or _made_by_controller(raw):
        return silent
    is_new = request.operation is Operation.CREATE
    work = Work(policies, facts, kind.kind.lower(), name_of(raw), is_new)
    judged = [
        found for found in _judge_all(work, request, raw, kind) if found.decision.touches_gpus
    ]
    if not judged:
        return silent
    hopeless = [found for found in judged if _could_never_run(found.decision)]
    if hopeless:
        return replace(hopeless[0].decision, violations=_violations(hopeless))
    return replace(
        judged[0].decision,
        verdict=Verdict.ALLOWED,
        violations=_violations(judged),
        warnings=(*told(work, judged), *advice(work, kind, raw, judged)),
    )


def _judge_all(
    work: Work, request: Request, raw: JsonObject, kind: WorkloadKind
) -> Iterator[Judged]:
    """Judge every template that is new or has changed, as far as the time of a review allows."""
    workloads = work.policies.workloads
    old = _pods(pod_sets(workloads, kind, request.old_object or {}), request.namespace)
    containers = 0
    for number, pods in enumerate(pod_sets(workloads, kind, raw)):
        if number >= MAX_TEMPLATES or containers > MAX_CONTAINERS:
            yield _not_judged(work, pods, _TOO_MANY)
            return
        try:
            pod = pods.pod(request.namespace)
            if pod in old.get(pods.name, ()):
                continue
            containers += count_containers(pod)
            yield _judge(work, pods, pod_request(request, pods, pod))
        except MalformedError as error:
            message = f"the template is not that of a pod: {error}"
            advice = Violation(Reason.MALFORMED_OBJECT, message, enforcement=Enforcement.WARN)
            yield _not_judged(work, pods, advice)


_TOO_MANY = Violation(
    Reason.TOO_MANY_CONTAINERS,
    f"more than {MAX_CONTAINERS} containers or {MAX_TEMPLATES} templates: "
    "from here on none is looked at",
    enforcement=Enforcement.WARN,
)


def _pods(sets: Iterator[PodSet], namespace: str) -> Mapping[str, Sequence[JsonObject]]:
    """Return a pod of each template by the template's name, those left out that are none."""
    found: dict[str, list[JsonObject]] = {}
    for pods in islice(sets, MAX_TEMPLATES):
        with suppress(MalformedError):
            found.setdefault(pods.name, []).append(pods.pod(namespace))
    return found


def _judge(work: Work, pods: PodSet, request: Request) -> Judged:
    """Decide on one pod as if it were being created. Raises MalformedError."""
    subject = read_subject(work.policies, work.facts, request, request.object or {})
    if isinstance(subject, Decision):
        return Judged(pods, subject)
    outcome = outcome_of(subject.context)
    decision = describe(subject, outcome)
    speaks = subject.context.pod.asks_gpus or bool(decision.violations)
    return Judged(pods, replace(decision, touches_gpus=speaks), outcome, subject.context)


def _not_judged(work: Work, pods: PodSet, advice: Violation) -> Judged:
    decision = Decision(
        verdict=Verdict.ALLOWED,
        generation=work.policies.generation,
        violations=(advice,),
        warnings=(f"sluice: {advice}",),
        touches_gpus=True,
        stale_seconds=work.facts.stale_seconds,
    )
    return Judged(pods, decision)


def pod_request(request: Request, pods: PodSet, pod: JsonObject) -> Request:
    """Return the request that the controller would make for a pod."""
    maker = pods.user
    return replace(
        request,
        phase=Phase.MUTATE,
        operation=Operation.CREATE,
        group="",
        resource="pods",
        kind="Pod",
        name="",
        user=maker,
        object=pod,
        old_object=None,
        raw={
            **(request.raw or {}),
            **_POD_CREATION,
            "userInfo": {"username": maker.username, "groups": list(maker.groups)},
        },
    )


def _could_never_run(decision: Decision) -> bool:
    return any(
        v.reason in PERMANENT and v.enforcement is Enforcement.ENFORCE and not v.passing
        for v in decision.violations
    )


def _violations(judged: Sequence[Judged]) -> tuple[Violation, ...]:
    """Return all violations, each with the name of its template where there are several."""
    return tuple(
        replace(violation, message=f"{found.pods.name}: {violation.message}")
        if found.pods.name
        else violation
        for found in judged
        for violation in found.decision.violations
    )


def _made_by_controller(raw: JsonObject) -> bool:
    """Tell a ReplicaSet of a Deployment or a Job of a CronJob: its maker was told already."""
    owners = object_at(raw, "metadata").get("ownerReferences")
    if not isinstance(owners, Sequence):
        return False
    return any(isinstance(o, Mapping) and o.get("controller") is True for o in owners)
