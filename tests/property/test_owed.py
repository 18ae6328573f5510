# SPDX-License-Identifier: Apache-2.0
"""Whoever is owed room gets it, or somebody makes room, or it is told why nobody does.

Releases and reclaim on clusters of any kind, in any order of events, held against arithmetic of the
tests' own. No room is ever counted on twice.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.model.reclaim import ReclaimPolicy
from policies.quota.planning.values import Plan, Wait, Why
from policies.quota.pods import Phase, QuotaPod
from tests.support.builders import GPU
from tests.support.planning import World, lending_at_once, node, tenant
from tests.support.reclaim_world import Cycle

_OWNERS = {"ann": 6, "bob": 4, "cyd": 0}
_ZONES = st.sampled_from([None, None, None, "a", "b"])
_TOLD = {
    Why.GANG,  # not all of it is there
    Why.NO_SUCH_NODE,
    Why.CEILING,
    Why.FIXED,
    Why.NEVER,
}
"""What holds a pod that room would not help."""


@st.composite
def happenings(draw: st.DrawFn) -> tuple[Any, ...]:
    kind = draw(st.sampled_from(["come"] * 4 + ["gang", "end", "pass", "pass"]))
    if kind == "come":
        name = draw(st.sampled_from([*_OWNERS, "cyd", "cyd"]))
        size, many = draw(st.sampled_from([1, 1, 1, 2, 4])), draw(st.integers(1, 4))
        return kind, name, size, many, draw(_ZONES), draw(st.booleans())
    if kind == "gang":
        return kind, draw(st.sampled_from(["ann", "bob"])), draw(st.integers(1, 2))
    if kind == "end":
        return kind, draw(st.integers(0, 99))
    return kind, draw(st.sampled_from([1, 60, 700, 2000]))


def happen(cycle: Cycle, happening: tuple[Any, ...]) -> None:
    world = cycle.world
    match happening:
        case "come", name, size, many, zone, firm:
            form = {"exclusive": True} if firm and name != "cyd" else {}
            selector = {"zone": zone} if zone else None
            world.wait(name, size, many, selector=selector, form=form)
        case "gang", name, size:
            world.wait(name, size, 3, gang=(f"g{world.now}-{len(list(world.state.pods()))}", 3))
        case "end", pick:
            running = [pod for pod in world.state.pods() if pod.phase is Phase.LIVE]
            if running:
                world.end(running[pick % len(running)])
        case "pass", seconds:
            world.now += seconds
            world.state.tick(world.now)


def cluster(sizes: list[int]) -> Cycle:
    """Three tenants in a cohort, the last of whom only borrows, on nodes of two zones."""
    shared = {"cohort": "main", "lending": lending_at_once()}
    tenants = [tenant(name, gpus, 99, **shared) for name, gpus in _OWNERS.items()]
    nodes = [node(f"n{n}", size, zone="ab"[n % 2]) for n, size in enumerate(sizes)]
    world = World(tenants, nodes, reserve_for_seconds=900)
    policy = ReclaimPolicy(name="main", notice_seconds=60)
    world.state.set_policies(replace(world.state.policies, reclaim_policies=(policy,)))
    world.idle()
    return Cycle(world)


@given(
    sizes=st.lists(st.integers(2, 8), min_size=1, max_size=4),
    events=st.lists(happenings(), min_size=5, max_size=25),
)
@settings(max_examples=60)
def test_whoever_is_owed_room_is_released_or_made_room_for_or_told_why_not(
    sizes: list[int], events: list[tuple[Any, ...]]
) -> None:
    cycle = cluster(sizes)
    for event in events:
        happen(cycle, event)
        cycle.step(0)
        if cycle.world.act().releases:
            cycle.step(0)  # now nothing more goes by itself
        everyone_is_told(cycle)
        nothing_is_counted_twice(cycle)
        what_needs_nobody_to_go_is_released(cycle)


def everyone_is_told(cycle: Cycle) -> None:
    plan, snapshot, world = cycle.last, cycle.snapshots[-1], cycle.world
    served = {reservation.group for reservation in plan.reservations}
    unmet = plan.unmet or {}
    groups = {member.pod.uid: group.name for group in snapshot.waiting for member in group.members}
    assert all((name in served) != (name in unmet) for name in groups.values())
    planned = world.plan()
    for wait, pods in owed(world, planned):
        told = wait.hold.why in _TOLD or wait.hold.is_of_quota
        assert told or all(pod.uid in groups for pod in pods), (wait, pods)


def owed(world: World, planned: Plan) -> Iterator[tuple[Wait, list[QuotaPod]]]:
    """Yield the waiting pods that their tenants' guarantees cover, beside who goes before them."""
    for name, gpus in _OWNERS.items():
        used = sum(_gpus(pod) for pod in world.state.pods() if pod.namespace == name and pod.charge)
        waits = [wait for wait in planned.waits if wait.tenant == name]
        for wait in sorted(waits, key=lambda wait: wait.place):
            units = [list(wait.pods)] if wait.pods[0].gang else [[pod] for pod in wait.pods]
            for pods in units:
                used += sum(map(_gpus, pods))
                if used <= gpus:
                    yield wait, pods


def nothing_is_counted_twice(cycle: Cycle) -> None:
    """What is placed on a node, and what is kept there, is no more than there will be."""
    snapshot, plan, world = cycle.snapshots[-1], cycle.last, cycle.world
    taken: Counter[str] = Counter()
    for reservation in plan.reservations:
        for uid, place in reservation.places.items():
            taken[place] += _gpus(world.pod(uid))
    placed = {uid for reservation in plan.reservations for uid in reservation.places}
    for uid, kept in snapshot.kept.items():
        if uid not in placed and not kept.is_repaid and taken[kept.node]:
            taken[kept.node] += dict(kept.fit.requests)[GPU]
    for name, count in taken.items():
        stay = [
            pod
            for pod in world.state.pods()
            if pod.node == name and pod.deleted_at is None and pod.uid not in (plan.victims or {})
        ]
        room = world.state.nodes[name].allocatable[GPU] - sum(map(_gpus, stay))
        assert count <= room, (name, plan, snapshot.kept)


def what_needs_nobody_to_go_is_released(cycle: Cycle) -> None:
    """Room that is free is not kept for anybody else, if reclaim counts on it."""
    world = cycle.world
    if any(pod.deleted_at is not None for pod in world.state.pods()):
        return  # then it may still be on its way
    free = {r.group for r in cycle.last.reservations if not r.victims}
    groups = [group for group in cycle.snapshots[-1].waiting if group.name in free]
    if any(r.victims for r in cycle.last.reservations):
        return  # then it may be room that one leaves for another
    planned = {release.pod.uid for release in world.plan().releases}
    assert all(member.pod.uid in planned for group in groups for member in group.members)


def _gpus(pod: QuotaPod) -> int:
    return pod.shape.gpus.get(GPU, 0)
