# SPDX-License-Identifier: Apache-2.0
"""What the Prometheus operator and Grafana's sidecar pick up: targets, rules, the dashboard.

The operator's kinds may not be there, so none of it is rendered unless it is wanted. What rules
and dashboard say is in reconciler.monitoring.
Source: prometheus-operator `pkg/apis/monitoring/v1` (PodMonitor, PrometheusRule); Grafana Helm
chart, `sidecar.dashboards.label`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.manifests.deployment import Port
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.workload import HTTPS_PORT, RECONCILER_PORT
from reconciler.monitoring.catalog import GROUPS
from reconciler.monitoring.dashboard.catalog import FILE, dashboard_text
from reconciler.monitoring.rules import rule_file
from reconciler.telemetry.access import EXPORTER, variable

DASHBOARD_LABEL: Final = "grafana_dashboard"
EXPORTER_LABELS: Final = {"app.kubernetes.io/name": "dcgm-exporter"}
EXPORTER_PORT_NAME: Final = "metrics"

_API: Final = "monitoring.coreos.com/v1"
_NAME: Final = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", re.ASCII)

Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class MonitoringOptions:
    """Monitoring of one installation (`options`).

    `labels` are those by which a Prometheus of the operator selects rules and targets.
    `exporters` is the namespace of rendered dcgm-exporters; empty where they are somebody else's.
    `exporter_secret` is their Secret, with the CA as `ca.crt`, if they serve TLS.
    """

    options: ManifestOptions
    labels: Mapping[str, str] = field(default_factory=dict)
    exporters: str = ""
    exporter_secret: str = ""

    def problems(self) -> Iterator[str]:
        """Yield what the API server would refuse."""
        for name, value in self.labels.items():
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                yield f"--monitoring-label {name}={value}: this is no label"


def monitoring_objects(wanted: MonitoringOptions) -> tuple[Object, ...]:
    """Render the targets, the rules and the dashboard."""
    exporters = (_exporter_monitor(wanted),) if wanted.exporters else ()
    return (_pod_monitor(wanted), *exporters, prometheus_rule(wanted), _dashboard(wanted))


def prometheus_rule(wanted: MonitoringOptions) -> Object:
    """Render the rules for the operator."""
    return {
        "apiVersion": _API,
        "kind": "PrometheusRule",
        "metadata": _metadata(wanted, wanted.options.name),
        "spec": rule_file(GROUPS),
    }


def _pod_monitor(wanted: MonitoringOptions) -> Object:
    """Render what scrapes every process, also those that are not ready."""
    options = wanted.options
    names = [options.name, f"{options.name}-reconciler", f"{options.name}-extender"]
    authority = {"secret": {"name": f"{options.name}-tls", "key": "ca.crt"}}
    # The certificate is that of the webhook's Service, whoever serves with it.
    tls = {"ca": authority, "serverName": f"{options.name}.{options.namespace}.svc"}
    https, http = Port(HTTPS_PORT, "HTTPS"), Port(RECONCILER_PORT, "HTTP")
    return {
        "apiVersion": _API,
        "kind": "PodMonitor",
        "metadata": _metadata(wanted, options.name),
        "spec": {
            "selector": {
                "matchLabels": {"app.kubernetes.io/name": "sluice"},
                # By instance: a second scheduler has the same port, and wants to know who asks.
                "matchExpressions": [
                    {"key": "app.kubernetes.io/instance", "operator": "In", "values": names}
                ],
            },
            "podMetricsEndpoints": [
                {"port": https.name, "scheme": "https", "tlsConfig": tls},
                {"port": http.name, "scheme": "http"},
            ],
        },
    }


def _exporter_monitor(wanted: MonitoringOptions) -> Object:
    metadata = _metadata(wanted, f"{wanted.options.name}-exporters")
    if wanted.exporter_secret:
        # It may name Secrets of its own namespace only.
        metadata = {**metadata, "namespace": wanted.exporters}
    # The exporter says whose a card is; the pod that tells it is not.
    endpoint = {"port": EXPORTER_PORT_NAME, "honorLabels": True, **_exporter_tls(wanted)}
    return {
        "apiVersion": _API,
        "kind": "PodMonitor",
        "metadata": metadata,
        "spec": {
            "namespaceSelector": {"matchNames": [wanted.exporters]},
            "selector": {"matchLabels": EXPORTER_LABELS},
            "podMetricsEndpoints": [endpoint],
        },
    }


def _exporter_tls(wanted: MonitoringOptions) -> Object:
    if not wanted.exporter_secret:
        return {}
    told = wanted.options.telemetry.told.get(variable(EXPORTER, "server_name"))
    name = told or f"{EXPORTER_LABELS['app.kubernetes.io/name']}.{wanted.exporters}.svc"
    authority = {"secret": {"name": wanted.exporter_secret, "key": "ca.crt"}}
    return {"scheme": "https", "tlsConfig": {"ca": authority, "serverName": name}}


def _dashboard(wanted: MonitoringOptions) -> Object:
    name = f"{wanted.options.name}-dashboard"
    metadata = {
        "name": name,
        "namespace": wanted.options.namespace,
        "labels": {**wanted.options.labels, DASHBOARD_LABEL: "1"},
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {FILE: dashboard_text()},
    }


def _metadata(wanted: MonitoringOptions, name: str) -> Object:
    return {
        "name": name,
        "namespace": wanted.options.namespace,
        "labels": {**wanted.options.labels, **wanted.labels},
    }
