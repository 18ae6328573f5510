# SPDX-License-Identifier: Apache-2.0
"""The schemas are closed, described, fit for CRDs, and agree with the model."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import chain
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from policies.documents import phrases
from policies.documents.durations import parse_duration
from policies.documents.kinds import LATER_FIELDS, LATER_KINDS, LATER_VALUES, Kind
from policies.documents.policy import DEFAULT_ORDER
from policies.documents.schemas import INT_OR_STRING, Schema, read_schema
from policies.documents.tenant import DEFAULT_PRIORITY, DEFAULT_WEIGHT
from policies.model.decision import Verdict
from policies.model.labels import LabelSelector, Operator
from policies.model.placement import Spreading, SpreadSettings
from policies.model.policy import Enforcement, MemoryLimit, UserValue
from policies.model.pool import Pool
from policies.model.profile import Limiter, ShareWith, SharingMode, Strength
from policies.model.reclaim import AfterPdbTimeout, ReclaimPolicy
from policies.model.settings import (
    Budget,
    FailureMode,
    Mode,
    QueueSettings,
    Settings,
    WithoutTenant,
)
from policies.model.tenant import Lending, Tenant, WhenOverQuota
from policies.vendors import Catalog

KINDS = pytest.mark.parametrize("kind", Kind)
# What a structural schema may not hold. Source: apiextensions.k8s.io/v1 JSONSchemaProps.
NOT_STRUCTURAL = {
    "$ref",
    "$defs",
    "const",
    "uniqueItems",
    "patternProperties",
    "propertyNames",
    "if",
}
SILENT = {"type", "description", "properties", "items", "default", "title", "$schema", "$id"}
SILENT |= {"x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields"}
TOLD_APART = {"additionalProperties", "required"}


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every schema in a schema with its path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}".strip("."))
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}.*")


def at(kind: Kind, path: str) -> dict[str, Any]:
    return dict(dict(nodes(read_schema(kind)))[path])


@KINDS
def test_a_schema_is_one(kind: Kind) -> None:
    Draft202012Validator.check_schema(read_schema(kind))


@KINDS
def test_every_mapping_is_closed(kind: Kind) -> None:
    for path, schema in nodes(read_schema(kind)):
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path
        elif schema.get("type") == "object":
            is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
            assert is_open or isinstance(schema["additionalProperties"], dict), path


@KINDS
def test_every_field_is_described_in_a_sentence(kind: Kind) -> None:
    for path, schema in nodes(read_schema(kind)):
        assert schema["description"].endswith("."), path


@KINDS
def test_a_schema_can_become_a_custom_resource_definition(kind: Kind) -> None:
    for path, schema in nodes(read_schema(kind)):
        # A quantity has no type there, as in the API server's own schemas.
        assert ("type" in schema) != (schema.get(INT_OR_STRING) is True), path
        assert not NOT_STRUCTURAL & set(schema), path


@KINDS
def test_texts_and_lists_are_bounded(kind: Kind) -> None:
    for path, schema in nodes(read_schema(kind)):
        if schema.get("type", "string") == "string" and "enum" not in schema:
            assert schema["maxLength"] <= 8192, path
        if schema.get("type") == "array":
            assert schema["maxItems"] <= 1024, path


@KINDS
def test_every_keyword_that_can_be_broken_has_words(kind: Kind) -> None:
    for path, schema in nodes(read_schema(kind)):
        for keyword in set(schema) - SILENT - TOLD_APART:
            value: object = {"minProperties": {}, "maxItems": []}.get(keyword, "x")
            assert phrases.phrase(keyword, schema[keyword], value), path


@KINDS
def test_patterns_are_anchored_and_have_words(kind: Kind) -> None:
    for path, schema in nodes(read_schema(kind)):
        if pattern := schema.get("pattern"):
            assert pattern.startswith("^"), path
            assert pattern.endswith("$"), path
            assert pattern in phrases.PATTERNS, path


def test_no_pattern_has_words_that_nothing_uses() -> None:
    used = {s.get("pattern") for kind in Kind for _, s in nodes(read_schema(kind))}

    assert set(phrases.PATTERNS) <= used


def test_a_keyword_without_words_is_a_fault_of_ours() -> None:
    with pytest.raises(NotImplementedError):
        phrases.phrase("dependentRequired", {}, {})


def test_what_all_kinds_share_is_the_same_in_all() -> None:
    labels = [at(kind, "metadata.labels") for kind in Kind]
    annotations = [at(kind, "metadata.annotations") for kind in Kind]
    selectors = [
        at(Kind.TENANT, "spec.namespaces.selector"),
        at(Kind.GPU_POLICY, "spec.match.labels"),
        at(Kind.GPU_POOL, "spec.nodes.selector"),
        at(Kind.EXEMPTION, "spec.match.labels"),
    ]

    placements = [at(Kind.GPU_POOL, "spec.placement"), at(Kind.SETTINGS, "spec.placement")]

    assert placements[0]["properties"] == placements[1]["properties"]
    assert all(found == labels[0] for found in labels)
    assert all(found == annotations[0] for found in annotations)
    assert all(found["properties"] == selectors[0]["properties"] for found in selectors)


@pytest.mark.parametrize(
    ("kind", "path", "known"),
    [
        (Kind.SETTINGS, "spec.mode", Mode),
        (Kind.SETTINGS, "spec.namespacesWithoutTenant", WithoutTenant),
        (Kind.SETTINGS, "spec.failureMode", FailureMode),
        (Kind.SETTINGS, "spec.placement.strategy", Spreading),
        (Kind.TENANT, "spec.whenOverQuota", WhenOverQuota),
        (Kind.RECLAIM_POLICY, "spec.afterPdbTimeout", AfterPdbTimeout),
        (Kind.SHARING_PROFILE, "spec.mode", SharingMode),
        (Kind.SHARING_PROFILE, "spec.shareWith", ShareWith),
        (Kind.SHARING_PROFILE, "spec.limiter", Limiter),
        (Kind.GPU_POLICY, "spec.enforcement", Enforcement),
        (Kind.GPU_POLICY, "spec.memoryLimit.minimumStrength", Strength),
        (Kind.GPU_POLICY, "spec.memoryLimit.userValue", UserValue),
        (Kind.GPU_POLICY, "spec.match.labels.matchExpressions[].operator", Operator),
        (Kind.POLICY_TEST, "spec.cases[].expect.verdict", Verdict),
        (Kind.POLICY_TEST, "spec.cases[].expect.strength", Strength),
    ],
)
def test_a_schema_lists_what_the_model_knows(kind: Kind, path: str, known: type[Any]) -> None:
    assert at(kind, path)["enum"] == [str(member) for member in known]


def test_the_schema_lists_every_vendor(catalog: Catalog) -> None:
    listed = at(Kind.SHARING_PROFILE, "spec.vendor")["enum"]

    assert listed == [vendor.name for vendor in catalog.vendors]


def test_the_defaults_in_the_schema_are_the_models() -> None:
    default = Settings()

    assert defaults(Kind.SETTINGS, SETTINGS_FIELDS) == told(default, SETTINGS_FIELDS)
    assert defaults(Kind.SETTINGS, BUDGET_FIELDS) == told(default.budget, BUDGET_FIELDS)
    assert defaults(Kind.SETTINGS, QUEUE_FIELDS) == told(default.queue, QUEUE_FIELDS)
    assert default.workloads == ()
    assert default.placement is None
    apart = {"workloads", "budget", "queue", "placement"}
    assert names_of(Settings) == {*SETTINGS_FIELDS.values(), *apart}
    assert names_of(Budget) == set(BUDGET_FIELDS.values())
    assert names_of(QueueSettings) == set(QUEUE_FIELDS.values())
    # The API server would write a default into objects that pack, where it is refused.
    above = at(Kind.SETTINGS, "spec.placement.spreadAbove")
    assert "default" not in above
    assert f"left out: {SpreadSettings().spread_above // 10}." in above["description"]
    assert at(Kind.GPU_POLICY, "spec.order")["default"] == DEFAULT_ORDER
    assert at(Kind.GPU_POLICY, "spec.enforcement")["default"] == Enforcement.ENFORCE


def test_the_defaults_of_a_memory_limit_are_the_models() -> None:
    default = MemoryLimit()
    limit = {
        "fromFit": default.from_fit,
        "minimumStrength": default.minimum_strength,
        "userValue": default.user_value,
        "processes.annotation": default.processes_annotation,
    }

    assert {
        name: at(Kind.GPU_POLICY, f"spec.memoryLimit.{name}")["default"] for name in limit
    } == limit


def test_the_defaults_of_a_tenant_are_the_models() -> None:
    default = Tenant("", frozenset(), None)

    assert defaults(Kind.TENANT, TENANT_FIELDS) == told(default, TENANT_FIELDS)
    assert defaults(Kind.TENANT, LENDING_FIELDS) == told(default.lending, LENDING_FIELDS)
    assert names_of(Lending) == set(LENDING_FIELDS.values())
    assert default.priority == DEFAULT_PRIORITY
    assert default.weight == DEFAULT_WEIGHT


def test_the_defaults_of_a_reclaim_policy_are_the_models() -> None:
    assert defaults(Kind.RECLAIM_POLICY, RECLAIM_FIELDS) == told(ReclaimPolicy(), RECLAIM_FIELDS)
    assert names_of(ReclaimPolicy) == {*RECLAIM_FIELDS.values(), "name"}


def test_the_default_of_a_pool_is_the_models() -> None:
    found = at(Kind.GPU_POOL, "spec.releaseWithoutNodes")["default"]

    assert found == Pool("", LabelSelector()).release_without_nodes


def defaults(kind: Kind, names: Iterable[str]) -> list[object]:
    """Return the defaults of fields; durations in seconds, None where there is none."""
    found = [at(kind, f"spec.{name}") for name in names]
    return [
        parse_duration(schema["default"])
        if schema.get("pattern") == phrases.DURATION
        else schema.get("default")
        for schema in found
    ]


def told(model: object, names: Mapping[str, str]) -> list[object]:
    return [getattr(model, name) for name in names.values()]


def names_of(model: type[Any]) -> set[str]:
    return {field.name for field in fields(model)}


SETTINGS_FIELDS = {
    "mode": "mode",
    "namespacesWithoutTenant": "namespaces_without_tenant",
    "failureMode": "failure_mode",
    "account": "account",
    "priorityThreshold": "priority_threshold",
}
BUDGET_FIELDS = {
    "budget.perTenant": "per_tenant",
    "budget.perNode": "per_node",
    "budget.perCluster": "per_cluster",
    "budget.per": "per_seconds",
}
QUEUE_FIELDS = {
    "queue.reserveAfter": "reserve_after_seconds",
    "queue.reserveFor": "reserve_for_seconds",
    "queue.releaseWithoutNodes": "release_without_nodes",
    "queue.gangTimeout": "gang_timeout_seconds",
}
TENANT_FIELDS = {
    "cohort": "cohort",
    "priority": "priority",
    "weight": "weight",
    "minRuntime": "min_runtime_seconds",
    "whenOverQuota": "when_over_quota",
}
LENDING_FIELDS = {
    "lending.enabled": "enabled",
    "lending.idleAfter": "idle_after_seconds",
}
RECLAIM_FIELDS = {
    "cohorts": "cohorts",
    "enabled": "enabled",
    "notice": "notice_seconds",
    "maxGrace": "max_grace_seconds",
    "pdbTimeout": "pdb_timeout_seconds",
    "afterPdbTimeout": "after_pdb_timeout",
    "readmitAfter": "readmit_after_seconds",
}


def test_what_comes_later_is_in_no_schema() -> None:
    for kind, later in LATER_FIELDS.items():
        assert not set(later) & {path for path, _ in nodes(read_schema(kind))}
    for (kind, path), values in LATER_VALUES.items():
        assert not values & set(at(kind, path)["enum"])
    assert not set(LATER_KINDS) & set(Kind)


def test_what_comes_later_stands_where_its_parent_is() -> None:
    for kind, later in LATER_FIELDS.items():
        known = {path for path, _ in nodes(read_schema(kind))}
        assert {path.rpartition(".")[0] for path in later} <= known


def test_every_kind_has_the_shape_of_a_kubernetes_object() -> None:
    required = [read_schema(kind)["required"] for kind in Kind]

    assert set(chain(*required)) == {"apiVersion", "kind", "metadata", "spec"}
    assert all(len(names) == 4 for names in required)
