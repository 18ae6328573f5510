# SPDX-License-Identifier: Apache-2.0
"""What every Deployment of Sluice's own processes has: pods that ask for little and spread out.

Which processes there are, and what each is told, is not said here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.telemetry import TelemetryOptions

_USER_ID: Final = 65532
"""The number that distroless images call nonroot."""

Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class Volume:
    """What is mounted at a path, read only; `source` is a volume of the core API."""

    name: str
    path: str
    source: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Port:
    """Where a process listens: its port's name is its scheme."""

    number: int
    scheme: str

    @property
    def name(self) -> str:
        """Return the name of the container's port."""
        return self.scheme.lower()


@dataclass(frozen=True, slots=True)
class Process:
    """One kind of process: `account` is the ServiceAccount it runs as, `arguments` its command.

    `ending_seconds` is how long its pods may take to end, `telemetry` where it reads that from.
    """

    name: str
    account: str
    replicas: int
    arguments: tuple[str, ...]
    port: Port
    volumes: tuple[Volume, ...]
    labels: Mapping[str, str]
    ending_seconds: int
    telemetry: TelemetryOptions


def deployment(options: ManifestOptions, process: Process) -> Object:
    """Render the Deployment of a process."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(options, process),
        "spec": {
            "replicas": process.replicas,
            "selector": {"matchLabels": dict(process.labels)},
            # A replica goes only after its successor is ready: GPU pods fail closed.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": {"labels": dict(process.labels)},
                "spec": _pod(options, process),
            },
        },
    }


def disruption_budget(options: ManifestOptions, process: Process) -> Object:
    """Render what keeps a drain from taking several replicas at once."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(options, process),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": dict(process.labels)},
            # A replica that is not ready protects nobody, and must not block a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _pod(options: ManifestOptions, process: Process) -> Object:
    return {
        "serviceAccountName": process.account,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": process.ending_seconds,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER_ID,
            "runAsGroup": _USER_ID,
            "fsGroup": _USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            _spread(process, "kubernetes.io/hostname"),
            _spread(process, "topology.kubernetes.io/zone"),
        ],
        "containers": [_container(options, process)],
        "volumes": [
            *({"name": each.name, **each.source} for each in process.volumes),
            *process.telemetry.volumes(),
        ],
    }


def _container(options: ManifestOptions, process: Process) -> Object:
    port = process.port
    return {
        "name": "sluice",
        "image": options.image,
        "args": list(process.arguments),
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *process.telemetry.variables(),
        ],
        "ports": [{"name": port.name, "containerPort": port.number}],
        "startupProbe": _probe(port, "/healthz", period_seconds=1, failures=60),
        "readinessProbe": _probe(port, "/readyz", period_seconds=2, failures=2),
        "livenessProbe": _probe(port, "/healthz", period_seconds=10, failures=6),
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
            *(
                {"name": each.name, "mountPath": each.path, "readOnly": True}
                for each in process.volumes
            ),
            *process.telemetry.mounts(),
        ],
    }


def _probe(port: Port, path: str, *, period_seconds: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": port.name, "scheme": port.scheme},
        "periodSeconds": period_seconds,
        "failureThreshold": failures,
        "timeoutSeconds": 3,
    }


def _spread(process: Process, topology_key: str) -> Object:
    # ScheduleAnyway: on a cluster of one node two replicas are still better than one.
    return {
        "topologyKey": topology_key,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(process.labels)},
        "matchLabelKeys": ["pod-template-hash"],
    }


def _metadata(options: ManifestOptions, process: Process) -> Object:
    return {
        "name": process.name,
        "namespace": options.namespace,
        "labels": dict(process.labels),
    }
