# SPDX-License-Identifier: Apache-2.0
"""A second kube-scheduler as objects, beside the cluster's own: pods name it as schedulerName.

What its configuration says must not be here.
"""

from typing import Final

from reconciler.manifests.component import RBAC, Component, Object, probe

SCHEDULER_IMAGE: Final = "registry.k8s.io/kube-scheduler:v1.37.2"
CONFIG_FILE: Final = "scheduler.yaml"
"""The key of the ConfigMap with the scheduler's name."""

_CONFIG_DIRECTORY: Final = "/etc/sluice/scheduler"
_SCHEDULER_PORT: Final = 10259


def second_scheduler(scheduler: Component, image: str) -> tuple[Object, ...]:
    """Render the scheduler and its rights, which are those of the cluster's own."""
    name = scheduler.name
    container: Object = {
        "name": "kube-scheduler",
        "image": image,
        "command": ["kube-scheduler"],
        "args": [
            f"--config={_CONFIG_DIRECTORY}/{CONFIG_FILE}",
            f"--secure-port={_SCHEDULER_PORT}",
        ],
        "ports": [{"name": "https", "containerPort": _SCHEDULER_PORT}],
        "startupProbe": probe("/healthz", "https", failures=60, period_seconds=1),
        "livenessProbe": probe("/healthz", "https", failures=6, period_seconds=10),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": _CONFIG_DIRECTORY, "readOnly": True}],
    }
    volume: Object = {"name": "config", "configMap": {"name": name}}
    return (
        scheduler.account(),
        *(
            scheduler.cluster_binding(f"{name}-{role.rpartition(':')[2]}", role)
            for role in ("system:kube-scheduler", "system:volume-scheduler")
        ),
        _reader_binding(scheduler),
        *scheduler.lease_access(),
        scheduler.deployment(container, [volume]),
    )


def _reader_binding(scheduler: Component) -> Object:
    """Let the scheduler read by which CA those who ask for its metrics are known."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": f"{scheduler.name}-authentication",
            "namespace": "kube-system",
            "labels": scheduler.labels,
        },
        "roleRef": {
            "apiGroup": RBAC,
            "kind": "Role",
            "name": "extension-apiserver-authentication-reader",
        },
        "subjects": [scheduler.subject],
    }
