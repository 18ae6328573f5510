# SPDX-License-Identifier: Apache-2.0
"""Who is released, in which order, and what holds the others."""

from dataclasses import replace

from policies.quota.planning.values import Why
from policies.quota.pods import Phase
from policies.quota.state import QuotaState
from tests.support.builders import catalog
from tests.support.planning import (
    World,
    lending_at_once,
    node,
    pool,
    released,
    shape,
    tenant,
    text,
    why,
)


def test_a_lone_pod_with_quota_and_room_goes_at_once() -> None:
    world = World([tenant("a", 4, 8)], [node("n1")])
    (pod,) = world.wait("a")
    planned = world.plan()
    (release,) = planned.releases
    assert release.pod == pod
    assert release.charge.tenant == "a"
    assert release.charge.amount.milli == 1000
    assert not release.charge.borrowed
    assert release.charge.at == world.now
    assert not planned.waits


def test_planning_changes_nothing() -> None:
    world = World([tenant("a", 4, 8)], [node("n1", 2)])
    world.wait("a", many=3)
    world.wait("a", 2, gang=("g", 2), many=2)
    assert world.plan() == world.plan()
    assert world.used("a") == 0
    assert world.state.fit.free("n1")["nvidia.com/gpu"] == 2


def test_without_policies_nothing_is_planned() -> None:
    world = World([tenant("a", 4)], [node("n1")])
    world.state = QuotaState(catalog())
    world.wait("a")
    assert not world.plan().releases


def test_a_ceiling_is_not_passed() -> None:
    world = World([tenant("a", 0, 3)], [node("n1")])
    pods = world.wait("a", many=5)
    planned = world.act()
    assert len(planned.releases) == 3
    assert why(planned, pods[4]) is Why.CEILING
    assert text(planned, pods[4]) == "Ceiling: needs 1 GPU within a's ceiling of 3 GPUs"
    assert not world.act().releases


def test_a_lowered_ceiling_releases_nobody() -> None:
    world = World([tenant("a", 0, 8)], [node("n1")])
    world.run("a", many=6)
    world.set_tenants([tenant("a", 0, 4)])
    (pod,) = world.wait("a")
    planned = world.plan()
    assert not planned.releases
    assert why(planned, pod) is Why.CEILING
    assert not planned.take_back


def test_what_is_being_deleted_counts_against_the_ceiling_until_it_is_gone() -> None:
    world = World([tenant("a", 2, 2)], [node("n1")])
    (first, _) = world.run("a", many=2)
    world.state.put_pod(replace(first, deleted_at=world.now + 3600))
    (waiting,) = world.wait("a")
    assert why(world.plan(), waiting) is Why.CEILING
    world.end(first)
    assert released(world.plan()) == ["a"]


def test_an_intent_counts_until_it_is_settled() -> None:
    world = World([tenant("a", 1, 1)], [node("n1")])
    (first,) = world.wait("a")
    (release,) = world.plan().releases
    world.state.charge_intent(first.uid, release.charge)
    (second,) = world.wait("a")
    planned = world.plan()
    assert not planned.releases
    assert why(planned, first) is None
    assert why(planned, second) is Why.CEILING
    world.state.settle(first.uid)
    assert [r.pod.uid for r in world.plan().releases] == [first.uid]


def test_what_asks_for_more_than_the_ceiling_can_never_go() -> None:
    world = World([tenant("a", 0, 3)], [node("n1")])
    (pod,) = world.wait("a", 4)
    assert why(world.plan(), pod) is Why.NEVER


def test_memory_and_counts_are_ceilings_over_all_pools() -> None:
    world = World([tenant("a", 8, 8, resources={"nvidia.com/gpu": 2})], [node("n1")])
    pods = world.wait("a", many=3)
    planned = world.plan()
    assert len(planned.releases) == 2
    assert "2" in text(planned, pods[2])
    assert why(planned, pods[2]) is Why.CEILING
    world.set_tenants([tenant("a", 8, 8, memory_mib=1)])
    assert why(world.plan(), pods[0]) is Why.NEVER


def test_no_more_is_released_than_nodes_can_hold() -> None:
    world = World([tenant("a", 16, 16)], [node("n1", 2), node("n2", 1)])
    pods = world.wait("a", many=5)
    planned = world.act()
    assert len(planned.releases) == 3
    assert why(planned, pods[4]) is Why.NO_ROOM
    assert not world.act().releases


def test_quota_that_is_free_is_of_no_use_on_the_wrong_node() -> None:
    world = World([tenant("a", 16, 16)], [node("n1", zone="x")])
    (pod,) = world.wait("a", selector={"zone": "y"})
    assert why(world.plan(), pod) is Why.NO_SUCH_NODE


def test_a_switch_releases_though_no_node_fits() -> None:
    world = World([tenant("a", 1, 2)], release_without_nodes=True)
    world.wait("a", many=3)
    assert len(world.act().releases) == 2


def test_pods_with_gates_of_others_are_neither_charged_nor_reserved_for() -> None:
    world = World([tenant("a", 1, 1)], [node("n1", 1)])
    world.wait("a", phase=Phase.HELD, created_at=world.now - 10_000, many=3)
    (pod,) = world.wait("a")
    assert [r.pod.uid for r in world.plan().releases] == [pod.uid]


def test_within_a_tenant_priority_goes_before_age_and_age_before_name() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    (young,) = world.wait("a", created_at=world.now, name="a")
    (old,) = world.wait("a", created_at=world.now - 50, name="b")
    (high,) = world.wait("a", created_at=world.now, name="c", priority=5)
    (big,) = world.wait("a", 2, created_at=world.now - 20, name="d")
    order = [release.pod.uid for release in world.plan().releases]
    assert order == [high.uid, old.uid, big.uid, young.uid]


def test_a_small_pod_passes_a_large_one_that_does_not_fit() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 2)])
    (large,) = world.wait("a", 4, created_at=world.now - 10)
    (small,) = world.wait("a", 1)
    planned = world.plan()
    assert [r.pod.uid for r in planned.releases] == [small.uid]
    assert why(planned, large) is Why.NO_SUCH_NODE


def test_a_tenant_whose_ceiling_is_nothing_is_told_of_its_ceiling_and_not_of_nodes() -> None:
    world = World([tenant("a", 0, 0)], [node("n1", 2)])
    (pod,) = world.wait("a")
    planned = world.plan()
    assert why(planned, pod) is Why.NEVER
    assert text(planned, pod) == "NeverFits: needs 1 GPU within a's ceiling of 0 GPUs"


def test_what_is_owed_goes_before_what_is_borrowed_whatever_the_priority() -> None:
    world = World(
        [
            tenant("rich", 0, 8, priority=100, cohort="c"),
            tenant("poor", 2, 8, priority=0, cohort="c"),
        ],
        [node("n1", 4)],
    )
    world.wait("rich", many=4)
    world.wait("poor", many=2)
    assert released(world.plan()) == ["poor", "poor", "rich", "rich"]


def test_a_higher_priority_of_the_tenant_borrows_first() -> None:
    world = World([tenant("a", 0, 8, priority=1), tenant("b", 0, 8, priority=2)], [node("n1", 3)])
    world.wait("a", many=3, created_at=world.now - 100, priority=1000)
    world.wait("b", many=2)
    assert released(world.plan()) == ["b", "b", "a"]


def test_equal_weights_share_equally() -> None:
    world = World([tenant("a", 0, 8), tenant("b", 0, 8)], [node("n1", 6)])
    world.wait("a", many=8, created_at=world.now - 500)
    world.wait("b", many=8)
    assert sorted(released(world.plan())) == ["a", "a", "a", "b", "b", "b"]


def test_twice_the_weight_gets_twice_as_much() -> None:
    world = World([tenant("a", 0, 9), tenant("b", 0, 9, weight=2)], [node("n1", 6)])
    world.wait("a", many=8, created_at=world.now - 500)
    world.wait("b", many=8)
    assert sorted(released(world.plan())) == ["a", "a", "b", "b", "b", "b"]


def test_a_tenant_that_has_less_of_its_share_goes_first() -> None:
    world = World([tenant("a", 0, 8), tenant("b", 0, 8)], [node("n1", 6)])
    world.run("a", many=4)
    world.wait("a", many=2, created_at=world.now - 500)
    world.wait("b", many=4)
    assert released(world.plan()) == ["b", "b"]


def test_a_guarantee_that_is_in_use_lately_is_not_lent() -> None:
    world = World(
        [tenant("lender", 4, 4, cohort="c"), tenant("borrower", 0, 8, cohort="c")],
        [node("n1", 4)],
    )
    (pod,) = world.wait("borrower")
    planned = world.plan()
    assert why(planned, pod) is Why.BORROWING
    assert "cohort c" in text(planned, pod)


def test_a_guarantee_that_stands_idle_for_long_is_lent_inside_its_cohort() -> None:
    world = World(
        [
            tenant("lender", 4, 4, cohort="c"),
            tenant("borrower", 0, 8, cohort="c"),
            tenant("stranger", 0, 8),
        ],
        [node("n1", 4)],
    )
    world.idle()
    world.wait("borrower", many=5)
    (stranger,) = world.wait("stranger")
    planned = world.act()
    assert released(planned) == ["borrower"] * 4
    assert all(release.charge.borrowed for release in planned.releases)
    assert why(planned, stranger) is Why.BORROWING


def test_a_lender_that_asks_again_is_lent_from_no_more() -> None:
    world = World(
        [tenant("lender", 4, 4, cohort="c"), tenant("borrower", 0, 8, cohort="c")],
        [node("n1", 4)],
    )
    world.idle()
    world.run("borrower", many=2)
    (pod,) = world.wait("borrower")
    assert released(world.plan()) == ["borrower"]
    world.wait("lender", many=4, selector={"zone": "nowhere"})
    assert why(world.plan(), pod) is Why.BORROWING


def test_what_lies_outside_of_guarantees_is_lent_to_anyone() -> None:
    world = World([tenant("a", 4, 4), tenant("b", 0, 8)], [node("n1", 6)])
    world.wait("b", many=4)
    assert len(world.act().releases) == 2


def test_work_that_is_never_taken_back_must_fit_the_guarantee() -> None:
    world = World([tenant("a", 2, 8)], [node("n1")])
    pods = world.wait("a", many=3, form={"exclusive": True})
    world.wait("a", many=2)
    planned = world.act()
    assert len(planned.releases) == 4
    assert why(planned, pods[2]) is Why.FIXED
    assert [r.charge.reclaimable for r in planned.releases].count(False) == 2


def test_work_with_too_long_a_grace_must_fit_the_guarantee() -> None:
    world = World([tenant("a", 0, 8)], [node("n1")])
    (pod,) = world.wait("a", form={"grace_seconds": 86_400})
    assert why(world.plan(), pod) is Why.NEVER


def test_a_pod_is_charged_in_a_pool_that_it_can_reach() -> None:
    quotas = {"": (8, 8), "a100": (8, 8)}
    world = World(
        [tenant("a", pools=quotas)],
        [node("n1", model="A100"), node("n2", model="H100")],
        pools={"a100": pool("a100", model="A100")},
    )
    world.wait("a", selector={"model": "A100"})
    world.wait("a", selector={"model": "H100"})
    assert [r.charge.pool for r in world.plan().releases] == ["a100", ""]


def test_a_pool_where_the_guarantee_holds_is_better_than_one_with_more_room() -> None:
    quotas = {"": (0, 20), "a100": (2, 8)}
    world = World(
        [tenant("a", pools=quotas)],
        [node("n1", model="A100"), node("n2", model="H100")],
        pools={"a100": pool("a100", model="A100")},
    )
    world.wait("a", many=3)
    planned = world.act()
    assert [r.charge.pool for r in planned.releases] == ["a100", "a100", ""]
    assert planned.releases[0].pins.node_selector == {"model": "A100"}


def test_a_tenant_has_nothing_in_a_pool_that_its_quota_leaves_out() -> None:
    world = World(
        [tenant("a", 8, 8)],
        [node("n1", model="A100")],
        pools={"a100": pool("a100", model="A100")},
    )
    (pod,) = world.wait("a")
    assert why(world.plan(), pod) is Why.NO_SUCH_NODE


def test_a_pod_of_no_tenant_waits_and_says_so() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    (pod,) = world.wait("elsewhere")
    planned = world.plan()
    assert why(planned, pod) is Why.NO_TENANT
    assert planned.waits[0].tenant == ""


def test_a_namespace_that_moves_takes_its_waiting_pods_along() -> None:
    world = World([tenant("a", 8, 8), tenant("b", 0, 0)], [node("n1")])
    (pod,) = world.wait("b")
    assert why(world.plan(), pod) is not None
    moved = replace(world.tenants["a"], namespaces=frozenset({"a", "b"}))
    world.set_tenants([moved])
    (release,) = world.plan().releases
    assert release.charge.tenant == "a"


def test_at_most_so_many_are_released_and_the_rest_is_not_said_to_wait() -> None:
    world = World([tenant("a", 8, 8)], [node("n1")])
    world.wait("a", many=5)
    planned = world.plan(limit=2)
    assert len(planned.releases) == 2
    assert not planned.waits
    assert not world.plan(limit=0).releases


def test_the_same_events_in_another_order_give_the_same_plan() -> None:
    def planned(backwards: bool) -> list[str]:
        world = World([tenant("a", 3, 8), tenant("b", 3, 8, cohort="x")], [node("n1", 7)])
        pods = [
            *world.wait("a", many=4),
            *world.wait("b", 2, many=2),
            *world.wait("b", many=3, priority=2),
        ]
        if backwards:
            for pod in pods:
                world.state.remove_pod(pod.uid)
            for pod in reversed(pods):
                world.state.put_pod(pod)
        return [release.pod.uid for release in world.plan().releases]

    assert planned(backwards=False) == planned(backwards=True)


def test_room_that_appears_is_used_at_once() -> None:
    world = World([tenant("a", 8, 8)], [node("n1", 1)])
    (first,) = world.run("a")
    world.wait("a")
    assert not world.plan().releases
    world.end(first)
    assert released(world.plan()) == ["a"]
    world.wait("a")
    world.state.put_node(node("n2", 1))
    assert len(world.plan().releases) == 2


def test_a_pod_that_costs_nothing_passes_a_ceiling_that_is_passed_already() -> None:
    world = World([tenant("a", 0, 8)], [node("n1")])
    world.run("a", many=6)
    world.set_tenants([tenant("a", 0, 4)])
    world.wait("a", shape=shape(0))
    assert released(world.plan()) == ["a"]


def test_an_idle_guarantee_may_be_lent_without_delay() -> None:
    lender = tenant("lender", 4, 4, cohort="c", lending=lending_at_once())
    world = World([lender, tenant("borrower", 0, 8, cohort="c")], [node("n1", 4)])
    world.wait("borrower", many=2)
    world.plan()
    assert len(world.plan().releases) == 2
