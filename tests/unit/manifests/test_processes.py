# SPDX-License-Identifier: Apache-2.0
"""Webhook and reconciler in one Deployment, or each in its own with an account of its own."""

from typing import Any, Final

import pytest

from policies.vendors import build_catalog
from reconciler.manifests.access import (
    RECONCILER_RULES,
    TELEMETRY_RULES,
    WEBHOOK_RULES,
    Account,
    accounts,
    joined,
    lease_rules,
    lease_watch_rules,
)
from reconciler.manifests.options import ManifestOptions, Processes
from reconciler.manifests.render import render
from reconciler.manifests.telemetry import TelemetryOptions

CATALOG: Final = build_catalog()
READING: Final = {"get", "list", "watch"}


def options(**choices: Any) -> ManifestOptions:
    return ManifestOptions(CATALOG, processes=Processes.APART, **choices)


def named(kind: str, chosen: ManifestOptions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in render(chosen):
        metadata = item["metadata"]
        assert isinstance(metadata, dict)
        if item["kind"] == kind:
            found[metadata["name"]] = item
    return found


def command(deployment: Any) -> str:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    first: str = container["args"][0]
    return first


def verbs(rules: Any) -> set[str]:
    return {verb for rule in rules for verb in rule["verbs"]}


def test_by_default_one_deployment_does_both() -> None:
    found = named("Deployment", ManifestOptions(CATALOG))
    assert {name: command(each) for name, each in found.items()} == {"sluice": "run"}
    assert list(named("ServiceAccount", ManifestOptions(CATALOG))) == ["sluice"]


def test_apart_each_has_its_own_deployment_account_and_number_of_replicas() -> None:
    found = named("Deployment", options(replicas=3, reconcilers=2))
    assert {
        name: (
            command(each),
            each["spec"]["template"]["spec"]["serviceAccountName"],
            each["spec"]["replicas"],
        )
        for name, each in found.items()
    } == {
        "sluice": ("serve", "sluice-webhook", 3),
        "sluice-reconciler": ("reconcile", "sluice", 2),
    }
    assert set(named("PodDisruptionBudget", options())) == set(found)


def test_the_account_that_writes_is_the_same_either_way() -> None:
    """Guards, settings and a leader of the other kind stay right while one replaces the other."""
    together = ManifestOptions(CATALOG)
    assert options().username == together.username == "system:serviceaccount:sluice:sluice"
    for kind in ("ConfigMap", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration"):
        assert named(kind, options()) == named(kind, together)
    assert named("Lease", options()) == named("Lease", together)


def test_the_service_leads_to_the_webhook_alone_and_needs_no_change_of_its_selector() -> None:
    (service,) = named("Service", options()).values()
    (before,) = named("Service", ManifestOptions(CATALOG)).values()
    assert service == before
    labels = {
        name: each["spec"]["template"]["metadata"]["labels"]
        for name, each in named("Deployment", options()).items()
    }
    assert labels["sluice"].items() >= service["spec"]["selector"].items()
    assert not labels["sluice-reconciler"].items() >= service["spec"]["selector"].items()


def test_the_webhooks_account_only_reads() -> None:
    writer, reader = accounts(options())
    assert (writer.name, reader.name) == ("sluice", "sluice-webhook")
    assert verbs((*reader.cluster_rules, *reader.own_rules)) <= READING
    assert verbs(writer.cluster_rules) > READING


def test_the_reconcilers_account_elects_by_its_own_lease_only() -> None:
    writer, _ = accounts(options(name="gate", ca_bundle=b"PEM"))
    assert writer.own_rules == lease_rules("gate")


def test_one_process_for_both_may_do_what_either_may_and_no_more() -> None:
    (account,) = accounts(ManifestOptions(CATALOG, ca_bundle=b"PEM"))
    assert account == Account(
        "sluice",
        joined(RECONCILER_RULES, WEBHOOK_RULES),
        (*lease_rules("sluice", "sluice-extender"), *lease_watch_rules("sluice")),
    )


def test_rules_on_the_same_resources_become_one() -> None:
    pods = {"apiGroups": [""], "resources": ["pods"]}
    nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    one = {**pods, "verbs": ["list", "patch"]}
    other = {**pods, "verbs": ["get", "list"]}
    assert joined((one,), (other, nodes)) == ({**pods, "verbs": ["list", "patch", "get"]}, nodes)


@pytest.mark.parametrize("count", [0, -1])
def test_there_is_at_least_one_of_each(count: int) -> None:
    assert list(options(reconcilers=count).problems()) == [
        f"--reconcilers {count}: must be at least 1"
    ]


def test_telemetry_is_for_who_reconciles() -> None:
    telemetry = TelemetryOptions({"PROMETHEUS_URL": "http://prometheus:9090"}, "credentials")
    found = named("Deployment", options(telemetry=telemetry))
    variables = {
        name: [item["name"] for item in each["spec"]["template"]["spec"]["containers"][0]["env"]]
        for name, each in found.items()
    }
    assert variables == {
        "sluice": ["POD_NAME"],
        "sluice-reconciler": ["POD_NAME", "PROMETHEUS_URL"],
    }
    writer, reader = accounts(options(telemetry=telemetry))
    assert TELEMETRY_RULES[0] in writer.cluster_rules
    assert verbs(reader.cluster_rules) <= READING
