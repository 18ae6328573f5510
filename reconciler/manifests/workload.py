# SPDX-License-Identifier: Apache-2.0
"""The Deployment that runs Sluice, its Service, and what keeps enough replicas up."""

from collections.abc import Mapping
from typing import Final

from policies.model.keys import API_VERSION
from policies.model.settings import Mode
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.text import to_yaml
from reconciler.manifests.webhook_entries import SERVICE_PORT

POLICIES_DIRECTORY: Final = "/etc/sluice/policies"
CERTIFICATES_DIRECTORY: Final = "/etc/sluice/certificates"
HTTPS_PORT: Final = 9443

_USER_ID: Final = 65532
"""The number that distroless images call nonroot."""

_GRACE_SECONDS: Final = 15
"""API servers go on calling a pod that is ending until its endpoint is gone everywhere."""

_TERMINATION_SECONDS: Final = 45
"""Grace, then the reviews that are under way, then the last audit lines."""

Object = dict[str, object]


def workload(options: ManifestOptions) -> tuple[Object, ...]:
    """Render Deployment, Service and PodDisruptionBudget."""
    return _deployment(options), _service(options), _disruption_budget(options)


def policies(options: ManifestOptions) -> Object:
    """Render the ConfigMap of documents with only the settings in it, as a place to begin."""
    settings = {
        "apiVersion": API_VERSION,
        "kind": "Settings",
        "metadata": {"name": "cluster"},
        "spec": {
            "mode": str(Mode.OBSERVE if options.observe else Mode.ENFORCE),
            "account": options.username,
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(options, f"{options.name}-policies"),
        "data": {"settings.yaml": to_yaml([settings])},
    }


def tls_secret(options: ManifestOptions) -> tuple[Object, ...]:
    """Render the Secret that the Deployment mounts, if its content is given."""
    if options.tls is None:
        return ()
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(options, f"{options.name}-tls"),
        "type": "kubernetes.io/tls",
        "stringData": {
            "ca.crt": options.tls.authority.decode("ascii"),
            "tls.crt": options.tls.certificate.decode("ascii"),
            "tls.key": options.tls.key.decode("ascii"),
        },
    }
    return (secret,)


def _deployment(options: ManifestOptions) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(options, options.name),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": options.labels},
            # A replica goes only after its successor is ready: GPU pods fail closed.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {"metadata": {"labels": options.labels}, "spec": _pod(options)},
        },
    }


def _pod(options: ManifestOptions) -> Object:
    return {
        "serviceAccountName": options.name,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": _TERMINATION_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER_ID,
            "runAsGroup": _USER_ID,
            "fsGroup": _USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            _spread(options, "kubernetes.io/hostname"),
            _spread(options, "topology.kubernetes.io/zone"),
        ],
        "containers": [_container(options)],
        "volumes": [
            {"name": "policies", "configMap": {"name": f"{options.name}-policies"}},
            {
                "name": "certificates",
                "secret": {"secretName": f"{options.name}-tls", "defaultMode": 0o440},
            },
            *options.telemetry.volumes(),
        ],
    }


def _container(options: ManifestOptions) -> Object:
    return {
        "name": "sluice",
        "image": options.image,
        "args": [
            "run",
            f"--policies={POLICIES_DIRECTORY}",
            f"--certificates={CERTIFICATES_DIRECTORY}",
            f"--port={HTTPS_PORT}",
            f"--grace={_GRACE_SECONDS}",
            f"--lease-namespace={options.namespace}",
            f"--lease-name={options.name}",
            # As POD_NAME the pod's name is a name that no other process has.
            "--identity=$(POD_NAME)",
            "--log-format=json",
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *options.telemetry.variables(),
        ],
        "ports": [{"name": "https", "containerPort": HTTPS_PORT}],
        "startupProbe": _probe("/healthz", period_seconds=1, failures=60),
        "readinessProbe": _probe("/readyz", period_seconds=2, failures=2),
        "livenessProbe": _probe("/healthz", period_seconds=10, failures=6),
        "resources": {
            "requests": {"cpu": "200m", "memory": "256Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "policies", "mountPath": POLICIES_DIRECTORY, "readOnly": True},
            {"name": "certificates", "mountPath": CERTIFICATES_DIRECTORY, "readOnly": True},
            *options.telemetry.mounts(),
        ],
    }


def _probe(path: str, *, period_seconds: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "https", "scheme": "HTTPS"},
        "periodSeconds": period_seconds,
        "failureThreshold": failures,
        "timeoutSeconds": 3,
    }


def _spread(options: ManifestOptions, topology_key: str) -> Object:
    # ScheduleAnyway: on a cluster of one node two replicas are still better than one.
    return {
        "topologyKey": topology_key,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": options.labels},
        "matchLabelKeys": ["pod-template-hash"],
    }


def _service(options: ManifestOptions) -> Object:
    port = {"name": "https", "port": SERVICE_PORT, "targetPort": "https", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(options, options.name),
        "spec": {"selector": options.labels, "ports": [port]},
    }


def _disruption_budget(options: ManifestOptions) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(options, options.name),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": options.labels},
            # A replica that is not ready protects nobody, and must not block a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _metadata(options: ManifestOptions, name: str) -> Mapping[str, object]:
    return {"name": name, "namespace": options.namespace, "labels": options.labels}
