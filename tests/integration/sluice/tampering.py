# SPDX-License-Identifier: Apache-2.0
"""A mutating webhook of somebody else that is called after or before Sluice's, and changes pods."""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from certs.files import CertificateFiles, read_ca_bundle
from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import GATE, GPU, VOID, Json, all_containers, container
from tests.integration.sluice.team import Team, until
from tests.support.webhook_recorder import Patch, WebhookRecorder

AFTER: Final = "zz-other"
BEFORE: Final = "aa-other"
"""Configurations are called in the order of their names."""

_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"

Change = Callable[[Json], Patch]
"""From a pod, as far as it has come, to a JSON patch; nothing to change is an empty one."""


@dataclass(frozen=True, slots=True)
class Other:
    """What it does, whether it is called again after others (reinvocationPolicy), and its name."""

    change: Change
    again: str = "Never"
    name: str = AFTER


@contextmanager
def tampering(
    team: Team, control_plane: ControlPlane, files: CertificateFiles, other: Other
) -> Iterator[None]:
    """Have every new pod of the team changed."""

    def patch(_path: str, request: Mapping[str, Any]) -> Patch:
        return other.change(request["object"])

    with WebhookRecorder(files) as webhook:
        webhook.patch = patch
        configuration = _configuration(webhook.url, files, team.namespace, other)
        try:
            control_plane.kubectl("create", "--filename=-", stdin=configuration)
            until(lambda: _is_called(team, webhook), "the other webhook being called")
            yield
        finally:
            control_plane.kubectl(
                "delete", "mutatingwebhookconfiguration", other.name, "--ignore-not-found"
            )


def _is_called(team: Team, webhook: WebhookRecorder) -> bool:
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}}
    team.apply({**probe, "spec": {"containers": [container()]}}, dry_run=True)
    return bool(webhook.take())


def _configuration(url: str, files: CertificateFiles, namespace: str, other: Other) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    ca_bundle = base64.b64encode(read_ca_bundle(files.ca_certificate)).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": other.name},
        "webhooks": [
            {
                "name": "tampering.example.test",
                "clientConfig": {"url": url, "caBundle": ca_bundle},
                "rules": [{**rule, "resources": ["pods"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "reinvocationPolicy": other.again,
            }
        ],
    }


def add_container(added: Json) -> Change:
    """Add a container, as injectors of sidecars do."""

    def change(pod: Json) -> Patch:
        if any(c["name"] == added["name"] for c in all_containers(pod)):
            return []
        return [{"op": "add", "path": "/spec/containers/-", "value": added}]

    return change


def pin(key: str, value: str) -> Change:
    """Send pods to certain nodes, by node selector and by affinity."""

    def change(pod: Json) -> Patch:
        spec = pod["spec"]
        if key in spec.get("nodeSelector", {}):
            return []
        expression = {"key": key, "operator": "In", "values": [value]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        selector = {**spec.get("nodeSelector", {}), key: value}
        return [
            {"op": "add", "path": "/spec/nodeSelector", "value": selector},
            {"op": "add", "path": "/spec/affinity", "value": affinity},
        ]

    return change


def drop_gate(pod: Json) -> Patch:
    """Take Sluice's scheduling gate off."""
    return _drop(pod, "schedulingGates", lambda gate: gate["name"] == GATE)


def drop_toleration(pod: Json) -> Patch:
    """Take the toleration of GPU nodes out."""
    return _drop(pod, "tolerations", lambda toleration: toleration.get("key") == GPU)


def drop_void(pod: Json) -> Patch:
    """Let the image say again which devices the first container sees."""
    env = pod["spec"]["containers"][0].get("env", [])
    kept = [entry for entry in env if entry != VOID]
    path = "/spec/containers/0/env"
    return [{"op": "replace", "path": path, "value": kept}] if kept != env else []


def drop_annotations(pod: Json) -> Patch:
    """Take all annotations away."""
    if "annotations" not in pod["metadata"]:
        return []
    return [{"op": "remove", "path": "/metadata/annotations"}]


def drop_affinity(pod: Json) -> Patch:
    """Let the pod go to any node."""
    return [{"op": "remove", "path": "/spec/affinity"}] if "affinity" in pod["spec"] else []


def drop_selector(pod: Json) -> Patch:
    """Let the pod go to nodes that share otherwise."""
    return [{"op": "remove", "path": "/spec/nodeSelector"}] if _selector(pod) else []


def change_selector(pod: Json) -> Patch:
    """Send the pod to nodes that give whole GPUs."""
    if _selector(pod).get(_STRATEGY) in (None, "none"):
        return []
    value = {**_selector(pod), _STRATEGY: "none"}
    return [{"op": "replace", "path": "/spec/nodeSelector", "value": value}]


def ask_for_a_whole_gpu(pod: Json) -> Patch:
    """Write a whole GPU in the place of what the first container asks for."""
    resources = pod["spec"]["containers"][0].get("resources", {})
    raw = {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    if not resources or resources == raw:
        return []
    return [{"op": "replace", "path": "/spec/containers/0/resources", "value": raw}]


def see_all_devices(pod: Json) -> Patch:
    """Have the container runtime give the first container every device."""
    value = [{"name": VOID["name"], "value": "all"}]
    if pod["spec"]["containers"][0].get("env") == value:
        return []
    return [{"op": "add", "path": "/spec/containers/0/env", "value": value}]


def _drop(pod: Json, field: str, is_dropped: Callable[[Json], bool]) -> Patch:
    found = pod["spec"].get(field, [])
    kept = [item for item in found if not is_dropped(item)]
    return [{"op": "replace", "path": f"/spec/{field}", "value": kept}] if kept != found else []


def _selector(pod: Json) -> dict[str, str]:
    found: dict[str, str] = pod["spec"].get("nodeSelector", {})
    return found
