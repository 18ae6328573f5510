# SPDX-License-Identifier: Apache-2.0
"""Who Sluice's processes are in the cluster, and the little that each may do.

Rules are added with the code that needs them; a test runs Sluice with nothing else, and another
one fails for what is granted and not used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.kube.document_resources import API_KINDS, GROUP, plural
from reconciler.kube.lease import RELEASED_SECONDS
from reconciler.manifests.certificate_access import bundle_rules, keeping_rules, serving_rules
from reconciler.manifests.options import ManifestOptions, Processes

_RBAC_GROUP: Final = "rbac.authorization.k8s.io"

Object = dict[str, object]
Rules = tuple[Mapping[str, object], ...]

_DOCUMENTS: Final = [plural(kind) for kind in API_KINDS]

DOCUMENT_READING: Final = {
    "apiGroups": [GROUP],
    "resources": _DOCUMENTS,
    "verbs": ["list", "watch"],
}
WEBHOOK_RULES: Final = (
    {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": ["list", "watch"]},
    # Documents, and among them the status of tenants.
    DOCUMENT_READING,
)
"""Who answers reviews changes nothing."""

RECONCILER_RULES: Final = (
    {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": ["list", "watch"]},
    # Get and patch: the release of a pod takes its gate off and records what it is charged. Delete:
    # of borrowed pods whose disruption budget has allowed no eviction for too long.
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list", "watch"]},
    # Where they are served: gangs that upstream's own objects declare.
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["list", "watch"]},
    # Get: an Event that another process has written is counted up, not made again.
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "get", "patch"]},
    # Documents are read from there, and those of files are mirrored there by server-side apply.
    {
        "apiGroups": [GROUP],
        "resources": _DOCUMENTS,
        "verbs": ["list", "watch", "create", "patch", "delete"],
    },
    {
        "apiGroups": [GROUP],
        "resources": [f"{name}/status" for name in _DOCUMENTS],
        "verbs": ["patch"],
    },
)


TELEMETRY_RULES: Final = (
    # The annotations of used memory.
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]},
)
"""Only where telemetry is set up. Exporters are found by their pods, which are read anyway."""


@dataclass(frozen=True, slots=True)
class Account:
    """A service account: what it may do in the whole cluster, and in its own namespace."""

    name: str
    cluster_rules: Rules
    own_rules: Rules


def accounts(options: ManifestOptions) -> tuple[Account, ...]:
    """Return the accounts of an installation; the first is the one that writes."""
    name, watched = options.name, lease_watch_rules(options.name)
    telemetry = (
        *(TELEMETRY_RULES if options.telemetry.writes_nodes else ()),
        *options.telemetry.rules(),
    )
    reconciler = (*RECONCILER_RULES, *telemetry, *bundle_rules(options))
    kept, served = keeping_rules(options), serving_rules(options)
    if options.processes is Processes.APART:
        return (
            Account(name, reconciler, (*lease_rules(name), *kept)),
            Account(options.webhook_account, WEBHOOK_RULES, (*watched, *served)),
        )
    leases = (*lease_rules(name, f"{name}-extender"), *watched)
    # The rules of who keeps certificates are enough to serve them.
    return (Account(name, joined(reconciler, WEBHOOK_RULES), (*leases, *kept)),)


def access(options: ManifestOptions) -> tuple[Object, ...]:
    """Render the service accounts, what they may do, and the Lease by which one replica leads."""
    rendered = (item for each in accounts(options) for item in _account(options, each))
    return (*rendered, _lease(options))


def joined(rules: Rules, more: Rules) -> Rules:
    """Return rules that grant what both grant, each resource once where they name it alike."""
    found = {_subject(rule): rule for rule in rules}
    for rule in more:
        known = found.get(_subject(rule), {**rule, "verbs": []})
        verbs = dict.fromkeys((*_names(known, "verbs"), *_names(rule, "verbs")))
        found[_subject(rule)] = {**known, "verbs": list(verbs)}
    return tuple(found.values())


def _subject(rule: Mapping[str, object]) -> tuple[tuple[str, ...], ...]:
    return tuple(_names(rule, field) for field in ("apiGroups", "resources", "resourceNames"))


def _names(rule: Mapping[str, object], field: str) -> tuple[str, ...]:
    value = rule.get(field)
    return tuple(value) if isinstance(value, list) else ()


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
    return ({**leases, "resourceNames": [name], "verbs": ["list", "watch"]},)


def _account(options: ManifestOptions, account: Account) -> tuple[Object, ...]:
    labels = options.labels
    cluster = {"name": account.name, "labels": labels}
    own = {"name": account.name, "namespace": options.namespace, "labels": labels}
    return (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": dict(own),
            "automountServiceAccountToken": False,
        },
        _role("ClusterRole", cluster, account.cluster_rules),
        _binding("ClusterRole", cluster, options.namespace),
        _role("Role", own, account.own_rules),
        _binding("Role", own, options.namespace),
    )


def _role(kind: str, metadata: Mapping[str, object], rules: Rules) -> Object:
    return {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "rules": [dict(rule) for rule in rules],
    }


def _binding(kind: str, metadata: Mapping[str, object], namespace: str) -> Object:
    """Render who may do what the role of the same name says: the account of that name."""
    name = metadata["name"]
    return {
        "apiVersion": f"{_RBAC_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def _lease(options: ManifestOptions) -> Object:
    # Made with the rest, as one that was released, so that the first leader need not wait: where
    # there is no Lease, one may have been deleted under a leader that has not noticed yet.
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": options.name,
            "namespace": options.namespace,
            "labels": options.labels,
        },
        "spec": {"leaseDurationSeconds": RELEASED_SECONDS},
    }
