# SPDX-License-Identifier: Apache-2.0
"""dcgm-exporter for each sampling class of nodes, measuring as often as its class is sampled.

The exporter has one interval for all that it measures (DCGM_EXPORTER_INTERVAL, in ms), and asking
more often only repeats values; so each class has a DaemonSet of its own.
Source: NVIDIA dcgm-exporter 4.8 deployment/ and pkg/cmd/app.go.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policies.documents.kubernetes_names import is_dns_label, is_dns_subdomain
from policies.model.labels import Expression, Operator
from policies.telemetry.classes import SAMPLING_LABEL, SamplingClass
from policies.telemetry.selecting import terms_of
from policies.vendors.nvidia import MIG_PREFIX
from reconciler.manifests.options import SYSTEM_NAMESPACES, ManifestOptions
from reconciler.manifests.scheduler_config import managed_resources
from reconciler.telemetry.config import TelemetryConfig, config_from_environment
from reconciler.telemetry.kinds import SourceKind

EXPORTER_IMAGE: Final = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.1-4.8.4-distroless"
EXPORTER_NAMESPACE: Final = "gpu-operator"
"""Sluice leaves it alone; anywhere else it would take the GPUs away from the exporter."""

RUNTIME_CLASS: Final = "nvidia"
"""What NVIDIA's GPU operator and its container toolkit call it."""

_NAME: Final = "dcgm-exporter"
_PORT: Final = 9400
_WHOLE: Final = "nvidia.com/gpu"
_HAS_GPUS: Final = Expression("nvidia.com/gpu.present", Operator.IN, ("true",))
_POD_RESOURCES: Final = "/var/lib/kubelet/pod-resources"
_WEB: Final = "/etc/dcgm-exporter-web"
_WEB_CONFIG: Final = "web-config.yaml"
"""The key of the Secret; what it names stands beside it. Source: prometheus/exporter-toolkit."""

Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class ExporterOptions:
    """Where and which exporters run, beside the installation that reads them (`options`).

    An empty `runtime_class` is for nodes whose default runtime gives GPUs. `further_resources` are
    names that policies give GPUs besides the known ones. `web_config` is a Secret of the exporters'
    namespace by which they serve TLS and demand passwords or certificates.
    """

    options: ManifestOptions
    namespace: str = EXPORTER_NAMESPACE
    image: str = EXPORTER_IMAGE
    runtime_class: str = RUNTIME_CLASS
    further_resources: tuple[str, ...] = ()
    web_config: str = ""

    def problems(self) -> Iterator[str]:
        """Yield what would make exporters that see nothing, or that the API server refuses."""
        if not is_dns_label(self.namespace):
            yield f"--exporter-namespace {self.namespace!r}: this is no name of a namespace"
        elif self.namespace not in (*SYSTEM_NAMESPACES, *self.options.exclude_namespaces):
            yield (
                f"--exporter-namespace {self.namespace!r}: exporters need a namespace that Sluice "
                f"leaves alone; add --exclude {self.namespace}"
            )
        if self.web_config and not is_dns_subdomain(self.web_config):
            yield f"--exporter-web-config {self.web_config!r}: this is no name of a Secret"
        config = self._config
        is_tls = any(pods.tls for pods in config.pods)
        if is_tls and not self.web_config:
            yield "--exporter-scheme https: rendered exporters need --exporter-web-config for that"
        if self.web_config and not is_tls and config.source is SourceKind.SCRAPE:
            yield "--exporter-web-config: these exporters are scraped by --exporter-scheme https"
        if is_tls and not config.scrape_access.server_name:
            # All have the certificate of one Secret, which cannot know their pods' addresses.
            yield (
                "--exporter-scheme https: rendered exporters need --exporter-server-name, the name "
                f"that their certificate is for, such as {_NAME}.{self.namespace}.svc"
            )

    @property
    def classes(self) -> tuple[SamplingClass, ...]:
        """Return the classes with their intervals, as those who read them are told."""
        return self._config.classes

    @property
    def _config(self) -> TelemetryConfig:
        return config_from_environment(self.options.telemetry.told)


def exporter_objects(wanted: ExporterOptions) -> tuple[Object, ...]:
    """Render a DaemonSet for each class, and the Service of all of them."""
    return (*(_daemon_set(each, wanted) for each in wanted.classes), _service(wanted))


def _daemon_set(sampling: SamplingClass, wanted: ExporterOptions) -> Object:
    labels = {**_labels(), SAMPLING_LABEL: sampling.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(f"{_NAME}-{sampling.name}", wanted),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(sampling, wanted)},
        },
    }


def _pod(sampling: SamplingClass, wanted: ExporterOptions) -> Object:
    terms = [
        {"matchExpressions": [each.to_json() for each in (_HAS_GPUS, *term)]}
        for term in terms_of(sampling, wanted.classes)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    runtime = {"runtimeClassName": wanted.runtime_class} if wanted.runtime_class else {}
    return {
        **runtime,
        "automountServiceAccountToken": False,
        "priorityClassName": "system-node-critical",
        "affinity": {"nodeAffinity": required},
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(sampling, wanted)],
        "volumes": [
            {"name": "pod-resources", "hostPath": {"path": _POD_RESOURCES}},
            *_web_volumes(wanted),
        ],
    }


def _container(sampling: SamplingClass, wanted: ExporterOptions) -> Object:
    probe = {**_probed(wanted), "periodSeconds": 10}
    return {
        "name": _NAME,
        "image": wanted.image,
        "env": _environment(sampling, wanted),
        "ports": [{"name": "metrics", "containerPort": _PORT}],
        "startupProbe": {**probe, "failureThreshold": 12},
        "readinessProbe": probe,
        "livenessProbe": {**probe, "failureThreshold": 6},
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            # Metrics of profiling (DCGM_FI_PROF_*) need it.
            "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
        },
        "volumeMounts": [
            {"name": "pod-resources", "mountPath": _POD_RESOURCES, "readOnly": True},
            *_web_mounts(wanted),
        ],
    }


def _probed(wanted: ExporterOptions) -> Object:
    if wanted.web_config:
        # A kubelet has neither password nor certificate.
        return {"tcpSocket": {"port": "metrics"}}
    return {"httpGet": {"path": "/health", "port": "metrics"}}


def _web_volumes(wanted: ExporterOptions) -> list[Object]:
    if not wanted.web_config:
        return []
    return [{"name": "web", "secret": {"secretName": wanted.web_config, "defaultMode": 0o400}}]


def _web_mounts(wanted: ExporterOptions) -> list[Object]:
    if not wanted.web_config:
        return []
    return [{"name": "web", "mountPath": _WEB, "readOnly": True}]


def _environment(sampling: SamplingClass, wanted: ExporterOptions) -> list[Object]:
    own = {
        "DCGM_EXPORTER_INTERVAL": str(round(1000 * sampling.interval_seconds)),
        "DCGM_EXPORTER_LISTEN": f":{_PORT}",
        "DCGM_EXPORTER_KUBERNETES": "true",
        # Each pod that shares a card is told of, and those under other names than NVIDIA's too.
        "KUBERNETES_VIRTUAL_GPUS": "true",
        "NVIDIA_RESOURCE_NAMES": ",".join(_attributed(wanted)),
    }
    if wanted.web_config:
        own["DCGM_EXPORTER_WEB_CONFIG_FILE"] = f"{_WEB}/{_WEB_CONFIG}"
    found: list[Object] = [{"name": name, "value": value} for name, value in own.items()]
    where = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return [{"name": "NODE_NAME", "valueFrom": where}, *found]


def _attributed(wanted: ExporterOptions) -> tuple[str, ...]:
    """Return the resources that the exporter does not know by itself."""
    vendor = _WHOLE.partition("/")[0]
    names = managed_resources(wanted.options.catalog, wanted.further_resources)
    return tuple(
        name
        for name in names
        if name != _WHOLE
        and not name.startswith(MIG_PREFIX)
        and (name.startswith(f"{vendor}/") or name in wanted.further_resources)
    )


def _service(wanted: ExporterOptions) -> Object:
    """Return the Service by which a Prometheus finds all of them."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(_NAME, wanted),
        "spec": {
            "clusterIP": "None",
            "selector": _labels(),
            "ports": [{"name": "metrics", "port": _PORT, "targetPort": "metrics"}],
        },
    }


def _labels() -> dict[str, str]:
    return {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/part-of": "sluice"}


def _metadata(name: str, wanted: ExporterOptions) -> Object:
    return {"name": name, "namespace": wanted.namespace, "labels": _labels()}
