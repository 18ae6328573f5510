# SPDX-License-Identifier: Apache-2.0
"""A GPUPool document becomes a named set of nodes."""

import pytest

from policies.documents.problems import Severity
from policies.model.labels import Expression, Operator
from policies.model.placement import Spreading, SpreadSettings
from tests.unit.documents.loading import COMPLETE, Loader, document, errors, lines, served

A100 = "nodes: {selector: {matchLabels: {pool: a100}}}"


def test_a_pool_has_its_nodes_labels(load_texts: Loader) -> None:
    pools = served(load_texts(COMPLETE, document("GPUPool", "a100", A100))).pools

    assert list(pools) == ["a100"]
    assert pools["a100"].nodes.expressions == (Expression("pool", Operator.IN, ("a100",)),)


@pytest.mark.parametrize(("written", "releases"), [("", False), ("true", True), ("false", False)])
def test_a_pool_may_release_what_no_node_holds(
    load_texts: Loader, written: str, releases: bool
) -> None:
    spec = f"{A100}\nreleaseWithoutNodes: {written}" if written else A100
    pools = served(load_texts(COMPLETE, document("GPUPool", "a100", spec))).pools

    assert pools["a100"].release_without_nodes is releases


@pytest.mark.parametrize(
    ("written", "placement"),
    [
        ("", None),
        ("{strategy: Pack}", SpreadSettings(Spreading.PACK)),
        ("{strategy: Spread}", SpreadSettings(Spreading.SPREAD)),
        ("{strategy: Auto}", SpreadSettings(Spreading.AUTO, spread_above=700)),
        ("{strategy: Auto, spreadAbove: 45}", SpreadSettings(Spreading.AUTO, spread_above=450)),
    ],
)
def test_a_pool_says_how_its_nodes_are_ranked(
    load_texts: Loader, written: str, placement: SpreadSettings | None
) -> None:
    spec = f"{A100}\nplacement: {written}" if written else A100
    pools = served(load_texts(COMPLETE, document("GPUPool", "a100", spec))).pools

    assert pools["a100"].placement == placement


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("{}", "b.yaml:6:14: error: GPUPool/p: spec.placement.strategy: is missing"),
        (
            "{strategy: Sprawl}",
            (
                "b.yaml:6:25: error: GPUPool/p: spec.placement.strategy: "
                'must be one of Pack, Spread, Auto; is "Sprawl"; did you mean "Spread"?'
            ),
        ),
        (
            "{strategy: Pack, spreadAbove: 70}",
            (
                "b.yaml:6:31: error: GPUPool/p: spec.placement.spreadAbove: does nothing with "
                "strategy Pack, which heeds no load; take it away, or say `strategy: Auto`"
            ),
        ),
        ("{strategy: Auto, spreadAbove: 0.7}", "spec.placement.spreadAbove: must be a whole"),
        ("{strategy: Auto, spreadAbove: 19}", "spec.placement.spreadAbove: "),
        ("{strategy: Auto, spreadAbove: 101}", "spec.placement.spreadAbove: "),
        ("{strategy: Auto, above: 70}", "spec.placement.above: unknown field"),
        ("Pack", "spec.placement: "),
    ],
)
def test_a_placement_that_cannot_be_is_refused(
    load_texts: Loader, written: str, error: str
) -> None:
    spec = f"{A100}\nplacement: {written}"
    found = errors(load_texts(COMPLETE, document("GPUPool", "p", spec)))

    assert any(error in line for line in found), found


def test_pools_are_served_in_the_order_of_their_names(load_texts: Loader) -> None:
    texts = [
        document("GPUPool", name, f"nodes: {{selector: {{matchLabels: {{pool: {name}}}}}}}")
        for name in ("l40s", "a100", "h100")
    ]

    assert list(served(load_texts(COMPLETE, *texts)).pools) == ["a100", "h100", "l40s"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("nodes: {}", "5:10: error: GPUPool/p: spec.nodes.selector: is missing"),
        ("nodes: {names: [a]}", "spec.nodes.names: unknown field; known are selector"),
        ("description: x", "spec.nodes: is missing"),
        (
            "nodes: {selector: {matchExpressions: [{key: a, operator: In}]}}",
            "matchExpressions[0].values: operator In needs at least one value",
        ),
        ("nodes: {selector: {matchLabels: {a b: c}}}", '"a b" is no label key'),
    ],
)
def test_a_pool_that_cannot_be_is_refused(load_texts: Loader, spec: str, error: str) -> None:
    found = errors(load_texts(COMPLETE, document("GPUPool", "p", spec)))

    assert any(error in line for line in found), found


def test_a_pool_of_all_nodes_is_pointed_out(load_texts: Loader) -> None:
    result = load_texts(COMPLETE, document("GPUPool", "p", "nodes: {selector: {}}"))

    assert served(result).pools["p"].nodes.expressions == ()
    assert lines(result) == [
        (
            "b.yaml:5:21: warning: GPUPool/p: spec.nodes.selector: an empty selector selects "
            "every node: nothing is left for the default pool"
        )
    ]


A100_PRODUCT = "NVIDIA-A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (A100_PRODUCT, True),
        (f"{A100_PRODUCT}-SHARED", False),
        (f"{A100_PRODUCT}, {A100_PRODUCT}-SHARED", False),
        (f"{A100_PRODUCT}, {A100_PRODUCT}-SHARED, NVIDIA-L40S", True),
    ],
)
def test_a_pool_that_nodes_leave_by_being_shared_is_pointed_out(
    load_texts: Loader, values: str, told: bool
) -> None:
    key = "key: nvidia.com/gpu.product, operator: In"
    spec = f"nodes: {{selector: {{matchExpressions: [{{{key}, values: [{values}]}}]}}}}"
    result = load_texts(COMPLETE, document("GPUPool", "p", spec))

    assert "p" in served(result).pools
    assert len(lines(result, Severity.NOTE)) == len(lines(result)) == told
    product = values.rpartition(", ")[2]
    assert all(
        f"may be {product}-SHARED, and then leave the pool; list" in line for line in lines(result)
    )


@pytest.mark.parametrize(
    "same",
    [
        A100,
        "nodes: {selector: {matchExpressions: [{key: pool, operator: In, values: [a100]}]}}",
    ],
)
def test_two_pools_of_the_same_nodes_are_pointed_out(load_texts: Loader, same: str) -> None:
    texts = document("GPUPool", "a100", A100), document("GPUPool", "old", same)
    result = load_texts(COMPLETE, *texts)

    assert lines(result, Severity.WARNING) == [
        (
            "c.yaml:5:21: warning: GPUPool/old: spec.nodes.selector: "
            "selects the same nodes as pool a100, in b.yaml:3"
        )
    ]


def test_pools_of_other_nodes_are_not(load_texts: Loader) -> None:
    texts = document("GPUPool", "a100", A100), document("GPUPool", "x", A100.replace("100", "30"))

    assert lines(load_texts(COMPLETE, *texts)) == []


def test_two_pools_cannot_have_one_name(load_texts: Loader) -> None:
    found = errors(load_texts(COMPLETE, *[document("GPUPool", "p", A100)] * 2))

    assert any("there is one of this name already, in b.yaml:3" in line for line in found)
