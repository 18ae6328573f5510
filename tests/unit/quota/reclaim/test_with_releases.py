# SPDX-License-Identifier: Apache-2.0
"""Reclaim beside the release planner, in simulated time."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Budget
from policies.model.tenant import Tenant
from policies.quota.planning.values import Why
from policies.quota.pods import QuotaPod
from policies.quota.reclaim.outcome import Unmet
from policies.quota.reserves import Reserve
from tests.support.planning import World, lending_at_once, node, pool, tenant, why
from tests.support.reclaim_world import Cycle

NOTICE = 120


def world(**borrower: object) -> World:
    """16 GPUs on two nodes: 8 the owner's, 4 the borrower's, who may have all."""
    lending = {"cohort": "main", "lending": lending_at_once()}
    return World(
        [
            tenant("owner", 8, 16, **lending),
            tenant("borrower", 4, 16, **{**lending, **borrower}),
        ],
        [node("n1"), node("n2")],
    )


def filled(made: World, **cycle: object) -> Cycle:
    """Have the borrower use everything."""
    made.idle()
    found = Cycle(made, **cycle)  # type: ignore[arg-type] # fields of Cycle
    made.run("borrower", many=16)
    found.step()
    assert len(found.live("borrower")) == 16
    return found


def counts(cycle: Cycle, steps: int) -> Iterator[tuple[int, int]]:
    for _ in range(steps):
        cycle.step()
        yield len(cycle.live("owner")), len(cycle.live("borrower"))


def test_a_guarantee_is_back_within_notice_and_grace() -> None:
    made = world()
    cycle = filled(made, grace_seconds=30)
    began = made.now
    made.wait("owner", many=8)
    while len(cycle.live("owner")) < 8:
        cycle.step()
        assert made.now <= began + NOTICE + 30 + 10
    assert len(cycle.evicted) == 8
    assert len(cycle.live("borrower")) == 8


def test_nothing_is_evicted_and_let_go_again_in_a_circle() -> None:
    cycle = filled(world())
    cycle.world.wait("owner", many=8)
    cycle.run(200)
    assert len(cycle.evicted) == 8
    assert (len(cycle.live("owner")), len(cycle.live("borrower"))) == (8, 8)
    assert cycle.last.commands == ()


def test_no_tenant_is_ever_below_its_guarantee_by_reclaim() -> None:
    cycle = filled(world())
    cycle.world.wait("owner", many=16)
    assert all(borrower >= 4 for _, borrower in counts(cycle, 120))
    assert len(cycle.live("owner")) == 8


def test_a_large_pod_gets_a_node_of_its_own_and_keeps_it() -> None:
    cycle = filled(world())
    made = cycle.world
    big = made.wait("owner", gpus=8)[0]
    made.wait("borrower", many=20)
    cycle.run(60)
    assert [pod.uid for pod in cycle.live("owner")] == [big.uid]
    assert len(cycle.evicted) == 8
    assert len({pod.node for _, pod in cycle.evicted}) == 1


def test_a_gang_gets_its_room_all_at_once() -> None:
    cycle = filled(world())
    cycle.world.wait("owner", gpus=4, many=2, gang=("train", 2))
    cycle.run(60)
    assert len(cycle.live("owner")) == 2
    assert len(cycle.evicted) == 8


def test_notices_are_withdrawn_when_the_beneficiary_leaves() -> None:
    cycle = filled(world())
    waiting = cycle.world.wait("owner", many=3)
    cycle.run(3)
    assert sum(pod.notice is not None for pod in cycle.live("borrower")) == 3
    cycle.world.end(*waiting)
    cycle.run(3)
    assert all(pod.notice is None for pod in cycle.live("borrower"))
    cycle.run(40)
    assert cycle.evicted == []


def test_a_beneficiary_that_drops_out_of_a_pass_costs_its_victims_no_new_notice() -> None:
    cycle = filled(world())
    made = cycle.world
    (owner,) = made.wait("owner")
    cycle.run(3)
    (before,) = [pod.notice for pod in cycle.live("borrower") if pod.notice is not None]
    made.end(owner)
    cycle.step()
    made.state.put_pod(owner)
    cycle.run(3)
    assert [pod.notice for pod in cycle.live("borrower") if pod.notice is not None] == [before]


def test_room_that_comes_free_by_itself_spares_the_noticed() -> None:
    cycle = filled(world())
    cycle.world.wait("owner", many=1)
    cycle.run(3)
    untold = [pod for pod in cycle.live("borrower") if pod.notice is None]
    cycle.world.end(untold[0])
    cycle.run(60)
    assert cycle.evicted == []
    assert len(cycle.live("owner")) == 1


@pytest.mark.parametrize("per_tenant", [1, 3])
def test_the_budget_is_never_exceeded_in_any_while(per_tenant: int) -> None:
    made = world()
    made.settings = replace(made.settings, budget=Budget(per_tenant=per_tenant, per_seconds=100))
    made.set_tenants(made.tenants.values())
    cycle = filled(made)
    made.wait("owner", many=8)
    cycle.run(400)
    times = [at for at, _ in cycle.evicted]
    assert len(times) == 8
    for at in times:
        assert sum(at <= other < at + 100 for other in times) <= per_tenant
    assert len(cycle.live("owner")) == 8


def test_work_within_its_guarantee_waits_for_nothing_but_its_notice() -> None:
    cycle = filled(world())
    pod = cycle.world.wait("owner")[0]
    cycle.step()
    assert why(cycle.world.plan(), pod) is Why.NO_ROOM
    assert list(cycle.last.victims or {}) != []


def test_a_borrower_is_never_a_beneficiary() -> None:
    cycle = filled(world())
    cycle.world.wait("borrower", many=5)
    cycle.run(40)
    assert cycle.evicted == []


def test_the_policy_of_the_cohort_says_how_long_the_notice_is() -> None:
    made = world()
    cycle = filled(made)
    policies = made.state.policies
    quick = ReclaimPolicy(name="quick", cohorts=("main",), notice_seconds=10)
    made.state.set_policies(replace(policies, reclaim_policies=(quick,)))
    made.wait("owner")
    began = made.now
    while not cycle.evicted:
        cycle.step()
    assert cycle.evicted[0][0] - began <= 15


@pytest.mark.parametrize("exclusive", [False, True])
def test_pods_that_were_let_go_without_room_get_back_what_is_guaranteed(*, exclusive: bool) -> None:
    """In a pool that an autoscaler serves, pods are released before there are nodes for them."""
    lending = {"cohort": "main", "lending": lending_at_once()}
    made = World(
        [tenant("owner", 8, 16, **lending), tenant("borrower", 4, 16, **lending)],
        [node("n1"), node("n2")],
        release_without_nodes=True,
    )
    cycle = filled(made)
    made.wait("owner", many=8, form={"exclusive": exclusive})
    cycle.run(60)
    assert sum(bool(pod.node) for pod in cycle.live("owner")) == 8
    placed = [pod for pod in cycle.live("borrower") if pod.node]
    assert len(placed) == 8


def test_the_minimum_runtime_ends_before_the_notice_does_and_no_notice_flickers() -> None:
    cycle = filled(world(min_runtime_seconds=200))
    cycle.run(10)
    cycle.world.wait("owner")
    told: list[int] = []
    while not cycle.evicted:
        cycle.step()
        told.append(sum(pod.notice is not None for pod in cycle.live("borrower")))
    began = told.index(1)
    assert set(told[began:-1]) == {1}
    at, pod = cycle.evicted[0]
    assert pod.charge is not None
    assert at >= pod.charge.at + 200


def test_pods_that_skipped_the_gate_give_back_too() -> None:
    cycle = filled(world())
    made = cycle.world
    for pod in cycle.live("borrower"):
        made.state.put_pod(replace(pod, charge=None))
    made.wait("owner", many=8)
    cycle.run(40)
    assert len(cycle.live("owner")) == 8
    assert len(cycle.evicted) == 8


def test_pods_of_a_tenant_that_was_deleted_give_back_too() -> None:
    cycle = filled(world())
    made = cycle.world
    made.set_tenants([made.tenants["owner"]])
    made.wait("owner", many=8)
    cycle.run(40)
    assert len(cycle.live("owner")) == 8
    assert len(cycle.evicted) == 8


def test_the_example_of_the_documentation_goes_as_it_says() -> None:
    made = World(
        [tenant("research", 8, 16, cohort="main"), tenant("serving", 4, 16, cohort="main")],
        [node("n1"), node("n2")],
    )
    made.idle(1860)
    cycle = Cycle(made, grace_seconds=30)
    made.wait("serving", many=16, owner_uid="deployment")
    cycle.step()
    assert len(cycle.live("serving")) == 16
    made.wait("research", many=6)
    began = made.now
    while len(cycle.live("research")) < 6:
        cycle.step()
        assert made.now <= began + NOTICE + 30 + 10
    assert (len(cycle.live("serving")), len(cycle.evicted)) == (10, 6)
    again = [pod for pod in made.state.pods() if pod.is_waiting]
    assert len(again) == 6
    assert {why(made.plan(), pod) for pod in again} == {Why.TAKEN_BACK}
    made.now += 60
    assert {why(made.plan(), pod) for pod in again} == {Why.BORROWING}


def kept_from(**settings: int) -> tuple[Cycle, QuotaPod, QuotaPod]:
    """An owed pod that nothing will make room for keeps a node, and a smaller one is owed too."""
    lending = {"cohort": "main", "lending": lending_at_once()}
    tenants = [
        tenant("large", 8, 16, **lending),
        tenant("small", 8, 16, **lending),
        tenant("borrower", 0, 16, **lending),
    ]
    made = World(tenants, [node("n1", zone="a"), node("n2", zone="b")], **settings)
    made.idle()
    for pod in made.run("small", many=4, selector={"zone": "a"}):
        made.bind(pod, "n1")
    for pod in made.run("borrower", many=8, selector={"zone": "b"}):
        made.bind(pod, "n2")
    (large,) = made.wait("large", 8, selector={"zone": "a"})
    made.now += 600
    (small,) = made.wait("small", 1)
    return Cycle(made), large, small


def test_room_that_is_kept_for_another_is_not_counted_on_and_someone_goes_instead() -> None:
    cycle, large, small = kept_from()
    began = cycle.world.now
    cycle.step()
    assert why(cycle.world.plan(), small) is Why.RESERVED
    assert cycle.last.unmet == {f"large/{large.name}": Unmet.ROOM}
    assert set((cycle.last.victims or {}).values()) == {f"small/{small.name}"}
    while cycle.world.pod(small.uid).is_waiting:
        cycle.step()
        assert cycle.world.now <= began + NOTICE + 10 + 10
    assert [pod.node for _, pod in cycle.evicted] == ["n2"]


def test_room_that_is_no_longer_kept_spares_who_was_to_go_for_it() -> None:
    cycle, _, small = kept_from(reserve_for_seconds=60)
    cycle.run(16)
    assert not cycle.world.pod(small.uid).is_waiting
    cycle.run(60)
    assert cycle.evicted == []
    assert all(pod.notice is None for pod in cycle.live("borrower"))


def test_who_is_held_by_a_reservation_and_cannot_be_made_room_for_is_told_so() -> None:
    cycle, large, small = kept_from()
    cycle.world.state.remove_node("n2")
    cycle.step()
    assert cycle.last.unmet == {
        f"large/{large.name}": Unmet.ROOM,
        f"small/{small.name}": Unmet.KEPT,
    }


def test_room_is_freed_and_kept_on_one_and_the_same_node() -> None:
    """The planner would keep the node where least is lacking, which nobody can leave."""
    cycle, _, _ = kept_from()
    made = cycle.world
    made.end(*[pod for pod in made.state.pods() if pod.is_waiting])
    (large,) = made.wait("large", 8)
    cycle.step()
    made.wait("borrower", many=2)
    cycle.step()
    assert [(room.uid, room.node) for room in made.plan().kept] == [(large.uid, "n2")]
    cycle.run(40)
    assert made.pod(large.uid).node == "n2"
    assert len(cycle.evicted) == 8
    assert len(cycle.live("borrower")) == 2


def test_an_owed_pod_that_nothing_can_make_room_for_does_not_keep_others_from_theirs() -> None:
    lending = {"cohort": "main", "lending": lending_at_once()}
    made = World(
        [tenant("owner", 4, 8, **lending), tenant("borrower", 0, 8, **lending)],
        [node("n1", 4, zone="lost"), node("n2", 4, zone="borrowed")],
    )
    made.idle()
    cycle = Cycle(made)
    for pod in made.run("borrower", many=4, selector={"zone": "borrowed"}):
        made.bind(pod, "n2")
    made.state.put_node(replace(made.state.nodes["n1"], ready=False))
    (large,) = made.wait("owner", 4, selector={"zone": "lost"})
    small = made.wait("owner", many=2, selector={"zone": "borrowed"})
    cycle.step()
    assert (cycle.last.unmet or {})[f"owner/{large.name}"] is Unmet.ROOM
    cycle.run(40)
    assert {pod.uid for pod in cycle.live("owner")} == {pod.uid for pod in small}
    assert len(cycle.evicted) == 2


_LENDING: Final[Mapping[str, Any]] = {"cohort": "main", "lending": lending_at_once()}


def _half_lost(*tenants: Tenant) -> tuple[World, Cycle]:
    """Have a borrower on all four GPUs of one node, and another node that was lost since."""
    made = World(tenants, [node("n1", 4), node("n2", 4)])
    made.idle()
    for pod in made.run("borrower", many=4):
        made.bind(pod, "n1")
    made.state.remove_node("n2")
    return made, Cycle(made)


def test_nobody_goes_for_room_that_is_kept_for_another_cohort() -> None:
    made, cycle = _half_lost(
        tenant("other", 4, 8, cohort="other"),
        tenant("owner", 4, 8, **_LENDING),
        tenant("borrower", 0, 8, **_LENDING),
    )
    (large,) = made.wait("other", 3)
    made.now += 600
    (small,) = made.wait("owner")
    cycle.step()
    assert [(room.uid, room.node) for room in made.plan().kept] == [(large.uid, "n1")]
    assert not cycle.last.victims
    assert (cycle.last.unmet or {})[f"owner/{small.name}"] is Unmet.KEPT


def test_who_keeps_a_node_has_room_made_there_though_others_of_its_kind_came_first() -> None:
    made, cycle = _half_lost(
        tenant("keeper", 4, 8, **_LENDING),
        tenant("first", 4, 8, priority=5, **_LENDING),
        tenant("borrower", 0, 8, min_runtime_seconds=1000, **_LENDING),
    )
    (kept_for,) = made.wait("keeper", 2)
    made.now += 700
    cycle.step()
    (first,) = made.wait("first", 2)
    cycle.step()
    assert [(room.uid, room.node) for room in made.plan().kept] == [(kept_for.uid, "n1")]
    assert set((cycle.last.unmet or {}).values()) == {Unmet.KEPT, Unmet.ROOM}
    made.now += 300
    cycle.run(2)
    assert set((cycle.last.victims or {}).values()) == {
        f"first/{first.name}",
        f"keeper/{kept_for.name}",
    }


def test_nobody_goes_for_those_after_a_gang_that_the_budget_holds() -> None:
    made = World(
        [
            tenant("owner", 5, 8, cohort="main", lending=lending_at_once()),
            tenant("borrower", 0, 8, cohort="main", lending=lending_at_once()),
        ],
        [node("n1", 8)],
    )
    made.settings = replace(made.settings, budget=Budget(per_tenant=4, per_seconds=300))
    made.set_tenants(made.tenants.values())
    made.idle()
    cycle = Cycle(made)
    for pod in made.run("borrower", many=8):
        made.bind(pod, "n1")
    (first,) = made.wait("owner", priority=10)
    made.wait("owner", many=4, priority=5, gang=("train", 4))
    made.wait("owner", many=4)
    cycle.step()
    assert set((cycle.last.victims or {}).values()) == {f"owner/{first.name}"}
    assert (cycle.last.unmet or {})["owner/train"] is Unmet.BUDGET
    cycle.run(120)
    assert {pod.priority for pod in cycle.live("owner")} == {10, 5}
    assert len(cycle.evicted) == len(cycle.live("owner")) == 5


def test_room_that_is_made_in_several_pools_for_pods_alike_is_kept_in_each() -> None:
    owns, borrows = {"": (2, 8), "a100": (2, 8)}, {"": (0, 8), "a100": (0, 8)}
    lending: dict[str, Any] = {"cohort": "main", "lending": lending_at_once()}
    inside = {"zone": "in"}
    made = World(
        [
            tenant("owner", pools=owns, **lending),
            tenant("borrower", pools=borrows, **lending),
            tenant("third", pools=borrows, **lending),
        ],
        [
            node("n1", 2, model="A100", **inside),
            node("n2", 2, **inside),
            *(node(f"small{number}", 1) for number in range(6)),
        ],
        pools={"a100": pool("a100", model="A100")},
    )
    made.idle()
    cycle = Cycle(made)
    made.run("borrower", many=4, selector=inside)
    cycle.step()
    large = made.wait("owner", 2, many=2)
    made.wait("third", many=10, selector=inside)
    cycle.run(2)
    kept = {room.node for room in made.plan().kept if room.is_repaid}
    assert kept == {"n1", "n2"}
    (early,) = [pod for pod in cycle.live("borrower") if pod.node == "n2"][:1]
    made.end(early)
    cycle.run(60)
    assert {pod.uid for pod in cycle.live("owner")} == {pod.uid for pod in large}
    assert len(cycle.evicted) == 3


def test_of_rooms_in_two_pools_the_one_that_was_said_last_is_kept() -> None:
    made = World(
        [tenant("owner", pools={"": (2, 8), "a100": (2, 8)})],
        [node("n1", 2, model="A100"), node("n2", 2)],
        pools={"a100": pool("a100", model="A100")},
    )
    (pod,) = made.wait("owner")
    for name, until, on in (("a100", made.now + 10, "n1"), ("", made.now + 11, "n2")):
        made.state.reserve_for("owner", name, Reserve(1000, until, {pod.uid: on}))
    (release,) = made.plan().releases
    assert (release.pod.uid, release.node, release.charge.pool) == (pod.uid, "n2", "")


@pytest.mark.parametrize("selector", [{"zone": "here"}, {}])
def test_a_guarantee_comes_back_in_the_pool_where_room_can_be_made(
    selector: dict[str, str],
) -> None:
    """Its quota would let it go into the default pool first, where nobody can make any."""
    lending: dict[str, Any] = {"cohort": "main", "lending": lending_at_once()}
    made = World(
        [
            tenant("owner", pools={"": (4, 8), "a100": (4, 8)}, **lending),
            tenant("other", pools={"": (4, 8)}, **lending),
            tenant("borrower", pools={"a100": (0, 8)}, **lending),
        ],
        [node("n1", 4, model="A100", zone="here"), node("n2", 4, zone="there")],
        pools={"a100": pool("a100", model="A100")},
    )
    made.idle()
    cycle = Cycle(made)
    made.run("other", many=4)
    made.run("borrower", many=4)
    cycle.step()
    began = made.now
    owners = made.wait("owner", many=3, selector=selector)
    while len(cycle.live("owner")) < len(owners):
        cycle.step()
        assert made.now <= began + NOTICE + 10 + 10
    assert {pod.node for pod in cycle.live("owner")} == {"n1"}
    assert len(cycle.evicted) == 3
