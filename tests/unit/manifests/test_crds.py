# SPDX-License-Identifier: Apache-2.0
"""The definitions of the documents' kinds say what the schemas of the documents say."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from policies.documents.kinds import Kind
from policies.documents.schemas import read_schema
from policies.vendors import build_catalog
from reconciler.kube.document_resources import API_KINDS, KIND_OF_PLURAL, plural, resource_of
from reconciler.manifests.columns import columns
from reconciler.manifests.crds import crd, crds
from reconciler.manifests.options import ManifestOptions
from reconciler.manifests.render import render

KINDS = pytest.mark.parametrize("kind", API_KINDS)
KEPT = {
    *("type", "description", "minLength", "maxLength", "pattern", "minimum", "maximum"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "required", "enum"),
    *("default", "format", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
    *("x-kubernetes-int-or-string", "x-kubernetes-map-type"),
}
MADE = {"properties", "items", "additionalProperties", "x-kubernetes-preserve-unknown-fields"}


def schema_of(kind: Kind) -> Any:
    found: Any = crd(kind)
    return found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            yield from nodes(schema[word], f"{path}[{word}]")


@KINDS
def test_no_word_is_there_that_a_structural_schema_forbids(kind: Kind) -> None:
    for path, schema in nodes(schema_of(kind)):
        assert schema.keys() <= KEPT | MADE, path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert schema.get("additionalProperties") is not False, path


@KINDS
def test_every_limit_of_the_document_is_in_the_definition(kind: Kind) -> None:
    written = dict(nodes(read_schema(kind)["properties"]["spec"]))
    converted = dict(nodes(schema_of(kind)["properties"]["spec"]))

    assert converted.keys() == written.keys()
    for path, schema in written.items():
        for word in KEPT & schema.keys():
            assert converted[path][word] == schema[word], (path, word)


@KINDS
def test_unknown_fields_reach_sluice_which_refuses_them_by_name(kind: Kind) -> None:
    for path, schema in nodes(schema_of(kind)):
        if "properties" in schema and not path.startswith((".status", ".metadata")):
            assert schema["x-kubernetes-preserve-unknown-fields"] is True, path


@KINDS
def test_of_metadata_only_the_name_is_limited(kind: Kind) -> None:
    metadata = schema_of(kind)["properties"]["metadata"]

    assert metadata.keys() == {"type", "properties"}
    assert metadata["properties"].keys() == {"name"}
    name = read_schema(kind)["properties"]["metadata"]["properties"]["name"]
    for word in ("pattern", "maxLength", "enum"):
        assert metadata["properties"]["name"].get(word) == name.get(word)


@KINDS
def test_a_kind_is_of_the_whole_cluster_and_has_a_status_of_its_own(kind: Kind) -> None:
    spec: Any = crd(kind)["spec"]
    (version,) = spec["versions"]

    assert spec["scope"] == "Cluster"
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}
    assert spec["names"]["categories"] == ["sluice"]
    assert {"conditions", "observedGeneration", "source"} <= (
        schema_of(kind)["properties"]["status"]["properties"].keys()
    )


def test_tests_stay_on_peoples_machines() -> None:
    assert set(API_KINDS) == set(Kind) - {Kind.POLICY_TEST}
    assert len(crds()) == len(API_KINDS)


def test_names_are_english_and_lead_back_to_the_kind() -> None:
    assert plural(Kind.GPU_POLICY) == "gpupolicies"
    assert plural(Kind.SETTINGS) == "settings"
    assert resource_of(Kind.TENANT).path("chat") == "/apis/sluice.dev/v1alpha1/tenants/chat"
    assert {KIND_OF_PLURAL[plural(kind)] for kind in API_KINDS} == set(API_KINDS)


def test_short_names_are_there_once() -> None:
    names = [name for kind in crds() for name in kind["spec"]["names"].get("shortNames", [])]  # type: ignore[index] # a map

    assert len(set(names)) == len(names)
    assert "tnt" in names


def test_kubectl_shows_a_tenant_in_these_columns() -> None:
    shown = [column.name.upper() for column in columns(Kind.TENANT) if not column.is_wide]

    assert shown == ["GUARANTEE", "CEILING", "USED", "BORROWED", "PENDING", "OLDEST WAIT"]


@KINDS
def test_every_column_shows_a_field_that_the_kind_has(kind: Kind) -> None:
    fields = dict(nodes(schema_of(kind)))
    for column in columns(kind):
        path = column.path.partition("[")[0]
        assert path in fields or path.startswith(".metadata."), column


def test_definitions_come_first_and_can_be_left_out() -> None:
    catalog = build_catalog()
    first = render(ManifestOptions(catalog))[: len(API_KINDS)]

    assert {item["kind"] for item in first} == {"CustomResourceDefinition"}
    left = render(ManifestOptions(catalog, has_crds=False))
    assert "CustomResourceDefinition" not in {item["kind"] for item in left}
