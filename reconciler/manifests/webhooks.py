# SPDX-License-Identifier: Apache-2.0
"""The webhook configurations: what is sent to /mutate and /validate, and what if nobody answers.

Pods that touch GPUs fail closed in the validating pass; everything else fails open, so that an
outage of Sluice stops nobody else. Selection by namespace name and by content, never by pod
labels. Source: Kubernetes admissionregistration.k8s.io/v1.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.predicates import (
    Predicates,
    any_of,
    either,
    pod_changes_what_is_owned,
)

API_VERSION: Final = "admissionregistration.k8s.io/v1"
SERVICE_PORT: Final = 443
TIMEOUT_SECONDS: Final = 5

_IS_SUBRESOURCE: Final = "request.?subResource.orValue('') != ''"
"""The field is absent, not empty, for a resource itself."""

_POD_TEMPLATE: Final = "object.spec.template"
_CRON_TEMPLATE: Final = "object.spec.jobTemplate.spec.template"

Webhook = dict[str, object]
Condition = tuple[str, str]
Rules = Sequence[Mapping[str, object]]


def mutating_configuration(options: ManifestOptions) -> dict[str, object]:
    """Render the first pass. It may be skipped: the second finds what it left undone."""
    pods = _entry(
        options,
        "mutate.sluice.dev",
        [_rule("", "v1", ["pods"], "CREATE")],
        [("touches-gpus", _touches_gpus(options))],
    )
    entries = [pods]
    if not options.has_mutating_admission_policy:
        entries.append(_other_pods(options))
    for entry in entries:
        entry["reinvocationPolicy"] = "IfNeeded"
    return _configuration(options, "MutatingWebhookConfiguration", entries)


def validating_configuration(options: ManifestOptions) -> dict[str, object]:
    """Render the second pass, which alone decides."""
    pods = _entry(
        options,
        "validate.sluice.dev",
        [
            _rule("", "v1", ["pods"], "CREATE", "UPDATE"),
            _rule("", "v1", ["pods/ephemeralcontainers", "pods/resize"], "UPDATE"),
        ],
        [("touches-gpus", _touches_gpus(options)), ("changes-what-is-owned", _pod_changes())],
        failure_policy=options.failure_policy,
    )
    claims = _entry(
        options,
        "claims.validate.sluice.dev",
        [_rule("resource.k8s.io", "v1", ["resourceclaims", "resourceclaimtemplates"], "CREATE")],
        [("names-gpus", _claim_names_gpus(options))],
        failure_policy=options.failure_policy,
    )
    entries = [pods, claims, _workloads(options)]
    return _configuration(options, "ValidatingWebhookConfiguration", entries)


def _other_pods(options: ManifestOptions) -> Webhook:
    """Render the entry that sets void where the API server cannot do it by itself."""
    condition = f"{_IS_SUBRESOURCE} || !(\n{_touches_gpus(options)})"
    return _entry(
        options,
        "other-pods.mutate.sluice.dev",
        [
            _rule("", "v1", ["pods"], "CREATE"),
            _rule("", "v1", ["pods/ephemeralcontainers"], "UPDATE"),
        ],
        [("touches-no-gpus", condition)],
    )


def _workloads(options: ManifestOptions) -> Webhook:
    """Render the entry that warns of what will become of the pods of a workload."""
    touches = Predicates(options.catalog).pod_touches_gpus
    by_kind = (
        f"request.kind.kind == 'CronJob'"
        f" ? (\n{touches(_CRON_TEMPLATE)})\n: (\n{touches(_POD_TEMPLATE)})"
    )
    # A Deployment's ReplicaSet and a CronJob's Job have the template that was judged already.
    owned = (
        "object.metadata.?ownerReferences.orValue([]).exists(o,"
        " o.?controller.orValue(false) && o.kind in ['Deployment', 'CronJob'])"
    )
    return _entry(
        options,
        "workloads.validate.sluice.dev",
        [
            _rule(
                "apps",
                "v1",
                ["deployments", "statefulsets", "replicasets", "daemonsets"],
                "CREATE",
                "UPDATE",
            ),
            _rule("batch", "v1", ["jobs", "cronjobs"], "CREATE", "UPDATE"),
        ],
        [
            ("is-no-part-of-another", f"!{owned}"),
            ("changes-its-spec", "oldObject == null || object.spec != oldObject.spec"),
            ("touches-gpus", by_kind),
        ],
    )


def _claim_names_gpus(options: ManifestOptions) -> str:
    names_gpus = Predicates(options.catalog).claim_names_gpus
    return any_of(names_gpus("object.spec"), names_gpus("object.spec.?spec"))


def _touches_gpus(options: ManifestOptions) -> str:
    return either(Predicates(options.catalog).pod_touches_gpus("pod"))


def _pod_changes() -> str:
    return any_of("request.operation == 'CREATE'", _IS_SUBRESOURCE, pod_changes_what_is_owned())


def _rule(
    group: str, version: str, resources: Sequence[str], *operations: str
) -> dict[str, object]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": list(resources),
        "scope": "Namespaced",
    }


def _entry(
    options: ManifestOptions,
    name: str,
    rules: Rules,
    conditions: Sequence[Condition],
    *,
    failure_policy: str = "Ignore",
) -> Webhook:
    path = "/mutate" if name.endswith("mutate.sluice.dev") else "/validate"
    entry: Webhook = {
        "name": name,
        "clientConfig": _client_config(options, path),
        "rules": list(rules),
        "namespaceSelector": options.namespace_selector(),
        "matchPolicy": "Equivalent",
        "failurePolicy": failure_policy,
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }
    entry["matchConditions"] = [
        {"name": name, "expression": expression} for name, expression in conditions
    ]
    return entry


def _client_config(options: ManifestOptions, path: str) -> dict[str, object]:
    config: dict[str, object] = {}
    if options.url is not None:
        config["url"] = options.url.rstrip("/") + path
    else:
        config["service"] = {
            "namespace": options.namespace,
            "name": options.name,
            "path": path,
            "port": SERVICE_PORT,
        }
    if options.ca_bundle is not None:
        config["caBundle"] = base64.b64encode(options.ca_bundle).decode("ascii")
    return config


def _configuration(
    options: ManifestOptions, kind: str, entries: Sequence[Webhook]
) -> dict[str, object]:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": options.name, "labels": options.labels},
        "webhooks": list(entries),
    }
