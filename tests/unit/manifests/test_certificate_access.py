# SPDX-License-Identifier: Apache-2.0
"""Who may read the authority's key, and that nobody may do more than keep certificates takes."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from policies.vendors import build_catalog
from reconciler.manifests.access import accounts
from reconciler.manifests.options import ManifestOptions, Processes, TlsSecret
from reconciler.manifests.render import render

CATALOG = build_catalog()
FILES: dict[str, Any] = {"tls": TlsSecret(b"ca", b"certificate", b"key"), "ca_bundle": b"ca"}


def rules_of(resource: str, rules: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [
        (rule.get("resourceNames"), rule["verbs"])
        for rule in rules
        if resource in rule["resources"]
    ]


def arguments(**choices: Any) -> dict[str, list[str]]:
    return {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]["containers"][0]["args"]
        for item in map(dict[str, Any], render(ManifestOptions(CATALOG, **choices)))
        if item["kind"] == "Deployment"
    }


def test_the_webhook_reads_its_certificate_and_not_the_authoritys_key() -> None:
    writer, reader = accounts(ManifestOptions(CATALOG, name="gate", processes=Processes.APART))
    assert rules_of("secrets", reader.own_rules) == [(["gate-tls"], ["list", "watch"])]
    assert rules_of("secrets", writer.own_rules) == [
        (None, ["create"]),
        (["gate-tls", "gate-authority"], ["list", "watch", "patch"]),
    ]


def test_only_this_installations_webhook_configurations_are_written_to() -> None:
    (account,) = accounts(ManifestOptions(CATALOG, name="gate"))
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert rules_of(kind, account.cluster_rules) == [(["gate"], ["list", "watch", "patch"])]
    assert rules_of("secrets", account.cluster_rules) == []


@pytest.mark.parametrize("processes", list(Processes))
def test_who_serves_from_files_may_neither_read_secrets_nor_write_bundles(
    processes: Processes,
) -> None:
    for account in accounts(ManifestOptions(CATALOG, processes=processes, **FILES)):
        rules = (*account.cluster_rules, *account.own_rules)
        assert rules_of("secrets", rules) == []
        assert rules_of("mutatingwebhookconfigurations", rules) == []


def test_every_process_is_told_which_secret_it_is() -> None:
    found = arguments(name="gate", namespace="gpu", processes=Processes.APART)
    for process in ("gate", "gate-reconciler"):
        assert "--certificates-secret=gpu/gate-tls" in found[process]
        assert "--installation=gate" in found[process]


def test_with_files_the_webhook_is_told_of_its_mount_only() -> None:
    found = arguments(processes=Processes.APART, **FILES)
    assert "--certificates=/etc/sluice/certificates" in found["sluice"]
    for process in found.values():
        assert not any(argument.startswith("--certificates-secret") for argument in process)
