# SPDX-License-Identifier: Apache-2.0
"""What still runs of tenants that were deleted, and on nodes that are lost: it is in every sum."""

from dataclasses import replace

from policies.cluster.nodes import Taint
from policies.model.facts import NamespaceFacts
from policies.quota.planning.market import Market
from policies.quota.planning.values import Why
from policies.quota.state import QuotaState
from tests.support.builders import catalog
from tests.support.planning import World, node, released, tenant, why

_LOST = Taint("node.kubernetes.io/unreachable", "", "NoExecute")


def three_tenants() -> World:
    """Two guarantees of 4 GPUs each, and one tenant that only borrows, on 16 GPUs in all."""
    return World(
        [tenant("a", 4, 16), tenant("b", 4, 16), tenant("c", 0, 16)], [node("n1"), node("n2")]
    )


def without(world: World, name: str) -> None:
    world.set_tenants(each for each in world.tenants.values() if each.name != name)


def anew(world: World) -> QuotaState:
    """Return what a leader knows that begins with the pods alone."""
    state = QuotaState(catalog())
    state.set_policies(world.state.policies)
    for name in ("a", "b", "c"):
        state.put_namespace(NamespaceFacts(name, {}))
    for each in world.state.nodes.values():
        state.put_node(each)
    for pod in world.state.pods():
        state.put_pod(pod)
    return state


def test_what_a_deleted_tenant_holds_is_in_the_sums_of_this_and_of_every_later_leader() -> None:
    world = three_tenants()
    world.run("a", many=6)
    world.run("b", many=2)
    without(world, "a")
    for ledger in (world.state.ledger, anew(world).ledger):
        assert ledger.tenants() == ("a", "b")
        assert [ledger.used(name, "").milli for name in ("a", "b")] == [6000, 2000]
        assert ledger.entitled("a", "").milli == 6000


def test_what_a_deleted_tenant_holds_is_not_handed_out_a_second_time() -> None:
    world = three_tenants()
    world.run("a", many=6)
    without(world, "a")
    waiting = world.wait("c", many=12)
    # Outside of the one guarantee that is left are 12 GPUs, of which 6 are held.
    assert released(world.act()) == ["c"] * 6
    assert why(world.plan(), waiting[-1]) is Why.BORROWING
    assert Market(world.state, world.now).room("c", "") == 0


def test_what_a_deleted_tenant_held_can_be_had_again_once_its_pods_have_ended() -> None:
    world = three_tenants()
    running = world.run("a", many=6)
    without(world, "a")
    world.wait("c", many=12)
    world.act()
    world.end(*running[:4])
    assert released(world.act()) == ["c"] * 4
    world.end(*running[4:])
    assert released(world.act()) == ["c"] * 2
    assert "a" not in world.state.ledger.tenants()


def test_pods_of_a_deleted_tenant_that_wait_are_told_that_they_have_none() -> None:
    world = three_tenants()
    (pod,) = world.wait("a")
    without(world, "a")
    assert why(world.plan(), pod) is Why.NO_TENANT


def test_a_tenant_that_is_made_again_finds_what_runs_of_it_counted_once() -> None:
    world = three_tenants()
    before = dict(world.tenants)
    world.run("a", many=6)
    without(world, "a")
    world.set_tenants([*before.values()])
    assert world.used("a") == 6000
    assert world.state.ledger.tenants() == ("a",)
    world.wait("a", many=12)
    # 8 GPUs lie outside of all guarantees, of which it has borrowed 2.
    assert released(world.act()) == ["a"] * 6


def test_a_namespace_of_a_deleted_tenant_that_another_gets_counts_for_that_one() -> None:
    world = three_tenants()
    world.run("a", many=2)
    world.run("b", many=4)
    other = replace(world.tenants["b"], namespaces=frozenset({"a", "b"}))
    world.set_tenants([other, world.tenants["c"]])
    assert world.used("b") == 6000
    assert world.state.ledger.tenants() == ("b",)


def test_a_pod_deleted_on_a_lost_node_keeps_the_ceiling_until_its_grace_is_over() -> None:
    world = World([tenant("a", 1, 1)], [node("n1"), node("n2")])
    (pod,) = world.run("a")
    world.bind(pod, "n1")
    world.state.put_node(replace(node("n1"), ready=False, taints=(_LOST,)))
    world.state.put_pod(replace(world.pod(pod.uid), deleted_at=world.now + 30))
    (next_one,) = world.wait("a")
    world.state.tick(world.now)
    assert why(world.plan(), next_one) is Why.CEILING
    assert world.used("a") == 1000
    assert world.state.ledger.entitled("a", "").milli == 0
    world.now += 30
    world.state.tick(world.now)
    assert [release.node for release in world.act().releases] == ["n2"]


def test_a_pod_that_comes_back_with_its_lost_node_is_counted_again() -> None:
    world = World([tenant("a", 2, 2)], [node("n1"), node("n2")])
    (pod,) = world.run("a")
    world.bind(pod, "n1")
    world.state.put_node(replace(node("n1"), ready=False, taints=(_LOST,)))
    world.state.put_pod(replace(world.pod(pod.uid), deleted_at=world.now + 30))
    world.now += 30
    world.state.tick(world.now)
    assert world.used("a") == 0
    world.state.put_node(node("n1"))
    world.state.tick(world.now)
    assert world.used("a") == 1000
    world.wait("a", many=2)
    assert len(world.act().releases) == 1
