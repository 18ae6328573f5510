# SPDX-License-Identifier: Apache-2.0
"""What Events tell of a plan: nodes without room and odd gangs, once and again after a while."""

from dataclasses import dataclass, field

from policies.quota.planning.values import Plan
from reconciler.kube.events import EventType, Regarding
from reconciler.quota.told import Teller
from tests.support.planning import World, node, tenant


@dataclass
class Recorder:
    """Keeps what was told: of whom, why, in which words."""

    told: list[tuple[str, str, str]] = field(default_factory=list)

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        type: EventType,  # noqa: A002 - the API's own name
        action: str,
    ) -> None:
        assert (type, action) == (EventType.WARNING, "Release")
        self.told.append((regarding.name, reason, note))


def without_room(many: int = 1) -> tuple[World, list[str]]:
    """Return a cluster whose only node is taken, and the names of those that wait for it."""
    world = World([tenant("a", 8, 8)], [node("n1", 1)])
    world.run("a")
    return world, [pod.name for pod in world.wait("a", many=many)]


def test_where_quota_is_free_and_no_node_has_room_the_first_that_waits_is_told() -> None:
    world, names = without_room(many=3)
    recorder = Recorder()

    Teller(recorder).tell(world.plan(), 0.0)

    note = "quota is free, but no node has room for it"
    assert recorder.told == [(names[0], "NoNodeFits", note)]


def test_that_no_node_could_ever_hold_a_pod_is_told() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 1)])
    (pod,) = world.wait("a", 2)
    recorder = Recorder()

    Teller(recorder).tell(world.plan(), 0.0)

    assert [event[:2] for event in recorder.told] == [(pod.name, "NoSuchNode")]


def test_it_is_told_once_and_again_after_ten_minutes() -> None:
    world, _ = without_room()
    recorder = Recorder()
    teller = Teller(recorder)

    for now in (0.0, 1.0, 599.0):
        teller.tell(world.plan(), now)
    assert len(recorder.told) == 1

    teller.tell(world.plan(), 600.0)
    assert len(recorder.told) == 2


def test_what_has_ended_meanwhile_is_told_anew() -> None:
    world, _ = without_room()
    recorder = Recorder()
    teller = Teller(recorder)

    teller.tell(world.plan(), 0.0)
    teller.tell(Plan(), 1.0)
    teller.tell(world.plan(), 2.0)

    assert len(recorder.told) == 2


def test_a_pod_that_waits_for_quota_gets_no_event() -> None:
    world = World([tenant("a", 1, 1)], [node("n1", 8)])
    world.run("a")
    world.wait("a")
    recorder = Recorder()

    Teller(recorder).tell(world.plan(), 0.0)

    assert recorder.told == []


def test_of_a_large_gang_that_is_odd_only_the_oldest_are_told() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 8)])
    pods = world.wait("a", many=8, gang=("g", 7))
    recorder = Recorder()

    Teller(recorder).tell(world.plan(), 0.0)

    assert recorder.told == [(pod.name, "GangProblem", "8 pods of a gang of 7") for pod in pods[:5]]
