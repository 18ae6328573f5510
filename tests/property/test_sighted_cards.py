# SPDX-License-Identifier: Apache-2.0
"""Once all pods are seen on their cards, a node passes if and only if no pick could be wrong.

The truth is played beside the model: a device plugin that gives a card with most free shares, any
of them where several have as many, and tells nobody.
"""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from policies.placement.occupancy import Gauge
from policies.placement.sighting import Sighting, Sightings
from tests.controlplane import nodes
from tests.unit.extender.building import World, raw_pod, shared
from webhook.extender.wire import Question

_MIB = nodes.H100.memory_mib
_NEEDS = (None, 5_000, 20_000, 50_000)

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(_NEEDS), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("end"), st.none(), st.integers(0, 20), st.booleans()),
        st.tuples(st.just("look"), st.sampled_from(_NEEDS[1:]), st.integers(0, 3), st.booleans()),
    ),
    max_size=25,
)


@dataclass
class _Card:
    shares: int
    pods: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What each states and uses, in MiB."""
    stranger: int = 0

    @property
    def free_shares(self) -> int:
        return self.shares - len(self.pods)

    @property
    def measured(self) -> int:
        return max(0, _MIB - self.stranger - sum(used for _, used in self.pods.values()))

    @property
    def free(self) -> int:
        stated = _MIB - sum(mib for mib, _ in self.pods.values())
        return min(stated, self.measured)


class _Node:
    """A node as it truly is, and the model of it."""

    def __init__(self, cards: int, shares: int) -> None:
        self.world = World()
        self.world.node(shared("a", cards=cards, replicas=shares))
        self.cards = [_Card(shares) for _ in range(cards)]
        self.made = 0

    def ties(self) -> list[_Card]:
        most = max(card.free_shares for card in self.cards)
        return [card for card in self.cards if card.free_shares == most and most]

    def put(self, mib: int | None, choice: int, *, is_in_order: bool) -> None:
        ties = self.ties()
        if not ties:
            return
        name = f"p{self.made}"
        self.made += 1
        uses = (mib or 0) // 2 if mib else 7_000
        ties[choice % len(ties)].pods[name] = (mib or 0, uses)
        self.world.bound(raw_pod(name, mib=mib), "a", is_in_order=is_in_order)

    def end(self, choice: int) -> None:
        names = [name for card in self.cards for name in card.pods]
        if not names:
            return
        name = names[choice % len(names)]
        for card in self.cards:
            card.pods.pop(name, None)
        self.world.model.remove_pod(f"uid-{name}")

    def look(self) -> None:
        """Have telemetry tell everything."""
        free = tuple(card.measured for card in self.cards)
        self.world.model.put_gauge("a", Gauge(load=0, loads=(0,) * len(free), free_mib=free))
        pods = {
            ("team-a", name): Sighting((number,), 1e12)
            for number, card in enumerate(self.cards)
            for name in card.pods
        }
        self.world.model.put_sightings("a", Sightings(len(self.cards), pods))

    def passes(self, mib: int) -> bool:
        question = Question(raw_pod("asks", mib=mib), ("a",))
        found = bool(self.world.answers.filter(question).names)
        self.world.model.forget("uid-asks")
        return found


@given(cards=st.integers(1, 4), shares=st.integers(1, 3), steps=_STEPS)
def test_a_node_passes_exactly_where_every_card_that_may_be_picked_has_the_memory(
    cards: int, shares: int, steps: list[tuple[str, int | None, int, bool]]
) -> None:
    node = _Node(cards, shares)
    for kind, mib, number, flag in steps:
        if kind == "put":
            node.put(mib, number, is_in_order=flag)
        elif kind == "end":
            node.end(number)
        elif mib is not None:
            if flag:
                node.cards[number % cards].stranger = 0 if number else _MIB - 10_000
            node.look()
            ties = node.ties()
            wanted = bool(ties) and all(card.free >= mib for card in ties)
            assert node.passes(mib) is wanted
