# SPDX-License-Identifier: Apache-2.0
"""Why one pod waits, and which place it has."""

from policies.quota.notice import rfc3339
from policies.quota.planning.explaining import ENDS, Explanation, explain
from policies.quota.planning.values import Why
from policies.quota.pods import Phase, QuotaPod
from tests.support.planning import World, node, pool, tenant


def explained(world: World, pod: QuotaPod) -> Explanation:
    found = explain(world.state, pod, world.now)
    assert found is not None
    return found


def test_the_place_is_the_order_in_which_pods_of_a_cohort_would_go() -> None:
    world = World(
        [
            tenant("a", 0, 99, cohort="c"),
            tenant("b", 0, 99, cohort="c"),
            tenant("alone", 0, 99, priority=9),
        ],
        [node("n1", 3)],
    )
    first = world.wait("a", many=4, created_at=world.now - 100)
    second = world.wait("b", many=4)
    world.wait("alone", many=4)
    places = [explained(world, pod).place for pod in (*first, *second)]
    assert places == [1, 3, 5, 7, 2, 4, 6, 8]
    assert explained(world, first[0]).waiting == 8
    assert explained(world, first[0]).cohort == "c"


def test_places_are_those_that_releases_take() -> None:
    tenants = [
        tenant("a", 2, 99, cohort="c", weight=2),
        tenant("b", 1, 99, cohort="c", priority=5),
        tenant("d", 0, 99, cohort="c"),
    ]
    world = World(tenants, [node("n1", 64)])
    for name in "abd":
        world.wait(name, many=3, created_at=world.now - 5)
        world.wait(name, 2, many=2, priority=1)
    world.wait("d", many=2, gang=("g", 2), created_at=world.now - 50)
    pods = list(world.state.pods())
    places = {pod.uid: explained(world, pod).place for pod in pods}
    order = [release.pod.uid for release in world.plan().releases]
    assert len(order) == len(pods)
    assert [places[uid] for uid in order] == list(range(1, len(pods) + 1))


def test_what_holds_a_pod_is_said_with_what_would_end_it() -> None:
    world = World([tenant("a", 0, 2)], [node("n1")])
    world.run("a", many=2)
    (pod,) = world.wait("a")
    found = explained(world, pod)
    assert found.hold.why is Why.CEILING
    assert "ceiling of 2 GPUs" in found.hold.text
    assert "higher ceiling" in found.ends
    assert found.amount.milli == 1000


def test_nodes_say_why_they_do_not_hold_it() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 1), node("n2", 4, zone="x")])
    world.run("a", 4)
    (pod,) = world.wait("a", 2)
    found = explained(world, pod)
    assert found.hold.why is Why.NO_ROOM
    assert found.pools[""].nodes == 2
    assert found.pools[""].feasible == 0


def test_a_pod_that_goes_next_is_held_by_nothing() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    (pod,) = world.wait("a")
    assert explained(world, pod).hold.why is Why.NEXT


def test_a_pod_of_no_tenant_is_explained_too() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    (pod,) = world.wait("elsewhere")
    found = explained(world, pod)
    assert found.tenant == ""
    assert found.hold.why is Why.NO_TENANT


def test_what_waits_for_nothing_of_ours_is_not_explained() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    (running,) = world.run("a")
    (held,) = world.wait("a", phase=Phase.HELD)
    assert explain(world.state, running, world.now) is None
    assert explain(world.state, held, world.now) is None


def test_every_reason_says_what_ends_it() -> None:
    assert ENDS.keys() == set(Why)


def test_a_pod_whose_like_was_taken_back_is_told_until_when_it_may_not_borrow() -> None:
    world = World([tenant("a", 0, 8)], [node("n1")])
    (pod,) = world.wait("a", owner_uid="job")
    world.state.hold_back(pod.source, world.now + 60)
    found = explained(world, pod)
    assert found.hold.why is Why.TAKEN_BACK
    assert rfc3339(world.now + 60) in found.hold.text
    assert "guarantee" in found.ends


def test_what_only_the_leader_knows_is_read_from_the_pod() -> None:
    said = "TakenBack: one like it was taken back; until 1970-01-12T13:47:40Z it goes only so"
    world = World([tenant("a", 0, 8)], [node("n1")])
    (pod,) = world.wait("a", reason=said)
    assert str(explained(world, pod).hold) == said
    (other,) = world.wait("a", reason="Ceiling: that was before")
    assert explained(world, other).hold.why is Why.NEXT


def test_places_go_by_the_shares_of_the_pool_that_a_pod_can_reach() -> None:
    quotas = {"": (0, 9), "a100": (0, 9)}
    tenants = [tenant(name, pools=quotas, cohort="c") for name in ("a", "b")]
    nodes = [node("n1", 6, model="A100", zone="here"), node("n2", 4, zone="far")]
    world = World(tenants, nodes, pools={"a100": pool("a100", model="A100")})
    world.run("b", many=3, selector={"zone": "far"})
    world.run("a", many=3, selector={"zone": "here"})
    first = world.wait("a", many=5, selector={"zone": "here"}, created_at=world.now - 100)
    second = world.wait("b", many=5, selector={"zone": "here"})
    places = {explained(world, pod).place: pod.uid for pod in (*first, *second)}
    order = [release.pod.uid for release in world.plan().releases]
    assert order == [pod.uid for pod in second[:3]]
    assert [places[number] for number in (1, 2, 3)] == order
