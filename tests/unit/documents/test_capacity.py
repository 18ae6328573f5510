# SPDX-License-Identifier: Apache-2.0
"""Pools and guarantees are held against the nodes that there are, where these are known."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from policies.cel import Environment
from policies.documents.load import SourceText, load
from policies.documents.problems import Severity
from policies.model.facts import NodeFacts
from policies.vendors import Catalog
from sluice import main
from tests.unit.documents.loading import COMPLETE, document

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


class Check:
    """Loads documents beside nodes and returns the warnings."""

    def __init__(self, catalog: Catalog, environment: Environment) -> None:
        self._catalog, self._environment = catalog, environment

    def __call__(self, nodes: Sequence[NodeFacts], *texts: str) -> list[str]:
        joined = "---\n".join((COMPLETE, *texts))
        source = SourceText("a.yaml", joined.encode())
        result = load([source], catalog=self._catalog, environment=self._environment, nodes=nodes)
        assert result.policy_set is not None, result.problems
        assert {problem.severity for problem in result.problems} <= {Severity.WARNING}
        return [str(problem) for problem in result.problems]


@pytest.fixture
def check(catalog: Catalog, environment: Environment) -> Check:
    return Check(catalog, environment)


def node(name: str, gpus: int = 8, **labels: str) -> NodeFacts:
    return NodeFacts(name, labels, {"nvidia.com/gpu": gpus} if gpus else {})


def pool(name: str, more: str = "", **labels: str) -> str:
    wanted = ", ".join(f"{key}: {value}" for key, value in labels.items())
    return document("GPUPool", name, f"nodes: {{selector: {{matchLabels: {{{wanted}}}}}}}\n{more}")


def tenant(name: str, quota: str) -> str:
    return document("Tenant", name, f"namespaces: {{names: [{name}]}}\nquota: {{{quota}}}")


def test_guarantees_that_nodes_bear_out_are_not_spoken_of(check: Check) -> None:
    texts = (tenant("a", "gpus: {guarantee: 5}"), tenant("b", "gpus: {guarantee: 3}"))

    assert check([node("n1")], *texts) == []


def test_guarantees_of_more_than_there_is_outside_of_all_pools_are_pointed_out(
    check: Check,
) -> None:
    texts = (
        tenant("a", "gpus: {guarantee: 5}"),
        tenant("b", "gpus: {guarantee: 3.5}"),
        pool("p", pool="p"),
    )

    assert check([node("n1"), node("n2", pool="p")], *texts) == [
        "warning: tenants are guaranteed 8.5 GPUs; the nodes outside of all pools have 8 GPUs"
    ]


def test_guarantees_of_more_than_a_pool_has_are_pointed_out_at_the_pool(check: Check) -> None:
    texts = (pool("p", pool="p"), tenant("a", "pools: {p: {guarantee: 9}}"))

    assert check([node("n1"), node("n2", pool="p")], *texts) == [
        (
            "a.yaml:20:18: warning: GPUPool/p: metadata.name: "
            "tenants are guaranteed 9 GPUs of this pool; its nodes have 8 GPUs"
        )
    ]


def test_nothing_is_said_of_guarantees_where_nodes_come_as_they_are_needed(check: Check) -> None:
    texts = (
        pool("p", "releaseWithoutNodes: true", pool="p"),
        tenant("a", "gpus: {guarantee: 9}, pools: {p: {guarantee: 9}}"),
        document("Settings", "cluster", "queue: {releaseWithoutNodes: true}"),
    )

    assert check([node("n1", 1), node("n2", 1, pool="p")], *texts) == []


def test_a_pool_without_nodes_is_pointed_out(check: Check) -> None:
    assert check([node("n1")], pool("p", pool="p")) == [
        "a.yaml:22:21: warning: GPUPool/p: spec.nodes.selector: selects no node"
    ]


def test_nodes_of_several_pools_are_pointed_out_at_the_later_one(check: Check) -> None:
    nodes = [node("n1", a="x", b="x"), node("n2", a="x", b="x"), node("n3", b="x")]

    assert check(nodes, pool("q", b="x"), pool("p", a="x")) == [
        (
            "a.yaml:22:21: warning: GPUPool/q: spec.nodes.selector: "
            "node n1 and 1 more are in pool p already, which goes first by name"
        )
    ]


def test_nodes_that_no_pod_can_be_kept_on_are_pointed_out(check: Check) -> None:
    nodes = [node("n1", a="x", b="x"), node("n2", a="x"), node("n3", b="x"), node("n4", 0, b="x")]

    assert check(nodes, pool("p", a="x", b="x")) == [
        (
            "warning: node n2 is in no pool, and left empty; "
            "select the nodes of each pool by one label of their own"
        )
    ]


def test_lint_takes_the_nodes_from_a_file() -> None:
    command = ["lint", "--facts", str(EXAMPLES / "facts.yaml"), str(EXAMPLES / "policies")]
    ran = CliRunner().invoke(main, command)

    assert ran.exit_code == 0, ran.output
    assert "warning: tenants are guaranteed " in ran.output


@pytest.mark.parametrize("facts", ["kind: List\nitems: []\n", "kind: Pod\n", ""])
def test_lint_refuses_facts_that_hold_no_node(tmp_path: Path, facts: str) -> None:
    file = tmp_path / "facts.yaml"
    file.write_text(facts)
    ran = CliRunner().invoke(main, ["lint", "--facts", str(file), str(EXAMPLES / "policies")])

    assert ran.exit_code == 2
    assert "facts.yaml" in ran.output
    assert "Traceback" not in ran.output
