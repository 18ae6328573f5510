# SPDX-License-Identifier: Apache-2.0
"""Gangs go all or none, torn ones are completed or taken back, and wrong counts are told."""

from dataclasses import replace
from typing import Any

from policies.quota.planning.values import Why
from policies.quota.pods import Gang, Phase, QuotaPod
from tests.support.planning import World, node, pool, released, tenant, text, why


def torn(world: World, gang: str = "g", size: int = 4, runs: int = 2, **fields: Any) -> None:
    """Let a leader have crashed amid a gang."""
    pods = world.wait("a", many=size, gang=(gang, size), **fields)
    releases = {r.pod.uid: r for r in world.plan().releases}
    for pod in pods[:runs]:
        charge = releases[pod.uid].charge
        world.state.put_pod(replace(pod, phase=Phase.LIVE, charge=charge))


def test_a_gang_goes_together() -> None:
    world = World([tenant("a", 4, 8)], [node("n1", 2), node("n2", 2)])
    world.wait("a", many=4, gang=("g", 4))
    assert len(world.plan().releases) == 4


def test_a_gang_waits_until_all_of_it_are_there() -> None:
    world = World([tenant("a", 4, 8)], [node("n1")])
    pods = world.wait("a", many=3, gang=("g", 4))
    planned = world.plan()
    assert not planned.releases
    assert why(planned, pods[0]) is Why.GANG
    assert text(planned, pods[0]) == "GangIncomplete: gang g: 3 of 4 pods are there"
    assert not planned.problems
    world.wait("a", gang=("g", 4))
    assert len(world.plan().releases) == 4


def test_a_gang_that_stays_short_is_a_problem() -> None:
    world = World([tenant("a", 4, 8)], [node("n1")])
    world.wait("a", many=3, gang=("g", 4))
    world.now += 300
    (problem,) = world.plan().problems
    assert problem.gang.name == "g"
    assert "3 of 4" in problem.text


def test_a_gang_does_not_go_where_only_some_of_it_fit() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 2), node("n2", 1)])
    pods = world.wait("a", many=4, gang=("g", 4))
    planned = world.plan()
    assert not planned.releases
    assert why(planned, pods[0]) is Why.NO_ROOM
    assert world.state.fit.free("n1")["nvidia.com/gpu"] == 2


def test_a_gang_does_not_go_past_the_ceiling_in_part() -> None:
    world = World([tenant("a", 0, 3)], [node("n1")])
    pods = world.wait("a", many=4, gang=("g", 4))
    planned = world.plan()
    assert not planned.releases
    assert why(planned, pods[0]) is Why.NEVER


def test_members_of_several_shapes_go_together() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 4), node("n2", 2)])
    world.wait("a", 4, gang=("g", 3))
    world.wait("a", 1, many=2, gang=("g", 3))
    assert len(world.act().releases) == 3


def test_members_of_several_shapes_that_do_not_fit_together_wait() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 4)])
    world.wait("a", 3, gang=("g", 2))
    (pod,) = world.wait("a", 2, gang=("g", 2))
    planned = world.plan()
    assert not planned.releases
    assert why(planned, pod) is Why.NO_ROOM


def test_too_many_members_are_a_problem_and_none_go() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    pods = world.wait("a", many=3, gang=("g", 2))
    planned = world.plan()
    assert not planned.releases
    assert why(planned, pods[0]) is Why.GANG
    (problem,) = planned.problems
    assert problem.text == "3 pods of a gang of 2"


def test_members_that_disagree_on_the_size_are_a_problem() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    world.wait("a", gang=("g", 2))
    world.wait("a", gang=("g", 3))
    assert len(world.plan().problems) == 1
    assert not world.plan().releases


def test_a_gang_without_a_size_is_a_problem() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    world.wait("a", gang=("g", None))
    (problem,) = world.plan().problems
    assert "does not say" in problem.text


def test_a_pod_group_may_have_more_members_than_it_needs() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    pods = world.wait("a", many=3)
    for pod in pods:
        world.state.put_pod(replace(pod, gang=Gang("g", None, is_pod_group=True)))
    assert len(world.plan().problems) == 1
    world.state.set_pod_group("a", "g", 2)
    assert len(world.plan().releases) == 3
    world.state.set_pod_group("a", "g", None)
    assert not world.plan().releases


def _grouped(pod: QuotaPod) -> QuotaPod:
    return replace(pod, gang=Gang("g", None, is_pod_group=True), owner="Job/x")


def test_what_a_pod_group_has_past_its_count_waits_like_any_other_and_ends_nothing() -> None:
    world = World([tenant("a", 8, 8), tenant("b", 2, 8)], [node("n1", 3)])
    world.state.set_pod_group("a", "g", 2)
    for pod in world.run("a", many=2):
        world.state.put_pod(_grouped(pod))
    (owed,) = world.wait("b")
    world.now += 1
    (more,) = world.wait("a")
    world.state.put_pod(_grouped(more))
    planned = world.act()
    assert [release.pod.uid for release in planned.releases] == [owed.uid]
    world.now += 10_000
    assert not world.plan().take_back
    world.end(owed)
    assert [release.pod.uid for release in world.plan().releases] == [more.uid]


def test_one_pod_too_many_does_not_end_a_gang_that_runs_whole() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    world.run("a", many=2, gang=("g", 2), owner="Job/x")
    world.wait("a", gang=("g", 2), owner="Job/x")
    world.now += 10_000
    planned = world.plan()
    assert not planned.releases
    assert len(planned.problems) == 1
    assert not planned.take_back


def test_gangs_of_one_name_in_two_namespaces_are_two() -> None:
    world = World([tenant("a", 8, 8), tenant("b", 8, 8)], [node("n1")])
    world.wait("a", many=1, gang=("g", 2))
    world.wait("b", many=1, gang=("g", 2))
    assert not world.plan().releases


def test_members_with_gates_of_others_keep_the_gang() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    (pod,) = world.wait("a", gang=("g", 2))
    world.wait("a", gang=("g", 2), phase=Phase.HELD)
    planned = world.plan()
    assert not planned.releases
    assert why(planned, pod) is Why.GANG


def test_a_torn_gang_is_completed_before_all_else() -> None:
    world = World(
        [tenant("a", 0, 8), tenant("b", 8, 8, priority=9)], [node("n1", 4), node("n2", 8)]
    )
    torn(world)
    world.wait("b", many=2, created_at=world.now - 1000)
    assert released(world.act())[:2] == ["a", "a"]


def test_a_torn_gang_is_completed_though_its_count_is_short() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    torn(world, size=4, runs=2)
    waiting = [p for p in world.state.pods() if p.phase is Phase.WAITING]
    world.end(waiting[0])
    assert len(world.plan().releases) == 1


def test_a_torn_gang_that_finds_no_room_is_taken_back_after_a_while() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 4)])
    torn(world, owner="Job/train")
    world.state.put_node(node("n1", 2))
    planned = world.plan()
    assert not planned.take_back
    world.now += 299
    assert not world.plan().take_back
    world.now += 1
    (back,) = world.plan().take_back
    assert back.gang.name == "g"
    assert len(back.pods) == 2
    assert all(pod.phase is Phase.LIVE for pod in back.pods)
    assert "2 of gang g run" in back.text


def test_a_bare_or_exclusive_pod_is_never_taken_back() -> None:
    for fields in ({"owner": ""}, {"owner": "Job/train", "form": {"exclusive": True}}):
        world = World([tenant("a", 8, 8)], [node("n1", 4)])
        torn(world, **fields)
        world.state.put_node(node("n1", 2))
        world.now += 400
        planned = world.plan()
        assert not planned.take_back
        (problem,) = planned.problems
        assert "not taken back" in problem.text


def test_a_gang_that_was_complete_replaces_a_lost_member() -> None:
    world = World([tenant("a", 4, 4)], [node("n1")])
    pods = world.run("a", many=4, gang=("g", 4))
    world.end(pods[0])
    world.wait("a", gang=("g", 4))
    assert len(world.plan().releases) == 1


def test_members_that_have_ended_are_not_waited_for_for_ever() -> None:
    world = World([tenant("a", 4, 4)], [node("n1")])
    pods = world.run("a", many=2, gang=("g", 2))
    for pod in pods:
        world.state.put_pod(replace(pod, phase=Phase.ENDED))
    world.wait("a", gang=("g", 2))
    assert not world.plan().releases
    world.now += 300
    assert len(world.plan().releases) == 1


def test_a_gang_larger_than_a_batch_goes_in_several() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    world.wait("a", many=6, gang=("g", 6))
    assert len(world.act(limit=4).releases) == 4
    assert len(world.act(limit=4).releases) == 2


def test_a_gang_that_does_not_fit_a_batch_any_more_is_first_in_the_next() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    world.wait("a", many=2, created_at=world.now - 10)
    world.wait("a", many=4, gang=("g", 4), created_at=world.now - 5)
    world.wait("a", many=2)
    assert all(r.pod.gang is None for r in world.act(limit=4).releases)
    assert all(r.pod.gang for r in world.act(limit=4).releases)


def test_members_are_together_in_one_pool_where_all_of_them_can_be() -> None:
    world = World(
        [tenant("a", pools={"": (0, 8), "a100": (2, 8)})],
        [node("n1", model="A100"), node("n2", model="H100")],
        pools={"a100": pool("a100", model="A100")},
    )
    world.wait("a", 1, many=2, gang=("g", 3))
    world.wait("a", 2, gang=("g", 3), selector={"model": "H100"})
    assert {r.charge.pool for r in world.plan().releases} == {""}


def test_a_gang_whose_namespace_moves_is_in_one_line_only() -> None:
    world = World([tenant("a", 4, 4), tenant("b", 4, 4)], [node("n1")])
    world.wait("a", many=3, gang=("g", 3))
    world.set_tenants(
        [
            replace(tenant("a", 4, 4), namespaces=frozenset({"x"})),
            replace(tenant("b", 4, 4), namespaces=frozenset({"a", "b"})),
        ]
    )
    planned = world.act()
    assert [r.charge.tenant for r in planned.releases] == ["b"] * 3
    assert not world.state.queue.tenants


def test_what_a_gang_takes_others_of_the_same_pass_do_not_get() -> None:
    world = World([tenant("a", 8, 8), tenant("b", 8, 8)], [node("n1", 4), node("n2", 1)])
    world.wait("a", many=4, gang=("g", 4), created_at=world.now - 9)
    world.wait("b", many=4, gang=("h", 4))
    world.wait("b", many=3)
    planned = world.plan()
    assert [r.pod.gang is None for r in planned.releases].count(False) == 4
    assert len(planned.releases) == 5


def test_a_gang_of_which_all_are_being_deleted_is_forgotten_pod_by_pod() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    pods = world.wait("a", many=3, gang=("g", 3))
    world.act()
    for pod in pods:
        world.state.put_pod(replace(world.pod(pod.uid), deleted_at=world.now + 30))
    world.plan()
    world.end(*pods)
    assert not world.plan().waits
    again = world.wait("a", many=3, gang=("g", 3))
    assert {release.pod.uid for release in world.act().releases} == {pod.uid for pod in again}
