# SPDX-License-Identifier: Apache-2.0
"""A node is in one pool, and pins keep a pod on its nodes whatever the other pools select."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.policyset import PolicySet
from policies.model.pool import Pool
from policies.model.tenant import DEFAULT_POOL
from policies.quota.pools import Pins, pins_of, pool_of
from tests.support.builders import policy_set

IN, NOT_IN = Operator.IN, Operator.NOT_IN
EXISTS, ABSENT = Operator.EXISTS, Operator.DOES_NOT_EXIST


def with_pools(**pools: tuple[Expression, ...]) -> PolicySet:
    built = {name: Pool(name, LabelSelector(pools[name])) for name in sorted(pools)}
    return replace(policy_set(), pools=built)


def model(*names: str) -> Expression:
    return Expression("model", IN, names)


def runs_on(pins: Pins, labels: Mapping[str, str]) -> bool:
    return all(labels.get(k) == v for k, v in pins.node_selector.items()) and all(
        expression.matches(labels) for expression in pins.expressions
    )


def test_a_node_of_several_pools_is_in_the_first_by_name() -> None:
    policies = with_pools(a100=(model("A100"),), all=(Expression("gpu", EXISTS),))

    assert pool_of(policies, {"model": "A100", "gpu": ""}) == "a100"
    assert pool_of(policies, {"model": "H100", "gpu": ""}) == "all"
    assert pool_of(policies, {"model": "H100"}) == DEFAULT_POOL


def test_without_pools_nothing_is_pinned() -> None:
    assert pins_of(with_pools(), DEFAULT_POOL, [{"model": "A100"}]) == Pins()


def test_a_pool_of_one_label_is_selected_by_it() -> None:
    policies = with_pools(a100=(model("A100"),), h100=(model("H100"),))

    assert pins_of(policies, "a100", []) == Pins({"model": "A100"})
    assert pins_of(policies, "h100", []) == Pins({"model": "H100"})


def test_other_requirements_of_a_pool_become_affinity() -> None:
    wanted = (model("A100", "A30"), Expression("spot", ABSENT), Expression("zone", NOT_IN, ("b",)))
    policies = with_pools(big=(Expression("pool", IN, ("big",)), *wanted))

    assert pins_of(policies, "big", []) == Pins({"pool": "big"}, wanted)


def test_the_default_pool_is_what_no_pool_selects() -> None:
    policies = with_pools(a100=(model("A100"),), h100=(model("H100"),), spot=(_exists("spot"),))

    assert pins_of(policies, DEFAULT_POOL, []) == Pins(
        {}, (Expression("spot", ABSENT), Expression("model", NOT_IN, ("A100", "H100")))
    )


def test_what_is_denied_of_another_pool_leaves_most_nodes() -> None:
    policies = with_pools(a=(model("H100"), Expression("team", IN, ("x",))))
    mostly_h100 = [{"model": "H100"}, {"model": "H100", "team": "y"}, {"model": "L40S"}]
    mostly_x = [{"model": "H100"}, {"model": "L40S", "team": "x"}, {"model": "A30", "team": "x"}]

    assert pins_of(policies, DEFAULT_POOL, mostly_h100).expressions == (
        Expression("team", NOT_IN, ("x",)),
    )
    assert pins_of(policies, DEFAULT_POOL, mostly_x).expressions == (
        Expression("model", NOT_IN, ("H100",)),
    )


def test_nodes_that_an_earlier_pool_has_are_not_a_later_ones() -> None:
    reserved = Expression("reserved", IN, ("yes",))
    policies = with_pools(a=(model("H100"), reserved), b=(model("H100"),))

    assert pins_of(policies, "b", []) == Pins(
        {"model": "H100"}, (Expression("reserved", NOT_IN, ("yes",)),)
    )


def test_a_pool_that_an_earlier_one_swallows_runs_nowhere() -> None:
    policies = with_pools(a=(_exists("model"),), b=(model("H100"),), c=())

    for pool in ("b", DEFAULT_POOL):
        pins = pins_of(policies, pool, [])
        assert not any(runs_on(pins, {"model": "H100", "kubernetes.io/hostname": n}) for n in "ab")
        assert not runs_on(pins, {})


def test_a_pool_that_is_not_there_cannot_be_pinned_to() -> None:
    with pytest.raises(KeyError):
        pins_of(with_pools(), "a100", [])


def _exists(key: str) -> Expression:
    return Expression(key, EXISTS)


KEYS, VALUES = st.sampled_from("xyz"), st.sampled_from("123")
EXPRESSIONS = st.one_of(
    st.builds(
        Expression,
        KEYS,
        st.sampled_from([IN, NOT_IN]),
        st.lists(VALUES, min_size=1, max_size=3, unique=True).map(tuple),
    ),
    st.builds(Expression, KEYS, st.sampled_from([EXISTS, ABSENT])),
)
POOLS = st.dictionaries(
    st.sampled_from("abcd"), st.lists(EXPRESSIONS, max_size=3).map(tuple), max_size=4
)
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
NODES = st.lists(LABELS, max_size=6)


@given(POOLS, NODES, NODES)
def test_a_pinned_pod_runs_on_no_node_of_another_pool(
    pools: dict[str, tuple[Expression, ...]], seen: list[dict[str, str]], new: list[dict[str, str]]
) -> None:
    policies = with_pools(**pools)

    for pool in (DEFAULT_POOL, *policies.pools):
        pins = pins_of(policies, pool, seen)
        assert all(pool_of(policies, n) == pool for n in (*seen, *new) if runs_on(pins, n))


@given(POOLS, NODES)
def test_a_pool_of_single_requirements_keeps_all_its_nodes(
    pools: dict[str, tuple[Expression, ...]], nodes: list[dict[str, str]]
) -> None:
    policies = with_pools(**{name: found[:1] for name, found in pools.items() if found})

    for pool in (DEFAULT_POOL, *policies.pools):
        pins = pins_of(policies, pool, nodes)
        own = [labels for labels in nodes if pool_of(policies, labels) == pool]
        assert all(runs_on(pins, labels) for labels in own)


@given(EXPRESSIONS, EXPRESSIONS, st.lists(LABELS, min_size=20))
def test_requirements_that_exclude_each_other_are_never_met_together(
    one: Expression, other: Expression, nodes: list[dict[str, str]]
) -> None:
    assert one.excludes(other) == other.excludes(one)
    assert one.excludes(one.contrary())
    for labels in nodes:
        assert one.matches(labels) is not one.contrary().matches(labels)
        assert not (one.excludes(other) and one.matches(labels) and other.matches(labels))
