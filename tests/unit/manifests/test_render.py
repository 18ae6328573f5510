# SPDX-License-Identifier: Apache-2.0
"""What each choice of an installation changes in the rendered objects."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from policies.documents.source import SourceText
from policies.model.settings import Mode, Settings
from policies.vendors import build_catalog
from policies.workloads.reading import read_kind
from reconciler.manifests.options import ManifestOptions, TlsSecret
from reconciler.manifests.predicates import Predicates
from reconciler.manifests.render import render
from reconciler.manifests.text import to_yaml
from reconciler.runtime.loading import Compiler
from sluice import __version__

CATALOG = build_catalog()


def options(**choices: Any) -> ManifestOptions:
    return ManifestOptions(CATALOG, **choices)


def of_kind(kind: str, **choices: Any) -> list[Any]:
    return [item for item in render(options(**choices)) if item["kind"] == kind]


def entries(**choices: Any) -> dict[str, Any]:
    return {
        entry["name"]: entry
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for configuration in of_kind(kind, **choices)
        for entry in configuration["webhooks"]
    }


def selectors(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield every namespaceSelector, however deep."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "namespaceSelector":
                yield item
            else:
                yield from selectors(item)
    elif isinstance(value, list):
        for item in value:
            yield from selectors(item)


def test_gpu_pods_and_documents_fail_closed_in_the_validating_pass_and_nothing_else_does() -> None:
    policies = {name: entry["failurePolicy"] for name, entry in entries().items()}
    assert policies == {
        "mutate.sluice.dev": "Ignore",
        "validate.sluice.dev": "Fail",
        "claims.validate.sluice.dev": "Fail",
        "workloads.validate.sluice.dev": "Ignore",
        "custom-workloads.validate.sluice.dev": "Ignore",
        "documents.mutate.sluice.dev": "Ignore",
        "documents.validate.sluice.dev": "Fail",
    }


def test_entries_for_documents_concern_sluices_own_group_and_nobody_elses() -> None:
    found = entries(account="sluice@example.com")
    for name in ("documents.mutate.sluice.dev", "documents.validate.sluice.dev"):
        entry = found[name]
        assert {group for rule in entry["rules"] for group in rule["apiGroups"]} == {"sluice.dev"}
        assert {rule["scope"] for rule in entry["rules"]} == {"Cluster"}
        assert "namespaceSelector" not in entry
        (condition,) = entry["matchConditions"]
        assert condition["expression"] == 'request.userInfo.username != "sluice@example.com"'


def test_deleting_a_document_and_writing_its_status_are_guarded() -> None:
    objects, statuses = entries()["documents.validate.sluice.dev"]["rules"]
    assert objects["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert "tenants" in objects["resources"]
    assert statuses["operations"] == ["UPDATE"]
    assert statuses["resources"] == [f"{name}/status" for name in objects["resources"]]


def test_an_observing_installation_fails_open_and_changes_nothing() -> None:
    assert {entry["failurePolicy"] for entry in entries(observe=True).values()} == {"Ignore"}
    assert of_kind("MutatingAdmissionPolicy", observe=True) == []
    bindings = of_kind("ValidatingAdmissionPolicyBinding", observe=True)
    assert [binding["spec"]["validationActions"] for binding in bindings] == [["Audit"]] * 3
    (config_map,) = of_kind("ConfigMap", observe=True)
    assert "mode: Observe" in config_map["data"]["settings.yaml"]


def test_older_clusters_get_void_from_the_webhook() -> None:
    found = entries(has_mutating_admission_policy=False)
    assert found["other-pods.mutate.sluice.dev"]["failurePolicy"] == "Ignore"
    assert of_kind("MutatingAdmissionPolicy", has_mutating_admission_policy=False) == []
    (guard,) = of_kind("ValidatingAdmissionPolicy", has_mutating_admission_policy=False)
    assert guard["metadata"]["name"] == "sluice-keys"


def test_every_entry_is_safe_to_call_in_a_dry_run_and_gives_up_soon() -> None:
    for entry in entries(has_mutating_admission_policy=False).values():
        assert entry["sideEffects"] == "None"
        assert entry["timeoutSeconds"] == 5
        assert entry["matchPolicy"] == "Equivalent"
        assert "objectSelector" not in entry
        is_mutating = entry["clientConfig"]["service"]["path"] == "/mutate"
        assert entry.get("reinvocationPolicy") == ("IfNeeded" if is_mutating else None)


def test_pods_are_never_mutated_after_they_were_created() -> None:
    (rule,) = entries()["mutate.sluice.dev"]["rules"]
    assert (rule["resources"], rule["operations"]) == (["pods"], ["CREATE"])


def test_every_known_kind_of_workload_has_a_rule() -> None:
    found = entries()
    rules = [
        (group, version, resource)
        for name in ("workloads", "custom-workloads")
        for rule in found[f"{name}.validate.sluice.dev"]["rules"]
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for resource in rule["resources"]
        if rule["operations"] == ["CREATE", "UPDATE"]
    ]
    kinds = CATALOG.workloads.kinds
    assert sorted(rules) == sorted((k.group, v, k.resource) for k in kinds for v in k.versions)


def test_conditions_for_custom_kinds_look_into_no_template() -> None:
    entry = entries()["custom-workloads.validate.sluice.dev"]
    assert [condition["name"] for condition in entry["matchConditions"]] == [
        "is-no-part-of-another",
        "changes-its-spec",
    ]
    assert max(len(c["expression"]) for c in entry["matchConditions"]) < 100


def test_kinds_of_the_settings_have_rules_too() -> None:
    raw = {"group": "example.com", "resource": "models", "kind": "Model"}
    kind = read_kind({**raw, "templates": [{"path": "spec.template"}]})
    catalog = replace(CATALOG, workloads=CATALOG.workloads.joined([kind]))
    rendered: list[Any] = list(render(ManifestOptions(catalog)))
    entries = [entry for item in rendered for entry in item.get("webhooks", ())]
    rules = [rule for entry in entries for rule in entry["rules"]]
    (own,) = [rule for rule in rules if rule["apiGroups"] == ["example.com"]]
    assert (own["resources"], own["apiVersions"]) == (["models"], ["*"])


def test_the_same_namespaces_are_guarded_everywhere() -> None:
    choices = {"namespace": "gate", "exclude_namespaces": ("monitoring",)}
    found = [s for item in render(options(**choices)) for s in selectors(item)]
    assert len(found) == 10
    for selector in found:
        assert selector == {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": [
                        "gate",
                        "kube-system",
                        "kube-public",
                        "kube-node-lease",
                        "gpu-operator",
                        "monitoring",
                    ],
                }
            ]
        }


def test_an_installation_can_be_limited_to_some_namespaces() -> None:
    selector = options(only_namespaces=("a", "b")).namespace_selector()
    assert selector["matchExpressions"][1:] == [  # type: ignore[index] # a list
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
    ]


def test_the_webhook_is_reached_by_service_or_by_url() -> None:
    by_service = entries(name="gate", namespace="gpu")["validate.sluice.dev"]["clientConfig"]
    assert by_service == {
        "service": {"name": "gate", "namespace": "gpu", "path": "/validate", "port": 443}
    }
    by_url = entries(url="https://127.0.0.1:9443/", ca_bundle=b"PEM")["mutate.sluice.dev"]
    assert by_url["clientConfig"] == {
        "url": "https://127.0.0.1:9443/mutate",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }


def test_the_secret_is_rendered_only_when_its_content_is_given() -> None:
    assert of_kind("Secret") == []
    (secret,) = of_kind("Secret", tls=TlsSecret(b"ca", b"certificate", b"key"))
    assert secret["stringData"] == {"ca.crt": "ca", "tls.crt": "certificate", "tls.key": "key"}
    (deployment,) = of_kind("Deployment", tls=TlsSecret(b"ca", b"certificate", b"key"))
    (mounted,) = [
        volume["secret"]["secretName"]
        for volume in deployment["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    ]
    assert mounted == secret["metadata"]["name"]


def test_the_key_guard_lets_only_the_account_through() -> None:
    (guard,) = [
        policy
        for policy in of_kind("ValidatingAdmissionPolicy", account="sluice@example.com")
        if policy["metadata"]["name"] == "sluice-keys"
    ]
    (condition,) = guard["spec"]["matchConditions"]
    assert condition["expression"] == 'request.userInfo.username != "sluice@example.com"'


@pytest.mark.parametrize("account", ["it's", 'say "x"', "a\\b", "line\nbreak", "é"])
def test_no_account_name_can_change_the_guards_expression(account: str) -> None:
    (guard,) = [
        policy
        for policy in of_kind("ValidatingAdmissionPolicy", account=account)
        if policy["metadata"]["name"] == "sluice-keys"
    ]
    (condition,) = guard["spec"]["matchConditions"]
    literal = condition["expression"].removeprefix("request.userInfo.username != ")
    assert json.loads(literal) == account


def test_the_documents_of_the_config_map_can_be_served() -> None:
    choices = {"name": "gate", "namespace": "gpu", "observe": True}
    (config_map,) = of_kind("ConfigMap", **choices)
    sources = [SourceText(name, text.encode()) for name, text in config_map["data"].items()]
    loaded = Compiler().load(sources)
    assert loaded.policy_set is not None
    assert loaded.policy_set.settings == Settings(
        mode=Mode.OBSERVE, account="system:serviceaccount:gpu:gate"
    )


def test_rendering_anew_can_leave_the_config_map_alone_that_holds_the_users_documents() -> None:
    assert of_kind("ConfigMap", has_documents=False) == []
    volume = {"name": "policies", "configMap": {"name": "sluice-policies"}}
    (deployment,) = of_kind("Deployment", has_documents=False)
    assert volume in deployment["spec"]["template"]["spec"]["volumes"]


def test_the_image_is_of_this_version() -> None:
    assert options().image == f"sluice:{__version__}"


def test_yaml_reads_back_as_what_was_rendered() -> None:
    rendered = render(options(has_mutating_admission_policy=False))
    text = to_yaml(rendered)
    assert list(yaml.safe_load_all(text)) == rendered
    assert "&id" not in text


def test_a_name_that_is_no_name_never_reaches_an_expression() -> None:
    odd = replace(CATALOG, gpu_prefixes=("a'b",))
    with pytest.raises(ValueError, match="no prefix of a Kubernetes name"):
        Predicates(odd).container_asks_gpus("c")
