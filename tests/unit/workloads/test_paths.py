# SPDX-License-Identifier: Apache-2.0
"""Paths find what is there, and nothing in what is otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.model.workload import Factor, Wildcard
from policies.workloads.paths import (
    find,
    get,
    parse_factor,
    parse_path,
    prefix,
    shares_wildcards,
)
from tests.support.strategies import json_values

MAP = parse_path("spec.replicaSpecs.*.template")
LIST = parse_path("spec.groups[*].template")
STEPS = st.one_of(st.sampled_from(["a", "b", "/", "~", Wildcard.VALUES, Wildcard.ITEMS]))
OBJECTS = st.dictionaries(st.sampled_from("ab/~"), json_values)


def test_a_path_is_read_step_by_step() -> None:
    assert MAP == ("spec", "replicaSpecs", Wildcard.VALUES, "template")
    assert LIST == ("spec", "groups", Wildcard.ITEMS, "template")
    assert parse_path("metadata") == ("metadata",)


def test_a_factor_may_take_something_off() -> None:
    assert parse_factor("spec.size - 1") == Factor(("spec", "size"), 1)
    assert parse_factor("spec.some-thing") == Factor(("spec", "some-thing"))


def test_a_wildcard_finds_every_value_of_a_map_with_its_key() -> None:
    found = {"spec": {"replicaSpecs": {"Master": {"template": 1}, "Worker": {"template": 2}}}}

    assert list(find(MAP, found)) == [(("Master",), 1), (("Worker",), 2)]


def test_a_wildcard_finds_every_item_of_a_list_with_its_index() -> None:
    found = {"spec": {"groups": [{"template": 1}, {}, {"template": 3}]}}

    assert list(find(LIST, found)) == [((0,), 1), ((2,), 3)]


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"spec": None},
        {"spec": {"groups": {"a": {"template": 1}}}},
        {"spec": {"groups": ["template", None, [{"template": 1}]]}},
        {"spec": [{"groups": []}]},
    ],
)
def test_what_is_not_as_the_path_says_is_not_found(found: object) -> None:
    assert list(find(LIST, found)) == []


def test_another_path_is_followed_to_the_same_place() -> None:
    found = {"spec": {"groups": [{"replicas": 3}, {"replicas": 5}]}}
    replicas = parse_path("spec.groups[*].replicas")

    assert get(replicas, (1,), found) == 5
    assert get(replicas, (2,), found) is None
    assert get(replicas, ("a",), found) is None


@given(st.lists(STEPS, max_size=4).map(tuple), OBJECTS)
def test_what_is_found_at_a_place_is_got_there(path: tuple[str, ...], found: object) -> None:
    for place, value in find(path, found):
        assert get(path, place, found) == value


@pytest.mark.parametrize(
    ("path", "shares"),
    [
        ("spec.groups[*].replicas", True),
        ("spec.replicas", True),
        ("spec.others[*].replicas", False),
        ("spec.groups[*].more[*].replicas", False),
        ("spec.groups.*.replicas", False),
    ],
)
def test_wildcards_mean_the_same_only_after_the_same_steps(path: str, shares: bool) -> None:
    assert shares_wildcards(parse_path(path), LIST) is shares


def test_the_prefix_of_a_path_ends_with_its_last_wildcard() -> None:
    assert prefix(LIST) == LIST[:3]
    assert prefix(("spec", "template")) == ()
