# SPDX-License-Identifier: Apache-2.0
"""Who Sluice is in the cluster, and the little that it may do.

Rules are added with the controller that needs them; a test runs Sluice with nothing else.
"""

from typing import Final

from reconciler.kube.document_resources import API_KINDS, GROUP, plural
from reconciler.kube.lease import RELEASED_SECONDS
from reconciler.manifests.options import ManifestOptions

_RBAC_GROUP: Final = "rbac.authorization.k8s.io"

Object = dict[str, object]

CLUSTER_RULES: Final = (
    {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": ["get", "list", "watch"]},
    # Patch: the release of a pod takes its gate off and records what it is charged. Delete: of
    # borrowed pods whose disruption budget has allowed no eviction for too long.
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {
        "apiGroups": ["policy"],
        "resources": ["poddisruptionbudgets"],
        "verbs": ["get", "list", "watch"],
    },
    # Where they are served: gangs that upstream's own objects declare.
    {
        "apiGroups": ["scheduling.k8s.io"],
        "resources": ["podgroups"],
        "verbs": ["get", "list", "watch"],
    },
    # Get: an Event that another process has written is counted up, not made again.
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "get", "patch"]},
    # Documents are read from there, and those of files are mirrored there by server-side apply.
    {
        "apiGroups": [GROUP],
        "resources": [plural(kind) for kind in API_KINDS],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"],
    },
    {
        "apiGroups": [GROUP],
        "resources": [f"{plural(kind)}/status" for kind in API_KINDS],
        "verbs": ["patch"],
    },
)


TELEMETRY_RULES: Final = (
    # Patch: the annotations of used memory.
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]},
)
"""Only where telemetry is set up. Exporters are found by their pods, which are read anyway."""


def access(options: ManifestOptions) -> tuple[Object, ...]:
    """Render the service account and what it may do in the whole cluster."""
    account: Object = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": options.name,
            "namespace": options.namespace,
            "labels": options.labels,
        },
        "automountServiceAccountToken": False,
    }
    role: Object = {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": options.name, "labels": options.labels},
        "rules": [dict(rule) for rule in cluster_rules(options)],
    }
    binding: Object = {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": options.name, "labels": options.labels},
        "roleRef": {"apiGroup": _RBAC_GROUP, "kind": "ClusterRole", "name": options.name},
        "subjects": [
            {"kind": "ServiceAccount", "name": options.name, "namespace": options.namespace}
        ],
    }
    return account, role, binding, *_lease_access(options)


def cluster_rules(options: ManifestOptions) -> tuple[Object, ...]:
    """Return what Sluice may do in the whole cluster."""
    return (*CLUSTER_RULES, *(TELEMETRY_RULES if options.telemetry.writes_nodes else ()))


def lease_rules(*names: str) -> tuple[Object, ...]:
    """Return what may be done with Leases of these names; creation cannot be limited to a name."""
    leases: Object = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return (
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": list(names), "verbs": ["get", "update"]},
    )


def lease_watch_rules(name: str) -> tuple[Object, ...]:
    """Return what it takes to know the newest term of a Lease; the webhook refuses older ones."""
    leases: Object = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return ({**leases, "resourceNames": [name], "verbs": ["get", "list", "watch"]},)


def _lease_access(options: ManifestOptions) -> tuple[Object, ...]:
    """Render the Lease by which one of the replicas leads, and what they may do with it."""
    metadata = {"name": options.name, "namespace": options.namespace, "labels": options.labels}
    role: Object = {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": "Role",
        "metadata": dict(metadata),
        "rules": [
            *lease_rules(options.name, f"{options.name}-extender"),
            *lease_watch_rules(options.name),
        ],
    }
    binding: Object = {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC_GROUP, "kind": "Role", "name": options.name},
        "subjects": [
            {"kind": "ServiceAccount", "name": options.name, "namespace": options.namespace}
        ],
    }
    # Made with the rest, as one that was released, so that the first leader need not wait: where
    # there is no Lease, one may
    # have been deleted under a leader that has not noticed yet.
    lease: Object = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": dict(metadata),
        "spec": {"leaseDurationSeconds": RELEASED_SECONDS},
    }
    return role, binding, lease
