# SPDX-License-Identifier: Apache-2.0
"""However nodes, loads and documents came, each node goes by its pool as it is now."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Final, TypeAlias, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.placement import Spreading, SpreadSettings
from policies.model.policyset import PolicySet
from policies.model.pool import Pool
from policies.model.settings import Settings
from policies.placement.merging import merged
from policies.placement.outlook import Outlook
from policies.placement.scoring import Signals, Strategy, rank
from policies.placement.strategies import Strategies
from tests.support.builders import policy_set
from tests.support.cluster import node

_NAMES: Final = ("a", "b", "c", "d", "e")
_POOLS: Final = ("p", "q", "r")

spreadings: Final = st.builds(
    # Without slack what was before does not matter.
    lambda strategy, above: SpreadSettings(strategy, spread_above=above, slack=0),
    st.sampled_from(Spreading),
    st.sampled_from((0, 300, 700)),
)
documents: Final = st.dictionaries(st.sampled_from(_POOLS), st.none() | spreadings)
steps: Final = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(_NAMES), st.sampled_from(("", *_POOLS))),
        st.tuples(st.just("gone"), st.sampled_from(_NAMES), st.none()),
        st.tuples(
            st.just("load"), st.sampled_from(_NAMES), st.none() | st.sampled_from((0, 400, 1000))
        ),
        st.tuples(
            st.just("documents"),
            st.just(""),
            st.none() | st.tuples(st.none() | spreadings, documents),
        ),
        st.tuples(st.just("asked"), st.just(""), st.none()),
    ),
    max_size=30,
)


Documents: TypeAlias = tuple[SpreadSettings | None, Mapping[str, SpreadSettings | None]]
"""What the settings say, and each pool."""


def _policies(written: Documents) -> PolicySet:
    others, found = written
    pools = {
        name: Pool(
            name,
            LabelSelector((Expression("pool", Operator.IN, (name,)),)),
            placement=found[name],
        )
        for name in sorted(found)
    }
    return replace(policy_set(), settings=Settings(placement=others), pools=pools)


class _Written:
    """What is so now, kept in the plainest way."""

    def __init__(self, setting: SpreadSettings) -> None:
        self.setting = setting
        self.others: SpreadSettings | None = None
        self.pools: Mapping[str, SpreadSettings | None] = {}
        self.nodes: dict[str, str] = {}
        self.loads: dict[str, int] = {}

    def group(self, name: str) -> str:
        """Return the pool that speaks for a node; all others go together."""
        pool = self.nodes.get(name, "")
        return pool if self.pools.get(pool) is not None else ""

    def strategies(self, name: str) -> Collection[Strategy]:
        """Return what a node may go by: where no load is known, whatever it was before."""
        group = self.group(name)
        settings = self.pools.get(group) or self.others or self.setting
        if settings.strategy is not Spreading.AUTO:
            return (Strategy(settings.strategy),)
        loads = [self.loads[n] for n in self.nodes if self.group(n) == group and n in self.loads]
        if not loads:
            return tuple(Strategy)
        is_high = sum(loads) >= settings.spread_above * len(loads)
        return (Strategy.SPREAD if is_high else Strategy.PACK,)


@settings(max_examples=200)
@given(spreadings, steps, st.booleans())
def test_each_node_goes_by_its_pool_else_by_the_setting(
    setting: SpreadSettings, happened: list[tuple[str, str, object]], is_asked_always: bool
) -> None:
    found, written = Strategies(setting), _Written(setting)
    for kind, name, value in [*happened, ("asked", "", None)]:
        _happen(found, written, kind, name, value)
        if is_asked_always or kind == "asked":
            groups = found.of(_NAMES, is_exclusive=False)
            said = {each: strategy for strategy, names in groups for each in names}
            assert sorted(name for _, names in groups for name in names) == sorted(_NAMES)
            for each in _NAMES:
                assert said[each] in written.strategies(each)
            for one, other in combinations(_NAMES, 2):
                assert written.group(one) != written.group(other) or said[one] is said[other]


outlooks: Final = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.none() | st.builds(Outlook, st.booleans(), st.integers(-2, 2), st.integers(0, 2)),
    min_size=1,
)


@given(outlooks, st.frozensets(st.sampled_from("abcdefgh")))
def test_of_all_nodes_one_gets_ten_and_none_is_overtaken_by_one_that_seems_too_small(
    found: Mapping[str, Outlook | None], spread: frozenset[str]
) -> None:
    parts = {
        Strategy.PACK: {name: each for name, each in found.items() if name not in spread},
        Strategy.SPREAD: {name: each for name, each in found.items() if name in spread},
    }
    rankings = [rank(part, Signals(), strategy) for strategy, part in parts.items() if part]
    together = merged(rankings)
    assert sorted(together.order) == sorted(found)
    assert list(together.scores.values()).count(10) == 1
    for ranking in rankings:
        assert tuple(n for n in together.order if n in ranking.order) == ranking.order
    sorts = [
        (together.keys[name][0], together.strategies[name] is Strategy.SPREAD)
        for name in together.order
    ]
    assert sorts == sorted(sorts)


def _happen(found: Strategies, written: _Written, kind: str, name: str, value: object) -> None:
    match kind, value:
        case "put", str(pool):
            written.nodes[name] = pool
            found.put_node(node(name, labels={"pool": pool} if pool else {}))
        case "gone", _:
            written.nodes.pop(name, None)
            written.loads.pop(name, None)
            found.remove(name)
        case "load", int(load):
            written.loads[name] = load
            found.put_load(name, load)
        case "load", None:
            written.loads.pop(name, None)
            found.put_load(name, None)
        case "documents", _:
            # None is what there is before any could be served.
            said = cast("Documents | None", value)
            written.others, written.pools = said or (None, {})
            found.set_policies(_policies(said) if said is not None else None)
