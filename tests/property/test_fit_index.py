# SPDX-License-Identifier: Apache-2.0
"""The fit index after any events is what a computation from scratch says of the same pods."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from policies.cluster.constraints import admits, suits
from policies.cluster.fit import FitIndex, FitShape
from policies.cluster.nodes import Node
from tests.support.builders import GPU
from tests.support.cluster import needs, node, shape, terms

NIC: Final = "example.com/nic"
NAMES: Final = ("n1", "n2", "n3", "n4")
UIDS: Final = tuple(f"u{number}" for number in range(8))
SHAPES: Final = (
    shape(1),
    shape(2),
    shape(4, requests={"cpu": "1"}),
    shape(0, requests={"cpu": "1500m"}),
    shape(1, requests={NIC: "1"}),
    shape(1, nodeSelector={"zone": "a"}),
    shape(2, affinity=terms(needs("zone", "In", "b"), needs("zone", "DoesNotExist"))),
    shape(1, tolerations=[{"operator": "Exists"}]),
)
REQUESTS: Final[tuple[Mapping[str, int], ...]] = (
    {},
    {"pods": 1},
    {GPU: 1, "pods": 1},
    {GPU: 3, "cpu": 500, "pods": 1},
    {NIC: 1, "hugepages-2Mi": 5},
)

uids: Final = st.sampled_from(UIDS)
shapes: Final = st.sampled_from(SHAPES)
names: Final = st.sampled_from(NAMES)
nodes: Final = st.builds(
    node,
    names,
    st.fixed_dictionaries(
        {
            GPU: st.integers(0, 5),
            "cpu": st.integers(0, 3),
            "pods": st.sampled_from([2, 110]),
        },
        optional={NIC: st.integers(0, 2)},
    ),
    labels=st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}]),
    taints=st.sampled_from([[], [], [{"key": "dedicated", "effect": "NoSchedule"}]]),
    unschedulable=st.sampled_from([False, False, True]),
    ready=st.sampled_from(["True", "True", "True", "Unknown"]),
)


class FitMachine(RuleBasedStateMachine):
    """What was told of nodes and pods, in plain dictionaries, beside the index."""

    def __init__(self) -> None:
        super().__init__()
        self.index = FitIndex()
        self.nodes: dict[str, Node] = {}
        self.bound: dict[str, tuple[str, Mapping[str, int]]] = {}
        self.released: dict[str, FitShape] = {}

    @initialize(kept=st.sampled_from([1, 3, 1000]), first=st.lists(nodes, max_size=4))
    def start(self, kept: int, first: list[Node]) -> None:
        self.index = FitIndex(max_shapes=kept)
        for found in first:
            self.put_node(found)

    @rule(found=nodes)
    def put_node(self, found: Node) -> None:
        self.nodes[found.name] = found
        self.index.put_node(found)

    @rule(name=names)
    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.index.remove_node(name)

    @rule(uid=uids, name=names, requests=st.sampled_from(REQUESTS))
    def bind(self, uid: str, name: str, requests: Mapping[str, int]) -> None:
        self.released.pop(uid, None)
        self.bound[uid] = (name, requests)
        self.index.bind(uid, name, requests)

    @rule(uid=uids)
    def bind_where_assumed(self, uid: str) -> None:
        name = self.index.node_of(uid)
        if uid in self.released and name is not None:
            self.bind(uid, name, dict(self.released[uid].requests))

    @rule(uid=uids)
    def release(self, uid: str) -> None:
        self.bound.pop(uid, None)
        self.released.pop(uid, None)
        self.index.release(uid)

    @rule(uid=uids, wanted=shapes)
    def assume(self, uid: str, wanted: FitShape) -> None:
        is_new = uid not in self.bound and uid not in self.released
        best = self._best(wanted)
        chosen = self.index.assume(uid, wanted)
        if is_new:
            assert chosen == best
        if uid not in self.bound and chosen is not None:
            self.released[uid] = wanted

    @rule(uid=uids, wanted=shapes, name=st.sampled_from(("", *NAMES)))
    def place(self, uid: str, wanted: FitShape, name: str) -> None:
        # What it has on its own node is free for it.
        before, where = self.released.pop(uid, None), name or self.index.node_of(uid) or ""
        moves = uid not in self.bound and before != wanted
        is_taken = moves and where in self.nodes and self._fits(wanted, where)
        found = self.index.place(uid, wanted, name)
        if is_taken:
            assert found == where
        if uid not in self.bound:
            self.released[uid] = wanted

    @rule(members=st.lists(st.tuples(uids, shapes), max_size=4), keep=st.booleans())
    def gang(self, members: list[tuple[str, FitShape]], keep: bool) -> None:
        before = {uid: self.index.node_of(uid) for uid in UIDS}
        waiting = set(self.index.unplaced())
        with self.index.trial() as trial:
            taken = {
                uid: wanted
                for uid, wanted in members
                if self.index.assume(uid, wanted) is not None and uid not in self.bound
            }
            if keep:
                trial.keep()
        if keep:
            self.released.update(taken)
        else:
            assert {uid: self.index.node_of(uid) for uid in UIDS} == before
            assert set(self.index.unplaced()) == waiting

    @rule(count=st.integers(1, 3), wanted=shapes)
    def reserve(self, count: int, wanted: FitShape) -> None:
        before = {name: self.index.free(name) for name in NAMES}
        with self.index.trial():
            found = self.index.reserve([f"r{number}" for number in range(count)], wanted)
            admitted = [n for n in self.nodes.values() if admits(wanted.constraints, n)]
            assert {n.name for n in admitted} >= set(found)
            assert len(found) in (0, count)
        assert {name: self.index.free(name) for name in NAMES} == before

    @invariant()
    def what_is_free_is_what_nodes_offer_less_what_pods_take(self) -> None:
        for name in NAMES:
            assert self.index.free(name) == self._free(name)

    @invariant()
    def pods_are_where_they_were_bound_or_where_they_may_be(self) -> None:
        for uid, (name, _) in self.bound.items():
            assert self.index.node_of(uid) == name
        for uid, wanted in self.released.items():
            name = self.index.node_of(uid) or ""
            if name:
                free = self._free(name)
                assert admits(wanted.constraints, self.nodes[name])
                assert all(free.get(resource, 0) >= 0 for resource, _ in wanted.requests)

    @invariant()
    def whoever_is_without_a_node_fits_nowhere(self) -> None:
        without = {uid for uid in self.released if self.index.node_of(uid) is None}
        assert set(self.index.unplaced()) == without
        for uid in without:
            assert self._best(self.released[uid]) is None

    @invariant()
    def the_answers_are_those_of_looking_at_every_node(self) -> None:
        for wanted in SHAPES:
            fitting = [name for name in self.nodes if self._fits(wanted, name)]
            assert self.index.fits(wanted) is bool(fitting)
            report = self.index.explain(wanted)
            assert (report.nodes, report.feasible) == (len(self.nodes), len(fitting))
            assert sum(report.reasons.values()) == len(self.nodes) - len(fitting)
            assert self.index.count(wanted) == sum(self._number(wanted, name) for name in fitting)
            assert self.index.could_ever_fit(wanted) is any(
                suits(wanted.constraints, found)
                and all(found.allocatable.get(n, 0) >= a for n, a in wanted.requests)
                for found in self.nodes.values()
            )

    def _free(self, name: str) -> dict[str, int]:
        if name not in self.nodes:
            return {}
        free = Counter(self.nodes[name].allocatable)
        for where, requests in self.bound.values():
            if where == name:
                free.subtract(requests)
        for uid, wanted in self.released.items():
            if self.index.node_of(uid) == name:
                free.subtract(dict(wanted.requests))
        return {resource: amount for resource, amount in free.items() if amount}

    def _fits(self, wanted: FitShape, name: str) -> bool:
        free = self._free(name)
        return admits(wanted.constraints, self.nodes[name]) and all(
            free.get(resource, 0) >= amount for resource, amount in wanted.requests
        )

    def _number(self, wanted: FitShape, name: str) -> int:
        free = self._free(name)
        return min(free[resource] // amount for resource, amount in wanted.requests)

    def _best(self, wanted: FitShape) -> str | None:
        """Return the fitting node with the least of the devices asked, then by name."""
        ranked = wanted.devices or tuple(resource for resource, _ in wanted.requests)
        return min(
            (name for name in self.nodes if self._fits(wanted, name)),
            key=lambda name: ([self._free(name).get(r, 0) for r in ranked], name),
            default=None,
        )


FitMachine.TestCase.settings = settings(stateful_step_count=30)
TestFitIndex = FitMachine.TestCase
