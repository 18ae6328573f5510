# SPDX-License-Identifier: Apache-2.0
"""What is rendered is accepted by a real API server, and is enough for Sluice and no more."""

from functools import partial
from pathlib import Path

import pytest
import yaml

from certs.files import CertificateFiles
from policies.vendors import build_catalog
from reconciler.kube.raw import mapping, text
from reconciler.manifests.options import ManifestOptions, Processes, TlsSecret
from reconciler.manifests.render import render, render_groups
from reconciler.manifests.scheduler import Asker, SchedulerOptions, scheduler_objects
from reconciler.manifests.telemetry import TelemetryOptions
from tests.controlplane import ControlPlane
from tests.integration.manifests.installation import (
    DEADLINE_SECONDS,
    Installation,
    pod,
    until,
)

BASE = Path(__file__).parents[3] / "manifests" / "base"


@pytest.mark.parametrize("processes", Processes)
def test_every_object_is_accepted_and_the_replicas_become_ready(
    installation: Installation, certificates: CertificateFiles, processes: Processes
) -> None:
    files = certificates
    tls = TlsSecret(
        files.ca_certificate.read_bytes(), files.certificate.read_bytes(), files.key.read_bytes()
    )
    options = installation.options(tls=tls, ca_bundle=tls.authority, processes=processes)
    objects = render(options)
    installation.apply(objects[:1])
    installation.apply(objects, "--dry-run=server")
    installation.apply(objects)
    kubectl = installation.control_plane.kubectl
    deployments = [item for item in objects if item["kind"] == "Deployment"]
    assert len(deployments) == (1 if processes is Processes.TOGETHER else 2)
    for name in (text(mapping(item, "metadata"), "name") for item in deployments):
        # The namespace demands the restricted pod security standard.
        kubectl(
            *("wait", f"deployment/{name}", "-n", options.namespace),
            *("--for=condition=Available", f"--timeout={DEADLINE_SECONDS:g}s"),
        )
        until(
            partial(_counts_every_replica, installation, name, options),
            "the disruption budget counts every replica",
        )


@pytest.mark.parametrize("first", Processes)
def test_one_kind_of_processes_is_applied_over_the_other(
    installation: Installation, certificates: CertificateFiles, first: Processes
) -> None:
    files = certificates
    tls = TlsSecret(
        files.ca_certificate.read_bytes(), files.certificate.read_bytes(), files.key.read_bytes()
    )
    (second,) = set(Processes) - {first}
    for processes in (first, second):
        options = installation.options(tls=tls, ca_bundle=tls.authority, processes=processes)
        groups = render_groups(options)
        installation.apply(groups["namespace"])
        installation.apply([*groups["access"], *groups["policies"], *groups["workload"]])
        rollout = ("rollout", "status", f"deployment/{options.name}", "-n", options.namespace)
        installation.control_plane.kubectl(*rollout, f"--timeout={DEADLINE_SECONDS:g}s")
    live = installation.control_plane.get("deployment", options.name, "-n", options.namespace)
    wanted = "serve" if second is Processes.APART else "run"
    assert live["spec"]["template"]["spec"]["containers"][0]["args"][0] == wanted


def _counts_every_replica(
    installation: Installation, budget: str, options: ManifestOptions
) -> bool:
    found = installation.control_plane.get("pdb", budget, "-n", options.namespace)
    healthy: object = found["status"].get("currentHealthy")
    return healthy == options.replicas


def test_older_clusters_and_observers_get_objects_that_are_accepted(
    installation: Installation,
) -> None:
    for choices in (
        {"has_mutating_admission_policy": False},
        {"observe": True},
        {"exclude_namespaces": ("monitoring",), "account": "sluice@example.com"},
    ):
        groups = render_groups(installation.options(**choices))
        cluster_wide = [
            item
            for group in ("access", "admission-policies", "webhooks")
            for item in groups[group]
            if "namespace" not in mapping(item, "metadata")
        ]
        installation.apply(cluster_wide, "--dry-run=server")


_ASKED = TelemetryOptions(
    {"PROMETHEUS_URL": "https://prometheus:9090", "PROMETHEUS_TENANT": "gpu"},
    secret="prometheus-reader",
)
_SCRAPED = TelemetryOptions(
    {"SLUICE_TELEMETRY_SOURCE": "Scrape", "SLUICE_EXPORTER_SCHEME": "https"},
    exporter_secret="exporters-ca",
    exporter_audience="exporters",
)


@pytest.mark.parametrize("telemetry", [_ASKED, _SCRAPED])
@pytest.mark.parametrize("processes", Processes)
def test_telemetry_with_its_credentials_and_preferences_is_accepted(
    installation: Installation, processes: Processes, telemetry: TelemetryOptions
) -> None:
    options = installation.options(
        telemetry=telemetry,
        preferred_nodes=3,
        processes=processes,
    )
    extender = scheduler_objects(SchedulerOptions(options, Asker.SECOND))
    objects = [*render(options), *extender]
    installation.apply(objects[:1])
    installation.apply(objects, "--dry-run=server")


def test_no_expression_names_a_field_that_does_not_exist(installation: Installation) -> None:
    policies = render_groups(installation.options())["admission-policies"]
    installation.apply(policies)
    made = [item for item in policies if item["kind"] == "ValidatingAdmissionPolicy"]

    def checked() -> dict[str, object]:
        found = installation.control_plane.get("validatingadmissionpolicies")["items"]
        return {
            item["metadata"]["name"]: item["status"]["typeChecking"]
            for item in found
            if item["metadata"]["name"].startswith(installation.name)
            and "typeChecking" in item.get("status", {})
        }

    until(lambda: len(checked()) == len(made) == 3, "every policy has been type-checked")
    assert list(checked().values()) == [{}, {}, {}]


def test_kustomize_builds_the_base_into_the_default_installation(
    control_plane: ControlPlane,
) -> None:
    built = list(yaml.safe_load_all(control_plane.kubectl("kustomize", str(BASE)).stdout))
    rendered = render(ManifestOptions(build_catalog()))

    def key(item: dict[str, object]) -> str:
        return f"{item['kind']}/{item['metadata']['name']}"  # type: ignore[index] # a map

    assert sorted(built, key=key) == sorted(rendered, key=key)


ALLOWED = (
    *(
        f"{verb} {resource}"
        for verb in ("list", "watch")
        for resource in ("pods", "nodes", "namespaces", "poddisruptionbudgets.policy")
    ),
    *(
        "get pods",
        "patch pods",
        "delete pods",
        "create pods/eviction",
        "create events",
        "patch events",
    ),
)
FORBIDDEN = (
    "create pods",
    "delete nodes",
    "update pods",
    "patch pods/status",
    "create pods/exec",
    "create poddisruptionbudgets.policy",
    "patch nodes",
    "update namespaces",
    "get secrets",
    "list secrets",
    "list configmaps",
    "update validatingwebhookconfigurations",
    "create serviceaccounts/token",
    "impersonate users",
)


def test_the_service_account_may_do_what_it_must_and_no_more(installation: Installation) -> None:
    options = installation.options()
    groups = render_groups(options)
    installation.apply([*groups["namespace"], *groups["access"]])
    kubectl = installation.control_plane.kubectl
    token = kubectl("create", "token", options.name, "-n", options.namespace).stdout.strip()

    def may(action: str) -> bool:
        verb, _, resource = action.partition(" ")
        resource, _, subresource = resource.partition("/")
        extra = (f"--subresource={subresource}",) if subresource else ()
        answer = kubectl(
            *("auth", "can-i", verb, resource, *extra, "-n", installation.namespace),
            f"--token={token}",
            check=False,
        )
        return answer.stdout.strip() == "yes"

    until(lambda: may("list pods"), "the binding is known to the authorizer")
    assert [action for action in ALLOWED if not may(action)] == []
    assert [action for action in FORBIDDEN if may(action)] == []


def test_the_service_account_releases_a_gated_pod(
    installation: Installation,
) -> None:
    options = installation.options()
    groups = render_groups(options)
    installation.apply([*groups["namespace"], *groups["access"]])
    kubectl = installation.control_plane.kubectl
    token = kubectl("create", "token", options.name, "-n", options.namespace).stdout.strip()
    installation.create(pod("gated", schedulingGates=[{"name": "sluice.dev/quota"}]))
    patch = '[{"op": "remove", "path": "/spec/schedulingGates/0"}]'
    arguments = ("patch", "pod", "gated", "-n", installation.namespace, "--type=json", "-p", patch)
    until(
        lambda: kubectl(*arguments, f"--token={token}", check=False).returncode == 0,
        "the gate is taken off",
    )
