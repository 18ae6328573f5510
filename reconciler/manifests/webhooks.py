# SPDX-License-Identifier: Apache-2.0
"""The webhook configurations: what is sent to /mutate and /validate, and what if nobody answers.

Pods that touch GPUs fail closed in the validating pass, and so do Sluice's own documents;
everything else fails open, so that an outage of Sluice stops nobody else. Selection by namespace
name and by content, never by pod labels. Source: Kubernetes admissionregistration.k8s.io/v1.
"""

from typing import Final

from policies.model.keys import BREAK_GLASS_GROUP, QUOTA_GATE
from reconciler.manifests.document_webhooks import check_documents, guard_documents
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.predicates import (
    Predicates,
    any_of,
    either,
    pod_changes_what_is_owned,
)
from reconciler.manifests.webhook_entries import Webhook, configuration, entry, rule
from reconciler.manifests.workload_webhooks import custom_workloads, workloads

_IS_SUBRESOURCE: Final = "request.?subResource.orValue('') != ''"
"""The field is absent, not empty, for a resource itself."""


def mutating_configuration(options: ManifestOptions) -> dict[str, object]:
    """Render the first pass. It may be skipped: the second finds what it left undone."""
    pods = entry(
        options,
        "mutate.sluice.dev",
        [rule("", ["v1"], ["pods"], "CREATE")],
        [("touches-gpus", _touches_gpus(options))],
    )
    entries = [pods, check_documents(options, "documents.mutate.sluice.dev")]
    if not options.has_mutating_admission_policy:
        entries.append(_other_pods(options))
    for called in entries:
        called["reinvocationPolicy"] = "IfNeeded"
    return configuration(options, "MutatingWebhookConfiguration", entries)


def validating_configuration(options: ManifestOptions) -> dict[str, object]:
    """Render the second pass, which alone decides."""
    pods = entry(
        options,
        "validate.sluice.dev",
        [
            rule("", ["v1"], ["pods"], "CREATE", "UPDATE"),
            rule("", ["v1"], ["pods/ephemeralcontainers", "pods/resize"], "UPDATE"),
        ],
        [
            ("breaks-no-glass", _breaks_no_glass()),
            ("touches-gpus", _touches_gpus(options)),
            ("changes-what-is-owned", _pod_changes()),
        ],
        failure_policy=options.failure_policy,
    )
    claims = entry(
        options,
        "claims.validate.sluice.dev",
        [rule("resource.k8s.io", ["v1"], ["resourceclaims", "resourceclaimtemplates"], "CREATE")],
        [("names-gpus", _claim_names_gpus(options))],
        failure_policy=options.failure_policy,
    )
    entries = [
        pods,
        claims,
        workloads(options),
        custom_workloads(options),
        guard_documents(options),
    ]
    return configuration(options, "ValidatingWebhookConfiguration", entries)


def _other_pods(options: ManifestOptions) -> Webhook:
    """Render the entry that sets void where the API server cannot do it by itself."""
    condition = f"{_IS_SUBRESOURCE} || !(\n{_touches_gpus(options)})"
    return entry(
        options,
        "other-pods.mutate.sluice.dev",
        [
            rule("", ["v1"], ["pods"], "CREATE"),
            rule("", ["v1"], ["pods/ephemeralcontainers"], "UPDATE"),
        ],
        [("touches-no-gpus", condition)],
    )


def _claim_names_gpus(options: ManifestOptions) -> str:
    names_gpus = Predicates(options.catalog).claim_names_gpus
    return any_of(names_gpus("object.spec"), names_gpus("object.spec.?spec"))


def _touches_gpus(options: ManifestOptions) -> str:
    return either(Predicates(options.catalog).pod_touches_gpus("pod"))


def _breaks_no_glass() -> str:
    """Return: no gate is taken off by force, which must work while Sluice is down."""
    gated = f"spec.?schedulingGates.orValue([]).exists(g, g.name == '{QUOTA_GATE}')"
    return (
        f"request.operation != 'UPDATE' || {_IS_SUBRESOURCE}\n"
        f"|| !('{BREAK_GLASS_GROUP}' in request.userInfo.?groups.orValue([]))\n"
        f"|| !oldObject.{gated} || object.{gated}"
    )


def _pod_changes() -> str:
    return any_of("request.operation == 'CREATE'", _IS_SUBRESOURCE, pod_changes_what_is_owned())
