# SPDX-License-Identifier: Apache-2.0
"""The parts that every webhook configuration has: entries, rules, and where they are sent.

What is sent, and when, is not said here. Source: Kubernetes admissionregistration.k8s.io/v1.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.manifests.options import ManifestOptions

API_VERSION: Final = "admissionregistration.k8s.io/v1"
SERVICE_PORT: Final = 443
TIMEOUT_SECONDS: Final = 5

Webhook = dict[str, object]
Condition = tuple[str, str]
Rules = Sequence[Mapping[str, object]]


def rule(
    group: str,
    versions: Sequence[str],
    resources: Sequence[str],
    *operations: str,
    scope: str = "Namespaced",
) -> dict[str, object]:
    """Render which requests an entry is called for; by default resources of namespaces only."""
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": list(operations),
        "resources": list(resources),
        "scope": scope,
    }


def entry(
    options: ManifestOptions,
    name: str,
    rules: Rules,
    conditions: Sequence[Condition],
    *,
    failure_policy: str = "Ignore",
) -> Webhook:
    """Render one entry; all its conditions must hold for a call."""
    path = "/mutate" if name.endswith("mutate.sluice.dev") else "/validate"
    rendered: Webhook = {
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
    rendered["matchConditions"] = [
        {"name": name, "expression": expression} for name, expression in conditions
    ]
    return rendered


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


def configuration(
    options: ManifestOptions, kind: str, entries: Sequence[Webhook]
) -> dict[str, object]:
    """Render a configuration of entries, which are called in this order."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": options.name, "labels": options.labels},
        "webhooks": list(entries),
    }
