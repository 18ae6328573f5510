# SPDX-License-Identifier: Apache-2.0
"""The example documents load without a word, and their own test suite holds."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import yaml

from policies.cel.environment import build_environment
from policies.documents.facts import parse_facts
from policies.documents.load import LoadResult, SourceText, load
from policies.documents.policytest import PolicyTestCase, PolicyTestDocument
from policies.documents.source import parse_documents
from policies.model.facts import Facts
from policies.model.request import JsonObject
from policies.preview.expand import PreviewPod, expand
from policies.preview.judge import differences
from policies.preview.merge import merged
from policies.preview.preview import ANYBODY, preview
from policies.vendors import Catalog, build_catalog

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
POLICIES = EXAMPLES / "policies"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def read(path: Path) -> SourceText:
    return SourceText(str(path.relative_to(EXAMPLES)), path.read_bytes())


def load_examples() -> LoadResult:
    sources = [read(path) for path in sorted(POLICIES.rglob("*.yaml"))]
    return load(sources, catalog=build_catalog(), environment=build_environment())


@pytest.fixture(scope="module")
def loaded() -> LoadResult:
    return load_examples()


def cases() -> Iterator[tuple[PolicyTestDocument, PolicyTestCase]]:
    for suite in load_examples().tests:
        for case in suite.cases:
            yield suite, case


@pytest.fixture(scope="module")
def facts(catalog: Catalog) -> Facts:
    found, problems = parse_facts(read(EXAMPLES / "facts.yaml"), catalog=catalog, now=NOW)
    assert problems == ()
    assert found is not None
    return found


def test_the_examples_load_without_a_problem(loaded: LoadResult) -> None:
    assert loaded.problems == ()
    assert loaded.policy_set is not None
    assert set(loaded.policy_set.tenants) == {"chat", "research", "finance"}


def test_the_facts_show_every_way_of_sharing(facts: Facts) -> None:
    nodes = {node.name: node.allocatable for node in facts.cluster.nodes or ()}

    assert facts.now == datetime(2031, 12, 1, 8, tzinfo=UTC)
    assert nodes["h100-whole-0"] == {"nvidia.com/gpu": 8}
    assert nodes["h100-shared-0"] == {"nvidia.com/gpu.shared": 32}
    assert nodes["h100-mig-0"]["nvidia.com/mig-1g.10gb"] == 30
    assert nodes["a100-whole-0"] == {"nvidia.com/gpu": 8}
    assert nodes["a100-mps-0"] == {"nvidia.com/gpu.shared": 64}
    assert {"chat", "research-nlp", "finance"} <= set(facts.cluster.namespaces)


@pytest.mark.parametrize(
    ("suite", "case"), [pytest.param(s, c, id=f"{s.name}: {c.name}") for s, c in cases()]
)
def test_a_case_of_the_examples_holds(
    loaded: LoadResult, facts: Facts, suite: PolicyTestDocument, case: PolicyTestCase
) -> None:
    assert loaded.policy_set is not None
    manifest = yaml.safe_load(((EXAMPLES / suite.file).parent / case.pod.file).read_text())
    given = merged(manifest, case.pod.patch or {})
    expanded = expand(given, "default", loaded.policy_set.workloads)
    pod = next(item for item in expanded if isinstance(item, PreviewPod))
    namespace = case.pod.namespace or pod.namespace
    found = preview(
        loaded.policy_set, facts, PreviewPod(pod.label, namespace, pod.manifest), ANYBODY
    )

    assert list(differences(case.expect, found.decision)) == []


def test_every_example_pod_is_in_a_case() -> None:
    used = {((EXAMPLES / s.file).parent / c.pod.file).resolve() for s, c in cases()}

    assert used == {path.resolve() for path in (EXAMPLES / "pods").glob("*.yaml")}


@pytest.mark.parametrize("path", sorted((EXAMPLES / "pods").glob("*.yaml")), ids=lambda p: p.stem)
def test_an_example_pod_reads_the_same_to_kubectl(path: Path) -> None:
    parsed = parse_documents(read(path))

    assert parsed.problems == ()
    assert [document.value for document in parsed.documents] == [
        cast("JsonObject", yaml.safe_load(path.read_text()))
    ]
