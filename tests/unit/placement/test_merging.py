# SPDX-License-Identifier: Apache-2.0
"""Nodes that were ranked apart by different strategies come into one order."""

from policies.placement.merging import merged
from policies.placement.outlook import TOO_SMALL, Outlook
from policies.placement.scoring import Ranking, Signals, Strategy, rank


def _ranked(strategy: Strategy, **outlooks: Outlook | None) -> Ranking:
    return rank(outlooks, Signals(), strategy)


def test_what_is_ranked_by_one_strategy_stays_as_it_is() -> None:
    alone = _ranked(Strategy.SPREAD, a=Outlook(), b=None)
    assert merged([alone]) is alone


def test_nodes_that_are_packed_come_first_each_part_in_its_own_order() -> None:
    packed = _ranked(Strategy.PACK, a=Outlook(left_milli=9), b=Outlook(left_milli=1))
    spread = _ranked(Strategy.SPREAD, c=Outlook(left_milli=1), d=Outlook(left_milli=9))
    found = merged([packed, spread])
    assert found.order == ("b", "a", "d", "c")
    assert list(found.scores.values()).count(10) == 1
    assert found.scores["b"] == 10


def test_a_node_that_seems_too_small_comes_after_all_others_of_either_strategy() -> None:
    packed = _ranked(Strategy.PACK, a=TOO_SMALL, b=Outlook())
    spread = _ranked(Strategy.SPREAD, c=TOO_SMALL, d=Outlook())
    assert merged([packed, spread]).order == ("b", "d", "a", "c")
    small = _ranked(Strategy.PACK, a=TOO_SMALL)
    assert merged([small, spread]).order == ("d", "a", "c")


def test_it_is_known_by_which_strategy_and_key_each_node_was_ranked() -> None:
    packed = _ranked(Strategy.PACK, a=Outlook(gradient=3))
    spread = _ranked(Strategy.SPREAD, b=Outlook(gradient=4))
    found = merged([packed, spread])
    assert found.strategies == {"a": Strategy.PACK, "b": Strategy.SPREAD}
    assert found.keys == {**packed.keys, **spread.keys}
