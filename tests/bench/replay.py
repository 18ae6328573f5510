# SPDX-License-Identifier: Apache-2.0
"""Replays a trace as kube-scheduler would place it with one extender that decides.

Its rules: it looks at nodes in turn from where it stopped last, until enough hold the pod; the
extender gives whole numbers from 0 to 10; of the nodes with most it takes one at random.
Source: kubernetes pkg/scheduler/schedule_one.go findNodesThatPassFilters, numFeasibleNodesToFind,
selectHost.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, islice
from typing import Final, Protocol

from policies.cluster.constraints import admits
from policies.cluster.nodes import Node
from policies.placement.asks import Ask
from policies.placement.rooms import Picking, Room
from tests.bench.openb import Trace, arrivals, devices_of, milli_of

_FEWEST_SAMPLED: Final = 100
_NAMES: Final = ("cpu", "memory")


class Policy(Protocol):
    """Scores nodes as an extender does, by name."""

    def arrived(self, ask: Ask) -> None:
        """Take note of a pod before it is placed."""

    def scores(self, ask: Ask, names: Sequence[str]) -> Mapping[str, int]:
        """Return 0 to 10 for each node."""

    def placed(self, node: Node, free: Mapping[str, int], room: Room) -> None:
        """Take note of a node that has changed."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Percent of all GPUs that were allocated while no more than 0, 1, ... 100 were asked for."""

    percent: tuple[float, ...]
    pods: int
    lost: int


def sampled(nodes: int) -> int:
    """Return how many nodes that hold a pod kube-scheduler looks for among so many by default."""
    if nodes < _FEWEST_SAMPLED:
        return nodes
    percent = max(5, 50 - nodes // 125)
    return max(_FEWEST_SAMPLED, nodes * percent // 100)


def replay(trace: Trace, policy: Policy, picking: Picking, seed: int) -> Allocation:
    """Let the pods of one order arrive, and return what was allocated on the way."""
    cluster = _Cluster(trace.nodes, picking)
    for node, room in zip(cluster.nodes, cluster.rooms, strict=True):
        policy.placed(node, _free(room), room)
    chance = random.Random(seed)  # noqa: S311 - the same ties in every run of a seed
    capacity = trace.capacity_milli
    asked = allocated = pods = lost = 0
    percent: list[float] = []
    for ask in arrivals(trace, seed):
        pods += 1
        asked += milli_of(ask)
        while len(percent) * capacity < 100 * asked:
            percent.append(100 * allocated / capacity)
        policy.arrived(ask)
        slots = cluster.feasible(ask)
        if slots:
            names = {trace.nodes[slot].name: slot for slot in slots}
            scores = policy.scores(ask, tuple(names))
            most = max(scores.values())
            slot = names[chance.choice([name for name in names if scores[name] == most])]
            room = cluster.place(ask, slot)
            policy.placed(trace.nodes[slot], _free(room), room)
            allocated += milli_of(ask)
        else:
            lost += 1
    percent.extend([100 * allocated / capacity] * (101 - len(percent)))
    return Allocation(tuple(percent), pods, lost)


class _Cluster:
    """Rooms of nodes, and which of them hold an ask, looked at again only where one changed."""

    def __init__(self, nodes: Sequence[Node], picking: Picking) -> None:
        self.nodes = nodes
        self.rooms = [
            Room(0, tuple(n.allocatable[name] for name in _NAMES), devices_of(n, picking))
            for n in nodes
        ]
        self._sample = sampled(len(nodes))
        self._start = 0
        self._changes: list[int] = []
        self._holding: dict[Ask, _Holding] = {}

    def feasible(self, ask: Ask) -> list[int]:
        """Return the slots of the nodes that the scheduler finds for a pod."""
        flags = self._flags(ask)
        count, start = len(flags), self._start
        turned = flags[start:] + flags[:start]
        found = list(islice(compress(range(count), turned), self._sample))
        looked_at = found[-1] + 1 if len(found) == self._sample else count
        self._start = (start + looked_at) % count
        return [(start + offset) % count for offset in found]

    def place(self, ask: Ask, slot: int) -> Room:
        """Put a pod on a node that holds it."""
        room = self.rooms[slot].after(ask, _amounts(ask))
        if room is None or min(room.amounts) < 0:
            raise AssertionError(f"{self.nodes[slot].name} does not hold {ask}")
        self.rooms[slot] = room
        self._changes.append(slot)
        return room

    def _flags(self, ask: Ask) -> bytearray:
        held = self._holding.get(ask)
        if held is None:
            admitted = bytearray(admits(ask.constraints, node) for node in self.nodes)
            flags = bytearray(
                bool(open_) and _holds(room, ask)
                for open_, room in zip(admitted, self.rooms, strict=True)
            )
            self._holding[ask] = _Holding(admitted, flags, len(self._changes))
            return flags
        for slot in set(self._changes[held.seen :]):
            held.flags[slot] = held.admitted[slot] and _holds(self.rooms[slot], ask)
        held.seen = len(self._changes)
        return held.flags


@dataclass(slots=True)
class _Holding:
    """Which nodes may take an ask, which of them hold one more, and how many changes that knows."""

    admitted: bytearray
    flags: bytearray
    seen: int


@lru_cache(maxsize=4096)
def _amounts(ask: Ask) -> tuple[int, ...]:
    amounts = dict(ask.amounts)
    return tuple(amounts.get(name, 0) for name in _NAMES)


def _free(room: Room) -> Mapping[str, int]:
    return dict(zip(_NAMES, room.amounts, strict=True))


def _holds(room: Room, ask: Ask) -> bool:
    for free, taken in zip(room.amounts, _amounts(ask), strict=True):
        if free < taken:
            return False
    return room.after(ask, _amounts(ask)) is not None
