# SPDX-License-Identifier: Apache-2.0
"""Fragmentation and its gradient are what the formula says, whatever is free and whatever comes."""

import random
from collections.abc import Mapping, Sequence
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from policies.cluster.constraints import Constraints, suits
from policies.cluster.nodes import Node, read_node
from policies.placement.asks import Ask, DeviceAsk
from policies.placement.cards import read_cards
from policies.placement.fgd import Fragmentation, Typical
from policies.placement.outlook import Outlook
from policies.placement.rooms import Devices, Picking
from policies.placement.scorer import Scorer
from policies.placement.scoring import Signals, Strategy, rank
from tests.controlplane import nodes as fleet
from tests.support.builders import GPU, SHARED, catalog
from tests.support.cluster import node

CARD: Final = "example.com/milli"
UNITS: Final = {CARD: 1000, SHARED: 3, GPU: 1}
NODES: Final = tuple(node(f"n-{zone}", labels={"zone": zone}) for zone in "ab")
ANYWHERE: Final = Constraints()
IN_A: Final = Constraints(node_selector=(("zone", "a"),))

device_asks: Final = st.one_of(
    st.builds(
        DeviceAsk, st.just(CARD), st.integers(1, 3), st.sampled_from((100, 250, 460, 500, 1000))
    ),
    st.builds(DeviceAsk, st.just(SHARED), st.integers(1, 4)),
    st.builds(DeviceAsk, st.just(GPU), st.integers(1, 3)),
)
amounts: Final = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from((1, 4)), "memory": st.sampled_from((1, 4))}
).map(lambda found: tuple(sorted(found.items())))
asks: Final = st.builds(
    Ask,
    st.lists(device_asks, max_size=2, unique_by=lambda ask: ask.resource).map(tuple),
    amounts,
    st.sampled_from((ANYWHERE, IN_A)),
)
typicals: Final = st.lists(
    st.builds(Typical, asks, st.integers(1, 9)), max_size=6, unique_by=lambda t: t.ask
)
left: Final = st.sampled_from((-1, 0, 1, 4, 9))
frees: Final = st.fixed_dictionaries({"cpu": left, "memory": left})


@st.composite
def device_groups(draw: st.DrawFn) -> tuple[Devices, ...]:
    found = []
    for resource in draw(st.lists(st.sampled_from(sorted(UNITS)), unique=True, max_size=3)):
        units = UNITS[resource]
        free = draw(st.lists(st.integers(0, units), max_size=4).map(sorted))
        milli = draw(st.sampled_from((1000, 125)))
        picking = draw(st.sampled_from(Picking))
        found.append(Devices(resource, tuple(free), units, milli, picking))
    return tuple(found)


def _milli(devices: Devices, units: int) -> int:
    return units * devices.milli // devices.units


def _by_formula(
    on: Node, free: Mapping[str, int], groups: Sequence[Devices], typical: Sequence[Typical]
) -> int:
    """Return F as the paper has it, pod by pod and device by device."""
    found = 0
    for ask, weight in typical:
        if not ask.devices:
            continue
        everything = sum(_milli(group, units) for group in groups for units in group.free)
        fits = suits(ask.constraints, on) and all(free.get(n, 0) >= a for n, a in ask.amounts)
        usable = 0
        for wanted in ask.devices:
            having = [group for group in groups if group.resource == wanted.resource]
            large = [(g, units) for g in having for units in g.free if units >= wanted.units]
            fits = fits and sum(units // wanted.units for _, units in large) >= wanted.count
            usable += sum(_milli(group, units) for group, units in large)
        found += weight * (everything - usable if fits else everything)
    return found


def _after(groups: Sequence[Devices], ask: Ask) -> list[Devices] | None:
    """Take what is asked device by device, by looking at all of them each time."""
    left = {group.resource: list(group.free) for group in groups}
    pickings = {group.resource: group.picking for group in groups}
    for wanted in ask.devices:
        for _ in range(wanted.count):
            able = [u for u in left.get(wanted.resource, []) if u >= wanted.units]
            if not able:
                return None
            choose = min if pickings[wanted.resource] is Picking.PACKED else max
            units = choose(able)
            left[wanted.resource].remove(units)
            left[wanted.resource].append(units - wanted.units)
    return [group._replace(free=tuple(sorted(left[group.resource]))) for group in groups]


@given(typicals, st.sampled_from(NODES), frees, device_groups(), asks)
def test_the_gradient_is_the_difference_of_the_formula(
    typical: list[Typical],
    on: Node,
    free: dict[str, int],
    groups: tuple[Devices, ...],
    ask: Ask,
) -> None:
    measure = Fragmentation(typical)
    room = measure.room(measure.kinds(on), free, groups)
    before = _by_formula(on, free, groups, typical)
    assert measure.milli(room) == before
    scorer = Scorer(measure)
    scorer.put(on, free, groups)
    (outlook,) = scorer.outlooks(ask, (on.name,)).values()
    assert outlook is not None
    left = _after(groups, ask)
    assert outlook.is_too_small == (left is None)
    if left is not None:
        taken = dict(ask.amounts)
        rest = {name: amount - taken.get(name, 0) for name, amount in free.items()}
        assert outlook.gradient == _by_formula(on, rest, left, typical) - before
        assert outlook.left_milli == sum(_milli(g, units) for g in left for units in g.free)


@given(typicals, st.sampled_from(NODES), frees, device_groups())
def test_fragmentation_is_never_negative_nor_more_than_what_is_free(
    typical: list[Typical], on: Node, free: dict[str, int], groups: tuple[Devices, ...]
) -> None:
    measure = Fragmentation(typical)
    room = measure.room(measure.kinds(on), free, groups)
    assert 0 <= measure.milli(room) <= room.free_milli * measure.weight


names: Final = st.sampled_from("abcdefgh")
numbers: Final = st.dictionaries(names, st.integers(0, 3))
outlooks: Final = st.one_of(
    st.none(), st.builds(Outlook, st.booleans(), st.integers(-2, 2), st.integers(0, 2))
)


@given(
    st.dictionaries(names, outlooks, min_size=1),
    st.builds(Signals, numbers, numbers, numbers, numbers),
    st.sampled_from(Strategy),
    st.randoms(use_true_random=False),
)
def test_exactly_one_node_gets_ten_and_it_is_one_of_the_best(
    found: dict[str, Outlook | None], signals: Signals, strategy: Strategy, chance: random.Random
) -> None:
    ranking = rank(found, signals, strategy, chance.choice)
    scores = ranking.scores
    assert set(scores) == set(found)
    (winner,) = [name for name, score in scores.items() if score == 10]
    assert ranking.keys[winner] == min(ranking.keys.values())
    assert all(0 <= score <= 9 for name, score in scores.items() if name != winner)
    by_key = sorted(ranking.order, key=ranking.keys.__getitem__)
    assert [ranking.keys[n] for n in by_key] == [ranking.keys[n] for n in ranking.order]


events: Final = st.lists(
    st.tuples(
        st.sampled_from(("u1", "u2", "u3", "u4", "u5")),
        st.one_of(st.none(), st.builds(DeviceAsk, st.just(SHARED), st.integers(1, 3))),
    ),
    max_size=20,
)


@given(events, st.sampled_from(Picking))
def test_cards_after_any_events_hold_what_their_pods_have(
    happened: list[tuple[str, DeviceAsk | None]], picking: Picking
) -> None:
    raw = fleet.time_sliced("a", count=3, replicas=2)
    cards = read_cards(read_node(raw), catalog(), picking)
    alive: dict[str, DeviceAsk] = {}
    for uid, ask in happened:
        if ask is None:
            alive.pop(uid, None)
            cards.drop(uid)
        else:
            before = cards.devices[0].without(ask) if uid not in alive else None
            was_waiting = bool(cards.excess)
            alive[uid] = ask
            cards.put(uid, (ask,))
            if before is not None and not was_waiting:
                assert cards.devices == (before,)
        free = [2, 2, 2]
        for other, taken in alive.items():
            for index in (cards.picks_of(other) or {}).get(SHARED, ()):
                free[index] -= taken.units
        assert cards.groups[SHARED].free == free
        assert min(free) >= 0
        assert all(cards.groups[SHARED].picks(alive[uid]) is None for uid in cards.excess)


@given(events)
def test_cards_with_no_pod_left_are_as_new(happened: list[tuple[str, DeviceAsk | None]]) -> None:
    raw = fleet.time_sliced("a", count=3, replicas=2)
    cards = read_cards(read_node(raw), catalog())
    new = cards.devices
    for uid, ask in happened:
        cards.put(uid, (ask,) if ask is not None else ())
    for uid, _ in happened:
        cards.drop(uid)
    assert cards.devices == new
    assert not cards.excess
