# SPDX-License-Identifier: Apache-2.0
"""Whoever was just taken back does not borrow again at once."""

from policies.model.tenant import Tenant
from policies.quota.planning.values import Why
from policies.quota.pods import QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.snapshot import Disruption
from tests.support.planning import World, node, released, tenant, text, why


def world(*tenants: Tenant) -> World:
    return World(tenants or [tenant("a", 1, 8)], [node("n1")])


def hold(made: World, pod: QuotaPod, seconds: int = 60) -> None:
    made.state.hold_back(pod.source, made.now + seconds)


def test_what_was_taken_back_goes_within_the_guarantee_and_does_not_borrow() -> None:
    made = world()
    pods = made.wait("a", many=3, owner_uid="job")
    hold(made, pods[0])
    planned = made.act()
    assert [release.pod.uid for release in planned.releases] == [pods[0].uid]
    assert [why(planned, pod) for pod in pods[1:]] == [Why.TAKEN_BACK] * 2
    assert "until 1970-01-12T13:47:40Z" in text(planned, pods[1])


def test_once_the_time_is_over_it_borrows_again() -> None:
    made = world()
    pods = made.wait("a", many=3, owner_uid="job")
    hold(made, pods[0])
    made.act()
    made.now += 59
    assert released(made.plan()) == []
    made.now += 1
    assert len(made.act().releases) == 2


def test_a_pod_that_is_made_again_later_is_held_too() -> None:
    made = world()
    made.run("a")
    made.state.hold_back(("a", "job"), made.now + 60)
    (pod,) = made.wait("a", owner_uid="job")
    assert why(made.plan(), pod) is Why.TAKEN_BACK


def test_pods_of_other_controllers_borrow_meanwhile() -> None:
    made = world()
    made.run("a")
    (held,) = made.wait("a", owner_uid="job", priority=9)
    (other,) = made.wait("a", owner_uid="another")
    hold(made, held)
    assert [release.pod.uid for release in made.plan().releases] == [other.uid]


def test_a_bare_pod_is_known_by_its_name() -> None:
    made = world()
    made.run("a")
    (held,) = made.wait("a")
    hold(made, held)
    assert why(made.plan(), held) is Why.TAKEN_BACK


def test_a_gang_waits_as_a_whole_for_the_longest_held_of_it() -> None:
    made = world()
    first, second = made.wait("a", many=2, gang=("g", 2))
    hold(made, first, 30)
    hold(made, second, 60)
    assert why(made.plan(), first) is Why.TAKEN_BACK
    made.now += 40
    assert why(made.plan(), first) is Why.TAKEN_BACK
    made.now += 20
    assert len(made.act().releases) == 2


def test_a_guarantee_that_the_pass_itself_uses_up_leaves_the_rest_held() -> None:
    made = world(tenant("a", 2, 8))
    pods = made.wait("a", 2, many=2, owner_uid="job")
    hold(made, pods[0])
    planned = made.act()
    assert len(planned.releases) == 1
    assert why(planned, pods[1]) is Why.TAKEN_BACK


def test_what_is_held_keeps_no_room_from_others() -> None:
    made = world(tenant("a", 0, 8), tenant("b", 0, 8))
    (held,) = made.wait("a", 8, owner_uid="job", created_at=made.now - 10_000)
    hold(made, held)
    (small,) = made.wait("b")
    assert [release.pod.uid for release in made.plan().releases] == [small.uid]


def disturbed(memory: Memory, pod: QuotaPod, at: int, seconds: int = 60) -> None:
    memory.ended(pod, Disruption(at, "a", "n1"), seconds)


def test_one_that_was_refused_does_not_free_the_others_of_its_controller() -> None:
    made = world()
    first, second = made.wait("a", many=2, owner_uid="job")
    memory = Memory(made.state.hold_back)
    disturbed(memory, first, made.now)
    disturbed(memory, second, made.now + 5)
    assert made.state.queue.held_until(first.uid) == made.now + 65
    memory.refused(second, made.now)
    assert made.state.queue.held_until(first.uid) == made.now + 60
    memory.refused(first, made.now)
    assert made.state.queue.held_until(first.uid) == 0


def test_a_policy_without_that_time_holds_nobody() -> None:
    made = world()
    (pod,) = made.wait("a")
    memory = Memory(made.state.hold_back)
    disturbed(memory, pod, made.now, seconds=0)
    assert memory.held_until(pod) == 0
    assert made.state.queue.held_until(pod.uid) == 0
