# SPDX-License-Identifier: Apache-2.0
"""Workloads: what will become of their pods, told to the person who applies them.

The pods are what is decided on, later; here the same decision is taken on the template so that
`kubectl apply` shows it. Only what could never run is refused, and only when the template is new:
an update that does not touch it (a scale-down, a status) must always go through.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policies.admission.answering import describe
from policies.admission.pods import outcome_of, read_subject
from policies.model.decision import Decision, Verdict
from policies.model.facts import Facts
from policies.model.policy import Enforcement
from policies.model.policyset import PolicySet
from policies.model.reasons import PERMANENT
from policies.model.request import JsonObject, Operation, Phase, Request, User
from policies.pod.reading import object_at, string_at


@dataclass(frozen=True, slots=True)
class Template:
    """Where a kind keeps its pod template, and which controller will make the pods from it.

    `pods_owner` is the kind that the pods' controller reference names; `pods_maker` the service
    account that creates them, as kube-controller-manager names it.
    """

    group: str
    resource: str
    kind: str
    path: tuple[str, ...]
    pods_owner: str
    pods_maker: str


TEMPLATES: tuple[Template, ...] = (
    Template("apps", "deployments", "Deployment", ("spec", "template"), "ReplicaSet", "replicaset"),
    Template("apps", "replicasets", "ReplicaSet", ("spec", "template"), "ReplicaSet", "replicaset"),
    Template(
        "apps", "statefulsets", "StatefulSet", ("spec", "template"), "StatefulSet", "statefulset"
    ),
    Template("apps", "daemonsets", "DaemonSet", ("spec", "template"), "DaemonSet", "daemon-set"),
    Template("batch", "jobs", "Job", ("spec", "template"), "Job", "job"),
    Template(
        "batch", "cronjobs", "CronJob", ("spec", "jobTemplate", "spec", "template"), "Job", "job"
    ),
)


def find(group: str, resource: str) -> Template | None:
    """Return where this resource keeps its pod template, or None if it is no known workload."""
    return next((t for t in TEMPLATES if (t.group, t.resource) == (group, resource)), None)


def find_kind(api_version: str, kind: str) -> Template | None:
    """Return the same for a manifest's apiVersion and kind."""
    group = api_version.rpartition("/")[0]
    return next((t for t in TEMPLATES if (t.group, t.kind) == (group, kind)), None)


def pod_of(template: Template, workload: JsonObject, namespace: str) -> JsonObject:
    """Return a pod as the workload's controller would make it. Raises MalformedError."""
    found: JsonObject = workload
    for step in template.path:
        found = object_at(found, step)
    name = string_at(object_at(workload, "metadata"), "name")
    owner = {"apiVersion": "v1", "kind": template.pods_owner, "name": name, "controller": True}
    metadata = {
        key: value
        for key, value in object_at(found, "metadata").items()
        if key in ("labels", "annotations", "finalizers")
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "generateName": f"{name}-",
            "namespace": namespace,
            "ownerReferences": [owner],
        },
        "spec": dict(object_at(found, "spec")),
    }


_MAKERS = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
)
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


def pod_request(template: Template, workload: JsonObject, request: Request) -> Request:
    """Return the request that the controller would make for a pod. Raises MalformedError."""
    maker = f"system:serviceaccount:kube-system:{template.pods_maker}-controller"
    return replace(
        request,
        phase=Phase.MUTATE,
        operation=Operation.CREATE,
        group="",
        resource="pods",
        kind="Pod",
        name="",
        user=User(maker, groups=_MAKERS),
        object=pod_of(template, workload, request.namespace),
        old_object=None,
        raw={
            **(request.raw or {}),
            **_POD_CREATION,
            "userInfo": {"username": maker, "groups": list(_MAKERS)},
        },
    )


def decide_workload(
    policies: PolicySet, facts: Facts, request: Request, raw: JsonObject, template: Template
) -> Decision:
    """Warn of what the pods will get; refuse what none could ever get. Raises MalformedError."""
    new = pod_request(template, raw, request)
    silent = Decision(
        verdict=Verdict.ALLOWED,
        generation=policies.generation,
        stale_seconds=facts.stale_seconds,
    )
    if request.phase is Phase.MUTATE or _made_by_workload(raw):
        return silent
    if request.operation is Operation.UPDATE and not _changed(template, request, raw):
        return silent
    subject = read_subject(policies, facts, new, new.object or {})
    if isinstance(subject, Decision):
        return subject
    if not subject.context.pod.asks_gpus and not subject.violations:
        return silent
    decision = describe(subject, outcome_of(subject.context))
    of = f"pods of {template.kind.lower()} {string_at(object_at(raw, 'metadata'), 'name')}"
    if any(
        v.reason in PERMANENT and v.enforcement is Enforcement.ENFORCE for v in decision.violations
    ):
        return decision
    return replace(
        decision, verdict=Verdict.ALLOWED, warnings=tuple(_told(decision, of)), touches_gpus=True
    )


def _told(decision: Decision, of: str) -> Iterator[str]:
    if not decision.allowed:
        for violation in decision.violations:
            if violation.enforcement is Enforcement.ENFORCE:
                yield f"sluice: {of} will be refused: {violation}"
        return
    for warning in decision.warnings:
        yield f"sluice: {of}: {warning.removeprefix('sluice: ')}"


def _made_by_workload(raw: JsonObject) -> bool:
    """Tell a ReplicaSet of a Deployment or a Job of a CronJob: its maker was told already."""
    owners = object_at(raw, "metadata").get("ownerReferences")
    if not isinstance(owners, Sequence):
        return False
    return any(isinstance(o, Mapping) and o.get("controller") is True for o in owners)


def _changed(template: Template, request: Request, raw: JsonObject) -> bool:
    return pod_of(template, request.old_object or {}, "") != pod_of(template, raw, "")
