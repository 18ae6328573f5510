# SPDX-License-Identifier: Apache-2.0
"""The scheduler extender as objects: its replicas, what they may do, and who asks them.

Either the cluster's own scheduler, whose configuration its administrators change, or a second
scheduler beside it, whose pods name it. One extender of all is ready at a time, by a Lease.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from reconciler.kube.lease import RELEASED_SECONDS
from reconciler.manifests.access import lease_rules
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.scheduler_config import (
    extender_entry,
    managed_resources,
    scheduler_configuration,
)
from reconciler.manifests.text import to_yaml
from reconciler.manifests.workload import CERTIFICATES_DIRECTORY

EXTENDER_PORT: Final = 9444
SCHEDULER_IMAGE: Final = "registry.k8s.io/kube-scheduler:v1.37.2"

_RBAC: Final = "rbac.authorization.k8s.io"
_USER_ID: Final = 65532
_CONFIG_DIRECTORY: Final = "/etc/sluice/scheduler"
_CONFIG_FILE: Final = "scheduler.yaml"
_GRACE_SECONDS: Final = 5
_SCHEDULER_PORT: Final = 10259

Object = dict[str, object]


class Asker(StrEnum):
    """Which scheduler asks the extender."""

    DEFAULT = "default"
    SECOND = "second"


EXTENDER_RULES: Final = (
    # Patch: the annotation that wakes pods.
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
)


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """How the extender is installed beside the rest (`options`).

    `url` is where the scheduler reaches it (https://host:port), else it is its Service; a scheduler
    on the host's network may know no Services' names. `environment` sets the extender up.
    """

    options: ManifestOptions
    asker: Asker = Asker.DEFAULT
    url: str = ""
    image: str = SCHEDULER_IMAGE
    further_resources: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def extender(self) -> str:
        """Return the name of the extender's objects."""
        return f"{self.options.name}-extender"

    @property
    def scheduler(self) -> str:
        """Return the name of the second scheduler, which its pods state as schedulerName."""
        return f"{self.options.name}-scheduler"

    def configuration(self) -> Object:
        """Return the KubeSchedulerConfiguration."""
        options = self.options
        host = f"{self.extender}.{options.namespace}.svc"
        entry = extender_entry(
            f"{self.url.rstrip('/') or f'https://{host}'}/scheduler",
            managed_resources(options.catalog, self.further_resources),
            options.ca_bundle,
            # The certificate is that of the webhook's Service.
            server_name="" if self.url else f"{options.name}.{options.namespace}.svc",
        )
        if self.asker is Asker.DEFAULT:
            return scheduler_configuration(entry)
        return scheduler_configuration(entry, self.scheduler, (options.namespace, self.scheduler))


def scheduler_objects(installed: SchedulerOptions) -> tuple[Object, ...]:
    """Render the extender, the scheduler's configuration, and the second scheduler if wanted."""
    extender = (
        _account(installed, installed.extender),
        *_extender_access(installed),
        _lease(installed, installed.extender),
        _extender_deployment(installed),
        _extender_service(installed),
        _config_map(installed),
    )
    if installed.asker is Asker.DEFAULT:
        return extender
    return (*extender, *_second_scheduler(installed))


def _config_map(installed: SchedulerOptions) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(installed, installed.scheduler),
        "data": {_CONFIG_FILE: to_yaml([installed.configuration()])},
    }


def _extender_access(installed: SchedulerOptions) -> tuple[Object, ...]:
    name = installed.extender
    return (
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": _labels(installed, name)},
            "rules": [dict(rule) for rule in EXTENDER_RULES],
        },
        _cluster_binding(installed, name, name, name),
        *_lease_access(installed, name),
    )


def _extender_deployment(installed: SchedulerOptions) -> Object:
    name, options = installed.extender, installed.options
    container: Object = {
        "name": "extender",
        "image": options.image,
        "args": [
            "extender",
            f"--certificates={CERTIFICATES_DIRECTORY}",
            f"--port={EXTENDER_PORT}",
            f"--grace={_GRACE_SECONDS}",
            f"--lease-namespace={options.namespace}",
            f"--lease-name={name}",
            # As POD_NAME the pod's name is a name that no other process has.
            "--identity=$(POD_NAME)",
            "--log-format=json",
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *options.telemetry.variables(installed.environment),
        ],
        "ports": [{"name": "https", "containerPort": EXTENDER_PORT}],
        "startupProbe": _probe("/healthz", "https", failures=60, period_seconds=1),
        # One of two is never ready: the Service leads to the active one.
        "readinessProbe": _probe("/readyz", "https", failures=1, period_seconds=1),
        "livenessProbe": _probe("/healthz", "https", failures=6, period_seconds=10),
        "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [
            {"name": "certificates", "mountPath": CERTIFICATES_DIRECTORY, "readOnly": True},
            *options.telemetry.mounts(),
        ],
    }
    secret = {"secretName": f"{options.name}-tls", "defaultMode": 0o440}
    volumes: list[Object] = [{"name": "certificates", "secret": secret}]
    return _deployment(installed, name, container, [*volumes, *options.telemetry.volumes()])


def _extender_service(installed: SchedulerOptions) -> Object:
    name = installed.extender
    port = {"name": "https", "port": 443, "targetPort": "https", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(installed, name),
        "spec": {"selector": _labels(installed, name), "ports": [port]},
    }


def _second_scheduler(installed: SchedulerOptions) -> tuple[Object, ...]:
    name = installed.scheduler
    container: Object = {
        "name": "kube-scheduler",
        "image": installed.image,
        "command": ["kube-scheduler"],
        "args": [
            f"--config={_CONFIG_DIRECTORY}/{_CONFIG_FILE}",
            f"--secure-port={_SCHEDULER_PORT}",
        ],
        "ports": [{"name": "https", "containerPort": _SCHEDULER_PORT}],
        "startupProbe": _probe("/healthz", "https", failures=60, period_seconds=1),
        "livenessProbe": _probe("/healthz", "https", failures=6, period_seconds=10),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": _CONFIG_DIRECTORY, "readOnly": True}],
    }
    volume: Object = {"name": "config", "configMap": {"name": name}}
    return (
        _account(installed, name),
        *(
            _cluster_binding(installed, f"{name}-{role.rpartition(':')[2]}", role, name)
            for role in ("system:kube-scheduler", "system:volume-scheduler")
        ),
        _reader_binding(installed),
        *_lease_access(installed, name),
        _deployment(installed, name, container, [volume]),
    )


def _reader_binding(installed: SchedulerOptions) -> Object:
    """Let the scheduler read by which CA those who ask for its metrics are known."""
    name = installed.scheduler
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": f"{name}-authentication",
            "namespace": "kube-system",
            "labels": _labels(installed, name),
        },
        "roleRef": {
            "apiGroup": _RBAC,
            "kind": "Role",
            "name": "extension-apiserver-authentication-reader",
        },
        "subjects": [_subject(installed, name)],
    }


def _deployment(
    installed: SchedulerOptions, name: str, container: Object, volumes: list[Object]
) -> Object:
    labels = _labels(installed, name)
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    pod: Object = {
        "serviceAccountName": name,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER_ID,
            "runAsGroup": _USER_ID,
            "fsGroup": _USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "maxSkew": 1,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ],
        "containers": [container],
        "volumes": volumes,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(installed, name),
        "spec": {
            "replicas": installed.options.replicas,
            "selector": {"matchLabels": labels},
            # All but one are never ready, so a rollout must not wait for them.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": installed.options.replicas},
            },
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _probe(path: str, port: str, *, failures: int, period_seconds: int) -> Object:
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTPS"},
        "periodSeconds": period_seconds,
        "failureThreshold": failures,
        "timeoutSeconds": 3,
    }


def _account(installed: SchedulerOptions, name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(installed, name),
        "automountServiceAccountToken": False,
    }


def _cluster_binding(installed: SchedulerOptions, name: str, role: str, account: str) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": _labels(installed, account)},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [_subject(installed, account)],
    }


def _lease_access(installed: SchedulerOptions, name: str) -> tuple[Object, ...]:
    return (
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": _metadata(installed, name),
            "rules": list(lease_rules(name)),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(installed, name),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [_subject(installed, name)],
        },
    )


def _lease(installed: SchedulerOptions, name: str) -> Object:
    """Return the Lease as one that was released, so that the first one need not wait."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": _metadata(installed, name),
        "spec": {"leaseDurationSeconds": RELEASED_SECONDS},
    }


def _subject(installed: SchedulerOptions, name: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": installed.options.namespace}


def _labels(installed: SchedulerOptions, name: str) -> dict[str, str]:
    """Return labels of these objects alone: the webhook's Service selects by its own."""
    return {**installed.options.labels, "app.kubernetes.io/instance": name}


def _metadata(installed: SchedulerOptions, name: str) -> Object:
    return {
        "name": name,
        "namespace": installed.options.namespace,
        "labels": _labels(installed, name),
    }
