# SPDX-License-Identifier: Apache-2.0
"""What the API server does to a pod before any webhook sees it, as far as GPUs are concerned.

Manifests from files need it, so that they are decided on as the webhook would: limits are copied
into requests that lack them, and numbers become text, nothing being none. Source: Kubernetes
pkg/apis/core/v1/defaults.go SetDefaults_Pod.
"""

from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at
from policies.rewrite.project import with_fields


def defaulted(pod: JsonObject, namespace: str) -> JsonObject:
    """Return the pod in this namespace with requests defaulted. Raises MalformedError."""
    metadata, spec = object_at(pod, "metadata"), object_at(pod, "spec")
    sections = {
        section: [_container(container) for container in objects_at(spec, section)]
        for section in ("initContainers", "containers")
    }
    return {
        **pod,
        "metadata": {**metadata, "namespace": namespace},
        "spec": with_fields(spec, sections),
    }


def _container(container: JsonObject) -> JsonObject:
    resources = object_at(container, "resources")
    limits = _spelled(object_at(resources, "limits"))
    requests = {**limits, **_spelled(object_at(resources, "requests"))}
    if not requests:
        return container
    amounts = {"limits": limits, "requests": requests}
    return {**container, "resources": {**resources, **{k: v for k, v in amounts.items() if v}}}


def _spelled(amounts: JsonObject) -> JsonObject:
    """Return amounts as text, which they are in every pod that the API server sends."""
    return {name: _text(value) for name, value in amounts.items()}


def _text(amount: object) -> object:
    if amount is None:
        return "0"
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return str(amount) if is_number else amount
