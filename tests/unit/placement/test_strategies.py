# SPDX-License-Identifier: Apache-2.0
"""Each node is ranked as the document of its pool says, else as the process is set up."""

from collections.abc import Mapping, Sequence

import pytest

from policies.cluster.nodes import Node
from policies.model.placement import Spreading, SpreadSettings
from policies.model.policyset import PolicySet
from policies.placement.scoring import Strategy
from policies.placement.spreading import Spreader
from policies.placement.strategies import Strategies
from tests.support.builders import policy_set
from tests.support.cluster import node
from tests.support.pools import pool_document, pools

PACK, SPREAD = Strategy.PACK, Strategy.SPREAD
NAMES = ("r0", "r1", "b0", "b1", "n0")
AUTO = "{strategy: Auto}"


def _node(name: str, pool: str = "") -> Node:
    return node(name, labels={"pool": pool} if pool else {})


def _strategies(
    policies: PolicySet | None, strategy: Spreading = Spreading.PACK, **settings: int
) -> Strategies:
    """Return those of two red, two blue nodes and one in no pool."""
    found = Strategies(SpreadSettings(strategy, **settings))
    found.set_policies(policies)
    for name in NAMES:
        found.put_node(_node(name, {"r": "red", "b": "blue"}.get(name[0], "")))
    return found


def _of(
    found: Strategies, names: Sequence[str] = NAMES, *, is_exclusive: bool = False
) -> Mapping[Strategy, Sequence[str]]:
    return {strategy: list(group) for strategy, group in found.of(names, is_exclusive=is_exclusive)}


def _load(found: Strategies, **loads: int | None) -> None:
    for name, load in loads.items():
        found.put_load(name, load)


def test_nodes_go_by_their_pool_and_those_of_none_by_the_setting() -> None:
    policies = pools(red="{strategy: Pack}", blue="{strategy: Spread}")
    assert _of(_strategies(policies)) == {PACK: ["r0", "r1", "n0"], SPREAD: ["b0", "b1"]}
    assert _of(_strategies(policies, Spreading.SPREAD)) == {
        PACK: ["r0", "r1"],
        SPREAD: ["b0", "b1", "n0"],
    }


@pytest.mark.parametrize("policies", [None, pools(), pools(red="", blue="")])
def test_without_a_word_in_documents_all_nodes_go_by_the_setting(
    policies: PolicySet | None,
) -> None:
    for setting, strategy in ((Spreading.PACK, PACK), (Spreading.SPREAD, SPREAD)):
        assert _of(_strategies(policies, setting)) == {strategy: list(NAMES)}


def test_the_settings_document_wins_over_the_setting_of_the_process() -> None:
    found = _strategies(_with_settings("{strategy: Spread}", red="{strategy: Pack}", blue=""))
    assert _of(found) == {PACK: ["r0", "r1"], SPREAD: ["b0", "b1", "n0"]}
    _load(found, b0=900, b1=900, n0=0)
    found.set_policies(_with_settings(AUTO, red="{strategy: Pack}", blue="{strategy: Pack}"))
    assert _of(found) == {PACK: list(NAMES)}
    found.set_policies(_with_settings(AUTO, red="{strategy: Pack}"))
    _load(found, n0=400)
    assert _of(found) == {PACK: ["r0", "r1"], SPREAD: ["b0", "b1", "n0"]}
    found.set_policies(pools(red="{strategy: Pack}"))
    assert _of(found) == {PACK: list(NAMES)}


def _with_settings(placement: str, **placements: str) -> PolicySet:
    settings = f"""
apiVersion: sluice.dev/v1alpha1
kind: Settings
metadata: {{name: cluster}}
spec: {{placement: {placement}}}
"""
    documents = (pool_document(*item) for item in placements.items())
    return policy_set("---\n".join((settings, *documents)))


def test_nodes_that_are_packed_come_first_whatever_the_setting_is() -> None:
    policies = pools(red="{strategy: Pack}")
    for setting in (Spreading.PACK, Spreading.SPREAD):
        groups = _strategies(policies, setting).of(NAMES, is_exclusive=False)
        assert [strategy for strategy, _ in groups] == sorted(
            (strategy for strategy, _ in groups), key=list(Strategy).index
        )


def test_a_strategy_without_nodes_is_left_out() -> None:
    found = _strategies(pools(red="{strategy: Spread}"))
    assert _of(found, ("r0", "r1")) == {SPREAD: ["r0", "r1"]}
    assert _of(found, ("n0",)) == {PACK: ["n0"]}
    assert _of(found, ()) == {}


def test_pods_with_cards_of_their_own_are_packed_everywhere() -> None:
    found = _strategies(pools(red="{strategy: Spread}"), Spreading.SPREAD)
    assert _of(found, is_exclusive=True) == {PACK: list(NAMES)}


def test_a_node_that_is_not_known_goes_by_the_setting() -> None:
    found = _strategies(pools(red="{strategy: Spread}"))
    assert _of(found, ("r0", "r1")) == {SPREAD: ["r0", "r1"]}
    found.remove("r1")
    assert _of(found, ("r0", "r1", "new")) == {SPREAD: ["r0"], PACK: ["r1", "new"]}


def test_a_node_that_several_pools_select_goes_by_the_first_in_name_order() -> None:
    texts = [
        pool_document(name, f"{{strategy: {strategy}}}", selector="{}")
        for name, strategy in (("z", "Spread"), ("a", "Pack"))
    ]
    assert _of(_strategies(policy_set("---\n".join(texts)), Spreading.SPREAD)) == {
        PACK: list(NAMES)
    }


def test_a_pool_on_auto_heeds_the_load_of_its_own_nodes_alone() -> None:
    found = _strategies(pools(red=AUTO, blue=AUTO))
    _load(found, r0=900, r1=500, b0=100, b1=800, n0=1000)
    assert _of(found) == {PACK: ["b0", "b1", "n0"], SPREAD: ["r0", "r1"]}


def test_the_setting_heeds_the_load_of_all_nodes_that_no_document_speaks_of() -> None:
    found = _strategies(pools(red="{strategy: Pack}", blue=""), Spreading.AUTO)
    _load(found, r0=0, r1=0, b0=700, b1=700, n0=700)
    assert _of(found) == {PACK: ["r0", "r1"], SPREAD: ["b0", "b1", "n0"]}
    _load(found, n0=100)
    assert _of(found) == {PACK: list(NAMES)}


def test_a_pool_turns_where_its_document_says_and_back_ten_below() -> None:
    found = _strategies(pools(red="{strategy: Auto, spreadAbove: 40}"))
    said = []
    for load in (390, 400, 310, 300, 299, 350):
        _load(found, r0=load, r1=load)
        said.append(SPREAD in _of(found))
    assert said == [False, True, True, True, False, False]


def test_while_no_load_is_known_the_last_choice_holds() -> None:
    found = _strategies(pools(red=AUTO))
    assert _of(found) == {PACK: list(NAMES)}
    _load(found, r0=900)
    assert SPREAD in _of(found)
    _load(found, r0=None)
    assert SPREAD in _of(found)


def test_a_node_whose_label_changes_takes_its_load_to_the_other_pool() -> None:
    found = _strategies(pools(red=AUTO, blue=AUTO))
    _load(found, r0=1000, r1=0)
    assert SPREAD not in _of(found)
    found.put_node(_node("r1", "blue"))
    assert _of(found) == {PACK: ["r1", "b0", "b1", "n0"], SPREAD: ["r0"]}
    found.put_node(_node("r0"))
    assert _of(found) == {PACK: list(NAMES)}, "the setting packs whatever the load is"


def test_a_node_that_comes_back_has_no_load_of_before() -> None:
    found = _strategies(pools(red=AUTO))
    _load(found, r0=1000, r1=1000)
    found.remove("r0")
    found.remove("r1")
    found.put_node(_node("r0", "red"))
    assert _of(found, ("r0",)) == {PACK: ["r0"]}


def test_what_is_measured_before_a_node_is_seen_counts_once_it_is() -> None:
    found = _strategies(pools(red=AUTO))
    _load(found, r9=1000)
    assert SPREAD not in _of(found)
    found.put_node(_node("r9", "red"))
    assert _of(found, ("r9", "r0")) == {SPREAD: ["r9", "r0"]}


def test_documents_that_change_count_at_once_for_all_nodes_and_their_loads() -> None:
    found = _strategies(pools(red="{strategy: Spread}"))
    _load(found, r0=900, r1=900, b0=900)
    found.set_policies(pools(red="{strategy: Pack}", blue=AUTO))
    assert _of(found) == {PACK: ["r0", "r1", "n0"], SPREAD: ["b0", "b1"]}
    found.set_policies(pools(blue="{strategy: Pack}"))
    assert _of(found) == {PACK: list(NAMES)}
    found.set_policies(pools(blue="{strategy: Spread}"))
    found.set_policies(None)
    assert _of(found) == {PACK: list(NAMES)}


def test_of_two_sets_that_choose_alike_the_nodes_are_those_of_the_newer() -> None:
    found = _strategies(pools(red="{strategy: Spread}"))
    assert _of(found) == {PACK: ["b0", "b1", "n0"], SPREAD: ["r0", "r1"]}
    found.set_policies(pools(blue="{strategy: Spread}"))
    assert _of(found) == {PACK: ["r0", "r1", "n0"], SPREAD: ["b0", "b1"]}


def test_nodes_take_their_loads_along_when_documents_put_them_elsewhere() -> None:
    found = _strategies(None, Spreading.AUTO)
    _load(found, r0=1000, r1=1000, b0=500, b1=500, n0=500)
    assert _of(found) == {SPREAD: list(NAMES)}
    found.set_policies(pools(red="{strategy: Pack}"))
    assert _of(found) == {PACK: list(NAMES)}, "what is left has a mean load of 500"
    found.set_policies(pools(red=""))
    _load(found, r0=1000, r1=900)
    assert _of(found) == {PACK: list(NAMES)}
    _load(found, n0=700)
    assert _of(found) == {SPREAD: list(NAMES)}


def test_the_load_of_a_node_that_is_not_there_counts_nowhere() -> None:
    found = _strategies(None, Spreading.AUTO)
    _load(found, r9=1000)
    assert _of(found) == {PACK: list(NAMES)}


def test_a_change_of_other_documents_does_not_undo_what_a_pool_has_chosen() -> None:
    found = _strategies(pools(red=AUTO))
    _load(found, r0=700, r1=700)
    assert SPREAD in _of(found)
    _load(found, r0=650, r1=650)
    found.set_policies(pools(red=AUTO, blue="{strategy: Pack}"))
    assert SPREAD in _of(found)
    found.set_policies(pools(red="{strategy: Auto, spreadAbove: 66}", blue="{strategy: Pack}"))
    assert SPREAD not in _of(found), "it is another rule, which begins anew"


def test_a_small_bound_does_not_spread_for_ever() -> None:
    spreader = Spreader(SpreadSettings(Spreading.AUTO, spread_above=80))
    said = []
    for load in (79, 80, 41, 39):
        spreader.put_load("a", load)
        said.append(spreader.spreads())
    assert said == [False, True, True, False]
