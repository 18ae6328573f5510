# SPDX-License-Identifier: Apache-2.0
"""Objects of the API as documents: what a person would have written, and nothing of the server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.documents.kinds import Kind
from policies.documents.scalars import plain
from policies.documents.schemas import read_schema
from policies.documents.source import SourceText, parse_documents
from reconciler.kube.document_resources import API_KINDS
from reconciler.runtime.api_documents import is_mirror, source_name, to_source
from reconciler.runtime.document_files import read_documents
from reconciler.runtime.loading import Compiler
from tests.support.generate import ROOT

LIVE = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "Tenant",
    "metadata": {
        "name": "chat",
        "labels": {"team": "x", "state.sluice.dev/other": "y"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{" * 9000},
        "uid": "b91cef9d",
        "resourceVersion": "12",
        "generation": 3,
        "creationTimestamp": "2031-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "finalizers": ["example.com/x"],
        "ownerReferences": [{"kind": "App"}],
    },
    "spec": {"namespaces": {"names": ["chat"]}},
    "status": {"used": "2"},
}


def value_of(source: SourceText) -> Any:
    parsed = parse_documents(source)
    assert parsed.problems == ()
    (document,) = parsed.documents
    return plain(document.value)


def test_what_the_server_has_added_is_taken_off() -> None:
    assert value_of(to_source(Kind.TENANT, LIVE)) == {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": "chat", "labels": {"team": "x"}},
        "spec": {"namespaces": {"names": ["chat"]}},
    }


def test_a_field_that_is_none_stays_to_be_refused() -> None:
    assert value_of(to_source(Kind.TENANT, {**LIVE, "sepc": {}}))["sepc"] == {}


def test_status_and_bookkeeping_do_not_change_the_text() -> None:
    metadata = {**LIVE["metadata"], "resourceVersion": "13", "annotations": {}}  # type: ignore[dict-item] # a map

    assert to_source(Kind.TENANT, {**LIVE, "status": {}, "metadata": metadata}) == to_source(
        Kind.TENANT, LIVE
    )


def test_problems_call_it_by_kind_and_name() -> None:
    source = to_source(Kind.GPU_POLICY, {"metadata": {"name": "p"}})

    assert source.name == source_name(Kind.GPU_POLICY, "p") == "gpupolicy/p (in the API)"
    assert not source.has_lines


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"state.sluice.dev/source": "file"}, True),
        ({"state.sluice.dev/source": "other"}, False),
        ({"source": "file"}, False),
        (None, False),
    ],
)
def test_only_the_label_makes_a_mirror(labels: object, expected: bool) -> None:
    assert is_mirror({"metadata": {"labels": labels}}) is expected


# What an API server can hold: no lone surrogates, and numbers as JSON has them.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-1e15, 1e15, allow_nan=False).filter(lambda f: f == 0 or abs(f) > 1e-15)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_every_value_of_the_api_is_read_as_it_is(value: object) -> None:
    read = value_of(to_source(Kind.TENANT, {"metadata": {"name": "x"}, "spec": value}))

    assert read["spec"] == value


def defaulted(schema: Any, value: Any) -> Any:
    """Fill defaults in as the API server does."""
    if isinstance(value, list) and "items" in schema:
        return [defaulted(schema["items"], item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, field in schema.get("properties", {}).items():
        if name not in filled and "default" in field:
            filled[name] = field["default"]
        if name in filled:
            filled[name] = defaulted(field, filled[name])
    return filled


def test_the_servers_defaults_change_nothing_of_what_a_set_means() -> None:
    """The published documents as files, and as objects to which the server has added defaults."""
    files = read_documents(ROOT / "docs" / "examples" / "policies").sources
    documents = [d.value for source in files for d in parse_documents(source).documents]
    objects = []
    for value in documents:
        item: Any = plain(value)
        if item["kind"] in set(map(str, API_KINDS)):
            kind = Kind(item["kind"])
            filled = defaulted(plain_schema(kind), item)
            objects.append(to_source(kind, filled))
    compiler = Compiler()

    as_files, as_objects = (compiler.load(sources) for sources in (files, objects))

    def messages(result: Any) -> list[tuple[str, str]]:
        return sorted((problem.document, problem.message) for problem in result.problems)

    assert as_objects.policy_set is not None, as_objects.problems
    assert messages(as_objects) == messages(as_files)
    assert as_files.policy_set is not None
    assert as_objects.policy_set.settings == as_files.policy_set.settings
    assert as_objects.policy_set.tenants == as_files.policy_set.tenants
    assert as_objects.policy_set.pools == as_files.policy_set.pools


def plain_schema(kind: Kind) -> Any:
    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: convert(item) for key, item in value.items()}
        return [convert(item) for item in value] if isinstance(value, list) else plain(value)

    return convert(read_schema(kind))
