# SPDX-License-Identifier: Apache-2.0
"""What all components of placement have as objects: accounts, rights by a Lease, a Deployment.

Which components there are, and what their containers are told, must not be here.
"""

from dataclasses import dataclass
from typing import Final

from reconciler.manifests.access import lease_rules
from reconciler.manifests.options import ManifestOptions

RBAC: Final = "rbac.authorization.k8s.io"
_USER_ID: Final = 65532

Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class Component:
    """One component, installed beside the rest (`options`); its objects have its name."""

    options: ManifestOptions
    name: str

    @property
    def labels(self) -> dict[str, str]:
        """Return labels of these objects alone: the webhook's Service selects by its own."""
        return {**self.options.labels, "app.kubernetes.io/instance": self.name}

    @property
    def metadata(self) -> Object:
        """Return the metadata of an object in the component's namespace."""
        return {"name": self.name, "namespace": self.options.namespace, "labels": self.labels}

    @property
    def subject(self) -> Object:
        """Return the account as RBAC names it."""
        return {
            "kind": "ServiceAccount",
            "name": self.name,
            "namespace": self.options.namespace,
        }

    def account(self) -> Object:
        """Return the account; pods say themselves that they take its token."""
        return {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": self.metadata,
            "automountServiceAccountToken": False,
        }

    def cluster_binding(self, name: str, role: str) -> Object:
        """Return what gives the account a ClusterRole."""
        return {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name, "labels": self.labels},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [self.subject],
        }

    def lease_access(self) -> tuple[Object, ...]:
        """Return the right to the Lease by which one of all replicas is active."""
        return (
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "Role",
                "metadata": self.metadata,
                "rules": list(lease_rules(self.name)),
            },
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": self.metadata,
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": self.name},
                "subjects": [self.subject],
            },
        )

    def deployment(self, container: Object, volumes: list[Object]) -> Object:
        """Return the Deployment of a container that writes nowhere and is nobody."""
        labels = self.labels
        container["securityContext"] = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        pod: Object = {
            "serviceAccountName": self.name,
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
            "metadata": self.metadata,
            "spec": {
                "replicas": self.options.replicas,
                "selector": {"matchLabels": labels},
                # All but one are never ready, so a rollout must not wait for them.
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": self.options.replicas},
                },
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }


def probe(path: str, port: str, *, failures: int, period_seconds: int) -> Object:
    """Return a probe over HTTPS."""
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTPS"},
        "periodSeconds": period_seconds,
        "failureThreshold": failures,
        "timeoutSeconds": 3,
    }
