# SPDX-License-Identifier: Apache-2.0
"""What is rendered for the Prometheus operator and Grafana fits what else is rendered."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import sluice
from certs.names import service_names

ROOT = Path(__file__).parents[3]
ALL = ("--processes", "apart", "--scheduler", "second", "--exporters", "--monitoring")
GROUP = "monitoring.coreos.com/v1"

Json = dict[str, Any]


def rendered(*arguments: str) -> list[Json]:
    result = CliRunner().invoke(sluice.main, ["manifests", "--no-crds", *arguments])
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def of_kind(objects: list[Json], kind: str) -> dict[str, Json]:
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}


def selects(selector: Json, labels: Json) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        each["operator"] == "In" and labels.get(each["key"]) in each["values"]
        for each in selector.get("matchExpressions", ())
    )


def pods_of(objects: list[Json], monitor: Json) -> dict[str, Json]:
    """Return the pods' specs that a PodMonitor selects, by the name of what makes them."""
    makers = [item for item in objects if item["kind"] in ("Deployment", "DaemonSet")]
    namespaces = (
        monitor["spec"]
        .get("namespaceSelector", {})
        .get("matchNames", [monitor["metadata"]["namespace"]])
    )
    return {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in makers
        if item["metadata"]["namespace"] in namespaces
        and selects(monitor["spec"]["selector"], item["spec"]["template"]["metadata"]["labels"])
    }


def ports_of(pod: Json) -> set[str]:
    return {port["name"] for container in pod["containers"] for port in container["ports"]}


def test_nothing_of_the_operator_is_rendered_unless_it_is_wanted() -> None:
    objects = rendered("--scheduler", "second", "--exporters")
    assert GROUP not in {item["apiVersion"] for item in objects}
    assert "grafana_dashboard" not in str(objects)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--monitoring",), {"sluice"}),
        (("--monitoring", "--scheduler", "default"), {"sluice", "sluice-extender"}),
        (ALL, {"sluice", "sluice-reconciler", "sluice-extender"}),
    ],
    ids=["together", "with an extender", "apart, beside a second scheduler"],
)
def test_every_process_of_sluice_is_scraped_and_nothing_else(
    arguments: tuple[str, ...], names: set[str]
) -> None:
    objects = rendered(*arguments)
    monitor = of_kind(objects, "PodMonitor")["sluice"]
    pods = pods_of(objects, monitor)
    assert set(pods) == names
    endpoints = {each["port"]: each for each in monitor["spec"]["podMetricsEndpoints"]}
    assert all(port == each["scheme"] for port, each in endpoints.items())
    for pod in pods.values():
        assert len(ports_of(pod) & set(endpoints)) == 1


def test_the_certificate_is_the_one_that_is_served() -> None:
    name, namespace = "gpus", "platform"
    objects = rendered("--monitoring", "--name", name, "--namespace", namespace)
    monitor = of_kind(objects, "PodMonitor")[name]
    (https,) = (e for e in monitor["spec"]["podMetricsEndpoints"] if e["scheme"] == "https")
    secret = https["tlsConfig"]["ca"]["secret"]
    container = of_kind(objects, "Deployment")[name]["spec"]["template"]["spec"]["containers"][0]
    assert f"--certificates-secret={namespace}/{secret['name']}" in container["args"]
    assert https["tlsConfig"]["serverName"] in service_names(name, namespace)
    assert monitor["metadata"]["namespace"] == namespace


def test_rendered_exporters_are_scraped_with_the_labels_that_they_write() -> None:
    objects = rendered(*ALL)
    monitor = of_kind(objects, "PodMonitor")["sluice-exporters"]
    pods = pods_of(objects, monitor)
    assert set(pods) == set(of_kind(objects, "DaemonSet"))
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert all(endpoint["port"] in ports_of(pod) for pod in pods.values())
    assert endpoint["honorLabels"] is True


def test_rendered_exporters_that_serve_tls_are_scraped_by_it_with_their_own_authority() -> None:
    objects = rendered(*ALL, "--exporter-web-config", "exporters-web")
    monitor = of_kind(objects, "PodMonitor")["sluice-exporters"]
    exporter = of_kind(objects, "DaemonSet")["dcgm-exporter-training"]
    # Of Secrets a PodMonitor may name those of its own namespace alone.
    assert monitor["metadata"]["namespace"] == exporter["metadata"]["namespace"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "exporters-web", "key": "ca.crt"}},
        "serverName": "dcgm-exporter.gpu-operator.svc",
    }
    named = rendered(
        *ALL,
        *("--exporter-web-config", "exporters-web", "--telemetry-source", "Scrape"),
        *("--exporter-scheme", "https", "--exporter-server-name", "exporters.test"),
    )
    (endpoint,) = of_kind(named, "PodMonitor")["sluice-exporters"]["spec"]["podMetricsEndpoints"]
    assert endpoint["tlsConfig"]["serverName"] == "exporters.test"


def test_exporters_of_somebody_else_are_left_to_them() -> None:
    assert set(of_kind(rendered("--monitoring"), "PodMonitor")) == {"sluice"}


def test_rules_and_dashboard_are_those_of_the_files() -> None:
    objects = rendered("--monitoring")
    rules = yaml.safe_load((ROOT / "manifests/alerts/sluice.rules.yaml").read_text("utf-8"))
    assert of_kind(objects, "PrometheusRule")["sluice"]["spec"] == rules
    config = of_kind(objects, "ConfigMap")["sluice-dashboard"]
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    dashboard = (ROOT / "manifests/dashboards/sluice.json").read_text("utf-8")
    assert config["data"] == {"sluice.json": dashboard}


def test_what_the_operator_is_to_find_has_the_labels_that_it_selects_by() -> None:
    label = ("--monitoring-label", "release=prometheus")
    objects = rendered("--monitoring", *label)
    found = [item for item in objects if item["apiVersion"] == GROUP]
    assert len(found) == 2
    assert {item["metadata"]["labels"]["release"] for item in found} == {"prometheus"}


@pytest.mark.parametrize("label", ["release", "-a=b", "a=b c", "=b", "a b=c"])
def test_what_is_no_label_is_refused(label: str) -> None:
    result = CliRunner().invoke(
        sluice.main, ["manifests", "--monitoring", "--monitoring-label", label]
    )
    assert result.exit_code == 2
    assert "--monitoring-label" in result.stderr
