# SPDX-License-Identifier: Apache-2.0
"""The Deployments that run Sluice: one of both parts together, or one for each of them."""

from collections.abc import Mapping
from typing import Final

from policies.model.keys import API_VERSION
from policies.model.settings import Mode
from reconciler.manifests.deployment import (
    Port,
    Process,
    Volume,
    deployment,
    disruption_budget,
)
from reconciler.manifests.options import ManifestOptions, Processes
from reconciler.manifests.serving_certificate import (
    certificate_arguments,
    certificate_volumes,
    kept_arguments,
)
from reconciler.manifests.telemetry import TelemetryOptions
from reconciler.manifests.text import to_yaml
from reconciler.manifests.webhook_entries import SERVICE_PORT

POLICIES_DIRECTORY: Final = "/etc/sluice/policies"
HTTPS_PORT: Final = 9443
RECONCILER_PORT: Final = 9445

_GRACE_SECONDS: Final = 15
"""API servers go on calling a pod that is ending until its endpoint is gone everywhere."""

_TERMINATION_SECONDS: Final = 45
"""Grace, then the reviews that are under way, then the last audit lines."""

_RECONCILER_TERMINATION_SECONDS: Final = 30
"""The Lease is given back at once; the rest is for controllers that hang, and audit lines."""

_IDENTITY: Final = "--identity=$(POD_NAME)"
"""As POD_NAME the pod's name is a name that no other process has."""

Object = dict[str, object]


def workload(options: ManifestOptions) -> tuple[Object, ...]:
    """Render each Deployment with its PodDisruptionBudget, and the Service of the webhook."""
    webhook = _webhook(options)
    found = deployment(options, webhook), _service(options), disruption_budget(options, webhook)
    if options.processes is Processes.TOGETHER:
        return found
    reconciler = _reconciler(options)
    return (*found, deployment(options, reconciler), disruption_budget(options, reconciler))


def policies_name(options: ManifestOptions) -> str:
    """Return the name of the ConfigMap of documents."""
    return f"{options.name}-policies"


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
        "metadata": _metadata(options, policies_name(options)),
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


def _webhook(options: ManifestOptions) -> Process:
    """Return the process that answers reviews; if it is the only one, it reconciles too."""
    apart = options.processes is Processes.APART
    return Process(
        name=options.name,
        account=options.webhook_account,
        replicas=options.replicas,
        arguments=(
            "serve" if apart else "run",
            f"--policies={POLICIES_DIRECTORY}",
            *certificate_arguments(options),
            f"--port={HTTPS_PORT}",
            f"--grace={_GRACE_SECONDS}",
            *_lease(options),
            *(() if apart else (_IDENTITY,)),
            "--log-format=json",
        ),
        port=Port(HTTPS_PORT, "HTTPS"),
        volumes=(_policies_volume(options), *certificate_volumes(options)),
        labels=options.labels,
        ending_seconds=_TERMINATION_SECONDS,
        telemetry=TelemetryOptions() if apart else options.leader_telemetry,
    )


def _reconciler(options: ManifestOptions) -> Process:
    name = f"{options.name}-reconciler"
    return Process(
        name=name,
        account=options.name,
        replicas=options.reconcilers,
        arguments=(
            "reconcile",
            f"--policies={POLICIES_DIRECTORY}",
            *kept_arguments(options),
            f"--port={RECONCILER_PORT}",
            *_lease(options),
            _IDENTITY,
            "--log-format=json",
        ),
        port=Port(RECONCILER_PORT, "HTTP"),
        volumes=(_policies_volume(options),),
        # Other labels than the webhook's, whose Service selects by them.
        labels={**options.labels, "app.kubernetes.io/instance": name},
        ending_seconds=_RECONCILER_TERMINATION_SECONDS,
        telemetry=options.leader_telemetry,
    )


def _lease(options: ManifestOptions) -> tuple[str, ...]:
    return f"--lease-namespace={options.namespace}", f"--lease-name={options.name}"


def _policies_volume(options: ManifestOptions) -> Volume:
    source = {"configMap": {"name": policies_name(options)}}
    return Volume("policies", POLICIES_DIRECTORY, source)


def _service(options: ManifestOptions) -> Object:
    port = {"name": "https", "port": SERVICE_PORT, "targetPort": "https", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(options, options.name),
        "spec": {"selector": options.labels, "ports": [port]},
    }


def _metadata(options: ManifestOptions, name: str) -> Mapping[str, object]:
    return {"name": name, "namespace": options.namespace, "labels": options.labels}
