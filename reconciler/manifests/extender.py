# SPDX-License-Identifier: Apache-2.0
"""The scheduler extender as objects: its replicas, what they may do, and how they are reached.

One of all is ready at a time, by a Lease. Who asks it must not be here.
"""

from collections.abc import Mapping
from typing import Final

from reconciler.kube.lease import RELEASED_SECONDS
from reconciler.manifests.access import DOCUMENT_READING
from reconciler.manifests.component import RBAC, Component, Object, probe
from reconciler.manifests.serving_certificate import CERTIFICATES_DIRECTORY
from reconciler.manifests.workload import POLICIES_DIRECTORY, policies_name

EXTENDER_PORT: Final = 9444
_GRACE_SECONDS: Final = 5

EXTENDER_RULES: Final = (
    # Patch: the annotation that wakes pods.
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    # Documents, since pools say how their nodes are ranked.
    DOCUMENT_READING,
)


def extender_objects(extender: Component, environment: Mapping[str, str]) -> tuple[Object, ...]:
    """Render the extender; the environment sets it up."""
    return (
        extender.account(),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": extender.name, "labels": extender.labels},
            "rules": [
                dict(rule) for rule in (*EXTENDER_RULES, *extender.options.telemetry.rules())
            ],
        },
        extender.cluster_binding(extender.name, extender.name),
        *extender.lease_access(),
        _lease(extender),
        _deployment(extender, environment),
        _service(extender),
    )


def _deployment(extender: Component, environment: Mapping[str, str]) -> Object:
    options = extender.options
    container: Object = {
        "name": "extender",
        "image": options.image,
        "args": [
            "extender",
            f"--policies={POLICIES_DIRECTORY}",
            f"--certificates={CERTIFICATES_DIRECTORY}",
            f"--port={EXTENDER_PORT}",
            f"--grace={_GRACE_SECONDS}",
            f"--lease-namespace={options.namespace}",
            f"--lease-name={extender.name}",
            # As POD_NAME the pod's name is a name that no other process has.
            "--identity=$(POD_NAME)",
            "--log-format=json",
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *options.telemetry.variables(environment),
        ],
        "ports": [{"name": "https", "containerPort": EXTENDER_PORT}],
        "startupProbe": probe("/healthz", "https", failures=60, period_seconds=1),
        # One of two is never ready: the Service leads to the active one.
        "readinessProbe": probe("/readyz", "https", failures=1, period_seconds=1),
        "livenessProbe": probe("/healthz", "https", failures=6, period_seconds=10),
        "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [
            {"name": "certificates", "mountPath": CERTIFICATES_DIRECTORY, "readOnly": True},
            {"name": "policies", "mountPath": POLICIES_DIRECTORY, "readOnly": True},
            *options.telemetry.mounts(),
        ],
    }
    secret = {"secretName": f"{options.name}-tls", "defaultMode": 0o440}
    documents = {"name": policies_name(options), "optional": True}
    volumes: list[Object] = [
        {"name": "certificates", "secret": secret},
        # Pods are scheduled without documents too.
        {"name": "policies", "configMap": documents},
    ]
    return extender.deployment(container, [*volumes, *options.telemetry.volumes()])


def _service(extender: Component) -> Object:
    port = {"name": "https", "port": 443, "targetPort": "https", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": extender.metadata,
        "spec": {"selector": extender.labels, "ports": [port]},
    }


def _lease(extender: Component) -> Object:
    """Return the Lease as one that was released, so that the first one need not wait."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": extender.metadata,
        "spec": {"leaseDurationSeconds": RELEASED_SECONDS},
    }
