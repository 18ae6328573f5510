# SPDX-License-Identifier: Apache-2.0
"""Who of those that are held keeps what it lacks from those after it in the order.

Only what has waited for long, one at a time and for a while: in each pool the oldest that is owed
and the oldest that would borrow, and of each tenant the first that its own quota holds. And whom
something is taken back for, as long as it is. Without this, small pods could keep a large gang
waiting for ever; without an end, a gang that nothing will ever make room for could keep them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import TypeAlias

from policies.quota.planning.outcome import Held, Outcome, Outcomes, by_age
from policies.quota.planning.turns import Lane
from policies.quota.planning.units import Unit
from policies.quota.planning.verdict import Way
from policies.quota.planning.view import View

_Places: TypeAlias = Mapping[str, Mapping[str, str]]
"""Nodes by UID of a pod, then by pool."""


@dataclass(frozen=True, slots=True)
class Reserving:
    """A unit whose next releases keep what they lack, each by its way: None where that is quota.

    `nodes` says by UID where they keep room; pods that are not in it have none yet. `is_repaid`
    tells that room is taken back for it there. `is_free` tells that it may go all the same.
    """

    tenant: str
    unit: Unit
    ways: tuple[Way | None, ...]
    nodes: Mapping[str, str] = field(default_factory=dict)
    is_repaid: bool = False
    is_free: bool = False


def choose(outcomes: Outcomes, view: View, now: int) -> tuple[Reserving, ...]:
    """Return who keeps what it lacks."""
    view.turns.forget_all_but(view.queue)
    chosen: dict[int, Reserving] = {}
    lanes: dict[Lane, list[list[Held]]] = {}
    for name, outcome in outcomes.items():
        for lane, standing in outcome.lanes.items():
            lanes.setdefault(lane, []).append(standing)
        if outcome.free and outcome.lacking_quota:  # else there is nobody to keep it from
            for held in _turn(("quota", name), outcome.lacking_quota, view, now):
                chosen[id(held.unit)] = Reserving(held.tenant, held.unit, (held.way,))
    for lane, lines in lanes.items():
        for held in _turn(lane, _merged(lines), view, now):
            nodes = view.turns.nodes(held.uid)
            chosen[id(held.unit)] = Reserving(held.tenant, held.unit, (held.way,), nodes)
    for reserving in _repaid(outcomes, view):
        chosen[id(reserving.unit)] = reserving
    return tuple(chosen.values())


def _merged(lines: Sequence[Sequence[Held]]) -> Iterator[Held]:
    """Yield the oldest of all first. Few are asked for of many lines."""
    heap = [(by_age(line[0]), number, 0) for number, line in enumerate(lines)]
    heapify(heap)
    while heap:
        _, number, place = heap[0]
        line = lines[number]
        yield line[place]
        if place + 1 < len(line):
            heapreplace(heap, (by_age(line[place + 1]), number, place + 1))
        else:
            heappop(heap)


def _turn(lane: Lane, standing: Iterable[Held], view: View, now: int) -> Iterator[Held]:
    """Yield whose turn it is in a lane, if anybody's."""
    queue = view.policies.settings.queue
    seen: dict[str, Held] = {}

    def aged() -> Iterator[str]:
        for held in standing:
            if held.unit.created_at <= now - queue.reserve_after_seconds:
                seen[held.uid] = held
                yield held.uid

    uid = view.turns.next(lane, aged(), now, queue.reserve_for_seconds)
    if uid is not None:
        yield seen[uid]


def _repaid(outcomes: Outcomes, view: View) -> Iterator[Reserving]:
    """Yield for whom something is taken back, and where."""
    for tenant, places in _places(view).items():
        outcome = outcomes.get(tenant)
        for unit, is_free in _units(outcome) if outcome is not None else ():
            found = list(_found(unit, places))
            if not found:
                continue
            # Pods that are alike go in their order, whichever of them was meant.
            nodes = {pod.uid: node for pod, (_, node) in zip(unit.pods, found, strict=False)}
            ways = tuple(way for way, _ in (found if unit.gang is None else found[:1]))
            yield Reserving(tenant, unit, ways, nodes, is_repaid=True, is_free=is_free)


def _places(view: View) -> Mapping[str, _Places]:
    """Return by tenant where pods have room, or will have, as it was said last before others."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    reserves = sorted(view.reserves.items(), key=lambda item: -item[1].until)
    for (tenant, pool), reserve in reserves:
        for uid, node in reserve.nodes.items():
            found.setdefault(tenant, {}).setdefault(uid, {})[pool] = node
    return found


def _found(unit: Unit, places: _Places) -> Iterator[tuple[Way, str]]:
    """Yield for each pod of a unit that has room on which way, and on which node."""
    owed = {way.pool: way for way in reversed(unit.verdict.ways) if way.owed}
    for pod in unit.pods:
        by_pool = places.get(pod.uid, {})
        here = ((owed[pool], node) for pool, node in by_pool.items() if pool in owed)
        yield from islice(here, 1)


def _units(outcome: Outcome) -> Iterator[tuple[Unit, bool]]:
    for held in outcome.held:
        yield held.unit, False
    for unit in outcome.free:
        yield unit, True
