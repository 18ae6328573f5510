# SPDX-License-Identifier: Apache-2.0
"""What has waited for long keeps what it lacks from those after it."""

from dataclasses import replace

from policies.quota.planning.values import Why
from policies.quota.pods import Phase, QuotaPod
from policies.quota.reclaim.picture import lacks_room
from policies.quota.reserves import Reserve
from tests.support.planning import World, node, released, shape, tenant, text, why


def churn(world: World, rounds: int) -> int:
    """Let small pods end and new ones come, and return after how many rounds the gang went."""
    for number in range(rounds):
        running = [p for p in world.state.pods() if p.namespace == "small" and p.charge]
        world.end(running[number % len(running)])
        world.wait("small", created_at=world.now)
        world.now += 60
        if any(r.pod.namespace == "large" for r in world.act().releases):
            return number
    return rounds


def test_small_pods_do_not_keep_a_large_gang_waiting_for_ever() -> None:
    world = World([tenant("large", 0, 8), tenant("small", 0, 8)], [node("n1", 4), node("n2", 4)])
    world.run("small", many=8)
    world.wait("large", 4, many=2, gang=("g", 2))
    world.wait("small", many=20, created_at=world.now - 1)
    assert churn(world, 60) < 60


def test_what_waits_for_less_than_the_time_keeps_nothing() -> None:
    world = World([tenant("large", 0, 8), tenant("small", 0, 8)], [node("n1", 4)])
    world.run("small", many=3)
    world.wait("large", 4)
    world.wait("small")
    world.now += 599
    assert released(world.plan()) == ["small"]
    world.now += 1
    assert not world.plan().releases


def test_who_is_held_by_a_reservation_is_told_for_whom() -> None:
    world = World([tenant("large", 0, 8), tenant("small", 0, 8)], [node("n1", 4)])
    world.run("small", many=3)
    world.wait("large", 2, many=2, gang=("big", 2))
    (small,) = world.wait("small")
    world.now += 600
    planned = world.plan()
    assert why(planned, small) is Why.RESERVED
    assert "gang big of large" in text(planned, small)


def test_small_pods_pass_where_they_fit_outside_of_the_reservation() -> None:
    world = World([tenant("large", 8, 16), tenant("small", 8, 16)], [node("n1", 4), node("n2", 2)])
    world.run("small", 1, many=3)
    world.run("small", 2, selector=None)
    for pod in list(world.state.pods()):
        world.bind(pod, "n1" if pod.shape.gpus["nvidia.com/gpu"] == 1 else "n2")
    world.wait("large", 4)
    world.now += 600
    (blocked,) = world.wait("small")
    assert why(world.plan(), blocked) is Why.RESERVED
    world.state.put_node(node("n3", 1))
    planned = world.plan()
    assert released(planned) == ["small"]
    (kept_off,) = planned.releases[0].pins.expressions
    assert str(kept_off) == "kubernetes.io/hostname notin (n1)"
    (release,) = planned.releases
    assert release.node == "n3"
    # Without the reservation n1 would be the better one.
    world.state.charge_intent(blocked.uid, release.charge, release.node)
    assert world.state.fit.node_of(blocked.uid) == "n3"
    world.state.put_pod(replace(blocked, phase=Phase.LIVE, charge=release.charge, shape=shape(1)))
    world.state.settle(blocked.uid)
    assert world.state.fit.node_of(blocked.uid) == "n3"


def test_those_before_it_in_the_order_are_not_held() -> None:
    world = World([tenant("large", 0, 8), tenant("urgent", 0, 8, priority=5)], [node("n1", 4)])
    world.run("urgent", many=3)
    world.wait("large", 4)
    world.now += 600
    world.wait("urgent")
    assert released(world.plan()) == ["urgent"]


def test_what_is_owed_is_not_held_by_what_would_be_borrowed() -> None:
    world = World([tenant("large", 0, 8, priority=9), tenant("owed", 1, 8)], [node("n1", 4)])
    world.run("large", many=3)
    world.wait("large", 4)
    world.now += 600
    world.wait("owed", 1)
    assert released(world.plan()) == ["owed"]


def test_a_gang_at_its_tenants_ceiling_keeps_room_within_it() -> None:
    world = World([tenant("a", 0, 4)], [node("n1")])
    pods = world.run("a", many=3)
    world.wait("a", 1, many=4, gang=("g", 4))
    world.now += 600
    (small,) = world.wait("a")
    planned = world.plan()
    assert not planned.releases
    assert why(planned, small) is Why.RESERVED
    world.end(*pods)
    assert len(world.act().releases) == 4


def test_what_can_never_go_keeps_nothing() -> None:
    world = World([tenant("a", 0, 4)], [node("n1")])
    world.wait("a", 5)
    world.wait("a", 4, selector={"no": "where"})
    world.now += 600
    world.wait("a")
    assert released(world.plan()) == ["a"]


def test_a_pod_held_for_lack_of_lenders_keeps_others_from_borrowing() -> None:
    world = World([tenant("large", 0, 8), tenant("small", 0, 8)], [node("n1", 4)])
    world.run("small", many=3)
    world.state.put_node(node("n2", 8))
    world.set_tenants([tenant("large", 0, 8), tenant("small", 0, 8), tenant("safe", 8, 8)])
    (large,) = world.wait("large", 4)
    world.now += 600
    (small,) = world.wait("small")
    planned = world.plan()
    assert why(planned, large) is Why.BORROWING
    assert why(planned, small) is Why.RESERVED
    world.end(*[p for p in world.state.pods() if p.charge])
    assert released(world.act()) == ["large"]


def test_what_is_taken_back_is_kept_for_whom_it_was_taken_back() -> None:
    world = World([tenant("owed", 4, 4), tenant("other", 0, 8)], [node("n1", 8)])
    running = world.run("other", many=4)
    world.state.put_node(node("n1", 4))
    for pod in running:
        world.bind(pod, "n1")
    (large,) = world.wait("owed", 4)
    world.set_tenants([tenant("owed", 4, 4), tenant("other", 4, 8)])
    world.end(running[0])
    world.wait("other", 1)
    assert released(world.plan()) == ["other"]
    reserve = Reserve(4000, world.now + 60, {large.uid: "n1"})
    world.state.reserve_for("owed", "", reserve)
    assert not world.plan().releases
    world.now += 61
    assert released(world.plan()) == ["other"]
    world.state.reserve_for("owed", "", replace(reserve, until=world.now + 60))
    world.end(*running[1:])
    assert [r.pod.uid for r in world.act().releases] == [large.uid]
    assert not world.state.reserves or all(r.milli == 0 for r in world.state.reserves.values())


def test_while_room_is_taken_back_nothing_borrows_without_room_in_an_open_pool() -> None:
    tenants = [tenant("owed", 4, 4), tenant("other", 0, 8), tenant("third", 0, 8)]
    world = World(tenants, [node("n1", 1)], release_without_nodes=True)
    world.wait("other", many=2)
    world.state.reserve_for("owed", "", Reserve(4000, world.now + 60))
    planned = world.act()
    # One has room now; another would wait at the scheduler for what is taken back.
    assert released(planned) == ["other"]
    (owed,) = world.wait("owed")
    assert [release.pod.uid for release in world.act().releases] == [owed.uid]
    world.now += 61
    assert released(world.act()) == ["other"]


def test_a_reserve_keeps_no_more_than_was_taken_back() -> None:
    world = World([tenant("owed", 8, 8), tenant("other", 8, 8)], [node("n1", 4)])
    running = world.run("other", many=2)
    world.run("owed", many=2, form={"grace_seconds": 29})
    first, *_ = world.wait("owed", 1, many=4)
    world.state.reserve_for("owed", "", Reserve(1000, world.now + 60, {first.uid: "n1"}))
    world.end(running[0])
    planned = world.act()
    assert released(planned) == ["owed"]
    assert replace(planned.releases[0].charge, at=0).amount.milli == 1000


def blocked(**settings: int) -> tuple[World, QuotaPod]:
    """A pod that only `n1` admits, where pods of another guarantee stay; and a small one."""
    world = World([tenant("large", 8, 16), tenant("small", 8, 16)], [node("n1", 8)], **settings)
    for pod in world.run("small", many=4):
        world.bind(pod, "n1")
    (large,) = world.wait("large", 8)
    world.now += 600
    return world, large


def test_a_reservation_for_which_nothing_comes_free_ends_and_returns_after_a_pause() -> None:
    world, _ = blocked(reserve_for_seconds=900)
    small = world.wait("small", many=3)
    assert not world.plan().releases
    world.now += 899
    assert why(world.plan(), small[0]) is Why.RESERVED
    world.now += 1
    assert released(world.act()) == ["small"] * 3
    world.end(*small)
    world.now += 1799
    world.wait("small")
    assert released(world.act()) == ["small"]
    world.now += 1
    world.wait("small")
    assert not world.plan().releases


def test_a_reservation_stays_on_its_node_while_others_come_to_lack_less() -> None:
    world = World([tenant("large", 8, 8), tenant("other", 16, 16)], [node("n1", 8), node("n2", 8)])
    for name, count in (("n1", 6), ("n2", 7)):
        for pod in world.run("other", many=count, name=name):
            world.bind(pod, name)
    (large,) = world.wait("large", 8)
    world.now += 600
    assert [(room.uid, room.node) for room in world.plan().kept] == [(large.uid, "n1")]
    world.end(*[pod for pod in world.state.pods() if pod.node == "n2"][:6])
    assert [room.node for room in world.plan().kept] == ["n1"]
    world.state.remove_node("n1")
    assert [room.node for room in world.plan().kept] == ["n2"]


def test_a_plan_that_may_release_nothing_still_tells_what_is_kept() -> None:
    world, large = blocked()
    world.wait("small")
    assert not world.plan().releases
    planned = world.plan(limit=0)
    assert [(room.uid, room.node, room.owed) for room in planned.kept] == [(large.uid, "n1", True)]


def test_what_is_owed_and_what_would_borrow_keep_room_side_by_side() -> None:
    world = World([tenant("a", 0, 8), tenant("b", 8, 8)], [node("n1", 8)])
    for pod in world.run("b", many=4):
        world.bind(pod, "n1")
    (borrower,) = world.wait("a", 5)
    (owed,) = world.wait("b", 5, created_at=world.now + 1)
    world.set_tenants([tenant("a", 0, 8), tenant("b", 9, 9)])
    world.now += 601
    kept = {room.uid: room.owed for room in world.plan().kept}
    assert kept == {borrower.uid: False, owed.uid: True}


def test_quota_that_is_kept_within_a_tenant_is_told_apart_from_room() -> None:
    world = World([tenant("a", 0, 4)], [node("n1")])
    world.run("a", many=3)
    world.wait("a", 1, many=4, gang=("g", 4))
    world.now += 600
    (small,) = world.wait("a")
    planned = world.plan()
    assert "its tenant's own quota is kept for gang g of a" in text(planned, small)
    assert not lacks_room(planned.waits)
    world.now += 1800
    assert released(world.plan()) == ["a"]


def test_what_would_borrow_keeps_nothing_of_the_guarantee_from_its_own_tenant() -> None:
    world = World([tenant("a", 4, 16), tenant("b", 4, 4)], [node("n1", 8)])
    for pod in world.run("b", many=4):
        world.bind(pod, "n1")
    (large,) = world.wait("a", 8)
    world.now += 600
    small = world.wait("a", many=5)
    planned = world.plan()
    assert [(room.uid, room.owed) for room in planned.kept] == [(large.uid, False)]
    assert [release.pod.uid for release in planned.releases] == [pod.uid for pod in small[:4]]
    assert not any(release.charge.borrowed for release in planned.releases)


def test_room_that_is_taken_back_is_kept_from_who_comes_first_in_the_order() -> None:
    world = World([tenant("a", 4, 4), tenant("first", 4, 8, priority=9)], [node("n1", 2)])
    pods = world.wait("a", many=2)
    world.wait("first", many=2)
    reserve = Reserve(2000, world.now + 60, {pod.uid: "n1" for pod in pods})
    world.state.reserve_for("a", "", reserve)
    assert [release.pod.uid for release in world.act().releases] == [pod.uid for pod in pods]


def test_who_keeps_room_that_is_taken_back_takes_any_other_that_is_free() -> None:
    world = World([tenant("a", 4, 4), tenant("b", 8, 8)], [node("n1", 1), node("n2", 1)])
    for pod in world.run("b"):
        world.bind(pod, "n1")
    (pod,) = world.wait("a")
    world.state.reserve_for("a", "", Reserve(1000, world.now + 60, {pod.uid: "n1"}))
    assert [(release.pod.uid, release.node) for release in world.plan().releases] == [
        (pod.uid, "n2")
    ]


def test_who_keeps_room_that_is_taken_back_and_finds_none_is_told_why_it_waits() -> None:
    world = World([tenant("a", 8, 8), tenant("b", 8, 8)], [node("n1", 8), node("n2", 4)])
    for pod in world.run("b", many=6, name="x"):
        world.bind(pod, "n1")
    for pod in world.run("b", many=2, name="y"):
        world.bind(pod, "n2")
    pods = world.wait("a", 2, many=3)
    reserve = Reserve(6000, world.now + 60, {pod.uid: "n1" for pod in pods})
    world.state.reserve_for("a", "", reserve)
    planned = world.plan()
    # What is there so far is for the first; two more are still to be freed.
    assert [release.node for release in planned.releases] == ["n1", "n2"]
    assert why(planned, pods[2]) is Why.NO_ROOM
    assert [(room.uid, room.node) for room in planned.kept] == [(pods[2].uid, "n1")]


def test_the_first_who_gets_room_that_comes_back_bit_by_bit_may_run_where_it_is() -> None:
    world = World([tenant("a", 4, 4), tenant("b", 4, 4)], [node("n1", 4)])
    for pod in world.run("b", many=3):
        world.bind(pod, "n1")
    pods = world.wait("a", many=2)
    reserve = Reserve(2000, world.now + 60, {pod.uid: "n1" for pod in pods})
    world.state.reserve_for("a", "", reserve)
    (release,) = world.plan().releases
    assert (release.pod.uid, release.node) == (pods[0].uid, "n1")
    assert not release.pins.expressions
