# SPDX-License-Identifier: Apache-2.0
"""Who goes: the laws and the order of giving back."""

from typing import Any

import pytest

from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Budget, Settings
from policies.quota.amount import Amount
from policies.quota.gangs import GangKey
from policies.quota.pods import Gang
from policies.quota.reclaim.outcome import Evict, Notify, ReclaimPlan, Unmet
from policies.quota.reclaim.snapshot import Disruption
from reconciler.reclaim.plan import plan_reclaim
from tests.support.reclaiming import NOW, POLICY, Scene, gang, notice, shape


def scene() -> Scene:
    """An owner who is guaranteed all of one node, and a borrower who is guaranteed nothing."""
    return Scene().node("n1").tenant("owner", gpus=8).tenant("borrower")


def victims(plan: ReclaimPlan) -> list[str]:
    assert plan.victims is not None
    return sorted(uid.removeprefix("uid-") for uid in plan.victims)


def plan_of(made: Scene) -> list[str]:
    return victims(plan_reclaim(made.snapshot()))


def unmet(made: Scene) -> list[Unmet]:
    plan = plan_reclaim(made.snapshot())
    assert plan.unmet is not None
    assert plan.victims == {}
    assert plan.commands == ()
    return list(plan.unmet.values())


def test_the_youngest_of_the_lowest_priority_that_are_borrowed_go_and_no_more() -> None:
    """Case C56: a lender asks for two; team-a uses four of which one is its own."""
    made = Scene().node("gpu-node-1", 6)
    made.tenant("team-t", gpus=2).tenant("team-a", gpus=1).tenant("team-b", gpus=1)
    for hour, name, priority in (
        (1, "a-old", 0),
        (2, "a-b1", 0),
        (3, "a-b2", 100),
        (4, "a-b3", 0),
    ):
        made.running("team-a", name, "gpu-node-1", age=(9 - hour) * 3600, priority=priority)
    made.running("team-b", "b-1", "gpu-node-1", age=60)
    made.running("", "ds-1", "gpu-node-1", namespace="kube-system", owner="DaemonSet/ds", age=30)
    made.wait("team-t", "t-1")
    made.wait("team-t", "t-2")
    assert plan_of(made) == ["a-b1", "a-b3"]


def test_nobody_goes_where_there_is_room() -> None:
    made = scene()
    for n in range(7):
        made.running("borrower", f"b{n}", "n1")
    made.wait("owner", "w")
    assert plan_of(made) == []


def test_nobody_is_pushed_below_a_guarantee() -> None:
    made = Scene().node("n1", 4).tenant("owner", gpus=2).tenant("borrower", gpus=2)
    for n in range(4):
        made.running("borrower", f"b{n}", "n1")
    for n in range(3):
        made.wait("owner", f"w{n}")
    plan = plan_reclaim(made.snapshot())
    assert len(victims(plan)) == 2
    assert plan.unmet == {"owner/w2": Unmet.GUARANTEE}


def test_a_pod_larger_than_what_is_borrowed_stays() -> None:
    made = Scene().node("n1", 4).tenant("owner", gpus=2).tenant("borrower", gpus=2)
    made.running("borrower", "b", "n1", gpus=3)
    made.running("borrower", "small", "n1", gpus=1)
    made.wait("owner", "w", gpus=2)
    assert unmet(made) == [Unmet.ROOM]


def test_shares_are_rounded_once_for_their_tenant_when_they_go() -> None:
    made = Scene().node("n1", 3).tenant("owner", gpus=1).tenant("borrower", gpus=0)
    third = Amount({3: 1})
    for n in range(3):
        made.running("borrower", f"b{n}", "n1", amount=third)
    made.wait("owner", "w")
    assert len(plan_of(made)) == 1


def test_only_the_same_cohort_gives() -> None:
    made = Scene().node("n1", 1).tenant("owner", gpus=1).tenant("other", cohort="other")
    made.running("other", "o", "n1")
    made.wait("owner", "w")
    assert unmet(made) == [Unmet.ROOM]


def test_another_cohort_gives_what_it_has_from_outside_all_guarantees() -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=2).tenant("other", cohort="other")
    for n in range(2):
        made.running("other", f"o{n}", "n1", age=3600 + n)
    made.wait("owner", "w0")
    made.wait("owner", "w1")
    made.excess_milli = {("other", ""): 1000}
    plan = plan_reclaim(made.snapshot())
    assert victims(plan) == ["o0"]
    assert plan.unmet == {"owner/w1": Unmet.ROOM}


def test_pods_of_a_tenant_that_is_no_more_give_to_every_cohort() -> None:
    made = Scene().node("n1", 1).tenant("owner", gpus=1).tenant("gone", cohort=None)
    made.running("gone", "g", "n1")
    made.wait("owner", "w")
    assert plan_of(made) == ["g"]


def test_pools_are_apart() -> None:
    made = Scene().node("n1", 1).tenant("owner", gpus=1, pool="a100")
    made.tenant("borrower").tenant("borrower", pool="a100")
    made.running("borrower", "b", "n1")
    made.wait("owner", "w", pool="a100")
    assert unmet(made) == [Unmet.ROOM]


@pytest.mark.parametrize(
    "kept",
    [
        {"shape": shape(exclusive=True)},
        {"reclaimable": False},
        {"mirror": True},
        {"owner": "DaemonSet/ds"},
        {"charged": False, "shape": shape(grace_seconds=3600)},
        {"charged": False, "do_not_disrupt": True},
    ],
)
def test_what_may_not_be_taken_back_stays(kept: dict[str, Any]) -> None:
    made = Scene().node("n1", 1).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "b", "n1", **kept)
    made.wait("owner", "w")
    assert unmet(made) == [Unmet.ROOM]


def test_a_wish_not_to_be_disrupted_does_not_keep_what_was_lent_before() -> None:
    """Case C64: a tenant may not make borrowed units unreclaimable for ever."""
    made = Scene().node("n1", 1).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "b", "n1", do_not_disrupt=True)
    made.wait("owner", "w")
    assert plan_of(made) == ["b"]


def test_the_tenant_of_the_lowest_priority_gives_first_however_full_others_are() -> None:
    made = Scene().node("n1", 4).tenant("owner", gpus=1)
    made.tenant("low", gpus=1, priority=-1).tenant("high", priority=5)
    made.running("low", "l0", "n1", priority=900)
    made.running("low", "l1", "n1", priority=900)
    made.running("high", "h0", "n1")
    made.running("high", "h1", "n1")
    made.wait("owner", "w")
    assert plan_of(made)[0].startswith("l")


def test_between_equals_the_fuller_one_gives_and_they_take_turns() -> None:
    made = Scene().node("n1", 6).tenant("owner", gpus=2)
    made.tenant("a", fair_milli=1000).tenant("b", fair_milli=1000)
    for n in range(3):
        made.running("a", f"a{n}", "n1")
        made.running("b", f"b{n}", "n1")
    made.wait("owner", "w0")
    made.wait("owner", "w1")
    names = plan_of(made)
    assert [name[0] for name in names] == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"priority": 0}, {"priority": 1}),
        ({"eviction_cost": -5}, {"eviction_cost": 0}),
        ({"age": 100}, {"age": 101}),
        ({"priority": 0, "eviction_cost": 9, "age": 9}, {"priority": 1, "age": 1}),
        ({"eviction_cost": 1, "age": 9}, {"eviction_cost": 2, "age": 1}),
    ],
)
def test_low_priority_then_low_cost_then_the_youngest_go_first(
    first: dict[str, int], second: dict[str, int]
) -> None:
    for one, other in ((first, second), (second, first)):
        made = Scene().node("n1", 2).tenant("owner", gpus=1).tenant("borrower")
        made.running("borrower", "p", "n1", **one)
        made.running("borrower", "q", "n1", **other)
        made.wait("owner", "w")
        assert plan_of(made) == (["p"] if one is first else ["q"])


def test_the_minimum_runtime_of_the_tenant_is_respected() -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=1)
    made.tenant("borrower", min_runtime_seconds=3600)
    made.running("borrower", "young", "n1", age=3599, priority=-5)
    made.running("borrower", "old", "n1", age=3600)
    made.wait("owner", "w")
    assert plan_of(made) == ["old"]


def test_nobody_preempts_below_the_priority_threshold() -> None:
    made = Scene(settings=Settings(priority_threshold=10)).node("n1", 1)
    made.tenant("owner", gpus=2).tenant("borrower")
    made.running("borrower", "b", "n1")
    made.wait("owner", "w", priority=9)
    assert unmet(made) == [Unmet.PRIORITY]
    made.wait("owner", "v", priority=10)
    assert plan_of(made) == ["b"]


def test_a_policy_that_is_switched_off_takes_nothing_back() -> None:
    off = ReclaimPolicy(enabled=False)
    made = Scene().node("n1", 1).tenant("owner", gpus=1, policy=off).tenant("borrower", policy=off)
    made.running("borrower", "b", "n1")
    made.wait("owner", "w")
    assert unmet(made) == [Unmet.DISABLED]


def test_work_that_could_never_be_taken_back_must_fit_beside_what_else_cannot() -> None:
    made = Scene().node("n1", 3).tenant("owner", gpus=2).tenant("borrower")
    made.running("owner", "fixed", "n1", reclaimable=False)
    made.running("borrower", "b0", "n1")
    made.running("borrower", "b1", "n1")
    made.wait("owner", "w", gpus=2, reclaimable=False)
    assert unmet(made) == [Unmet.GUARANTEE]


def test_what_is_ending_anyway_counts_first() -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "ending", "n1", deleted_at=NOW + 30)
    made.running("borrower", "b", "n1")
    made.wait("owner", "w")
    plan = plan_reclaim(made.snapshot())
    assert victims(plan) == []
    assert plan.reservations[0].places == {"uid-w": "n1"}


def test_what_was_asked_to_end_counts_before_its_watch_shows_it() -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=2).tenant("borrower", gpus=0)
    made.running("borrower", "asked", "n1")
    made.running("borrower", "b", "n1")
    made.going = frozenset({"uid-asked"})
    made.wait("owner", "w0")
    assert plan_of(made) == []
    made.wait("owner", "w1")
    assert plan_of(made) == ["b"]


@pytest.mark.parametrize("deleted_at", [NOW + 365 * 86400, NOW - 3600])
def test_who_takes_a_year_to_end_or_hangs_is_no_room_to_come(deleted_at: int) -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "ending", "n1", deleted_at=deleted_at)
    made.running("borrower", "b", "n1")
    made.wait("owner", "w")
    assert plan_of(made) == ["b"]


def test_room_must_be_on_one_node() -> None:
    made = Scene().node("n1", 4).node("n2", 4).tenant("owner", gpus=4).tenant("borrower")
    for n in range(4):
        made.running("borrower", f"x{n}", "n1", age=100 + n)
        made.running("borrower", f"y{n}", "n2", age=10 + n if n else 9000)
    made.wait("owner", "w", gpus=4)
    assert plan_of(made) == ["x0", "x1", "x2", "x3"]


def test_a_victim_that_frees_nothing_useful_is_never_chosen() -> None:
    made = Scene().node("n1", 1, zone="a").node("n2", 1, zone="b")
    made.tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "useless", "n1", age=1, priority=-100)
    made.running("borrower", "useful", "n2", age=9000)
    made.wait("owner", "w", shape=shape(1, {"zone": "b"}))
    assert plan_of(made) == ["useful"]


def test_one_large_pod_goes_rather_than_eight_small_ones() -> None:
    made = Scene().node("n1", 8).node("n2", 8).tenant("owner", gpus=8).tenant("borrower")
    for n in range(8):
        made.running("borrower", f"s{n}", "n1")
    made.running("borrower", "large", "n2", gpus=8)
    made.wait("owner", "w", gpus=8)
    assert plan_of(made) == ["large"]


def test_eight_small_ones_go_where_the_large_one_is_more_than_is_borrowed() -> None:
    made = Scene().node("n1", 8).tenant("owner", gpus=4).tenant("borrower", gpus=4)
    made.running("borrower", "large", "n1", gpus=6, age=1)
    made.running("borrower", "s0", "n1", age=10)
    made.running("borrower", "s1", "n1", age=20)
    made.wait("owner", "w", gpus=2)
    assert plan_of(made) == ["s0", "s1"]


def test_small_ones_on_the_way_do_not_keep_a_large_one_from_being_enough() -> None:
    made = Scene().node("n1", 3).tenant("owner", gpus=2).tenant("borrower", gpus=1)
    made.running("borrower", "small", "n1", age=1)
    made.running("borrower", "large", "n1", gpus=2)
    made.wait("owner", "w", gpus=2)
    assert plan_of(made) == ["large"]


def test_no_gang_is_torn_where_single_pods_will_do() -> None:
    made = Scene().node("n1", 4).tenant("owner", gpus=1).tenant("borrower")
    for n in range(3):
        made.running("borrower", f"g{n}", "n1", gang=gang("train", 3), age=1)
    made.running("borrower", "single", "n1", age=9000)
    made.wait("owner", "w")
    assert plan_of(made) == ["single"]


def test_the_surplus_of_a_gang_goes_first_and_only_that() -> None:
    made = Scene().node("n1", 5).tenant("owner", gpus=2).tenant("borrower")
    for n in range(4):
        made.running("borrower", f"g{n}", "n1", gang=gang("train", 2), age=1000 + n, priority=50)
    made.running("borrower", "single", "n1")
    made.wait("owner", "w0")
    made.wait("owner", "w1")
    assert plan_of(made) == ["g0", "g1"]


def test_the_surplus_of_a_pod_group_is_what_is_past_the_count_that_it_states() -> None:
    made = Scene().node("n1", 5).tenant("owner", gpus=2).tenant("borrower")
    group = Gang("train", None, is_pod_group=True)
    for n in range(4):
        made.running("borrower", f"g{n}", "n1", gang=group, age=1000 + n)
    made.running("borrower", "single", "n1")
    made.wait("owner", "w0")
    made.wait("owner", "w1")
    made.gang_sizes = {GangKey("borrower", "train", is_pod_group=True): 3}
    assert plan_of(made) == ["g0", "single"]


def test_a_gang_by_label_and_a_pod_group_of_its_name_are_two() -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "labelled", "n1", gang=gang("train", 1), age=1)
    made.running("borrower", "grouped", "n1", gang=Gang("train", None, is_pod_group=True))
    made.wait("owner", "w")
    assert plan_of(made) == ["labelled"]


def test_one_gang_goes_whole_rather_than_one_pod_from_each_of_many() -> None:
    made = Scene().node("n1", 8).tenant("owner", gpus=2).tenant("borrower")
    for n in range(8):
        made.running("borrower", f"g{n}", "n1", gang=gang(f"train-{n % 4}", 2), age=1000 + n % 4)
    made.wait("owner", "w0")
    made.wait("owner", "w1")
    assert plan_of(made) == ["g0", "g4"]


def test_a_gang_goes_from_all_of_its_nodes() -> None:
    made = Scene().node("n1", 1).node("n2", 1).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "g0", "n1", gang=gang("train", 2))
    made.running("borrower", "g1", "n2", gang=gang("train", 2))
    made.wait("owner", "w")
    assert plan_of(made) == ["g0", "g1"]


def test_a_gang_of_which_a_pod_must_stay_stays() -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "g0", "n1", gang=gang("train", 2), reclaimable=False)
    made.running("borrower", "g1", "n1", gang=gang("train", 2))
    made.wait("owner", "w")
    assert unmet(made) == [Unmet.ROOM]


def test_a_large_gang_is_not_ended_for_one_gpu_if_a_single_pod_of_an_emptier_tenant_can() -> None:
    made = Scene().node("n1", 8).tenant("owner", gpus=1)
    made.tenant("full", fair_milli=1000).tenant("emptier", fair_milli=1000)
    for n in range(7):
        made.running("full", f"g{n}", "n1", gang=gang("train", 7))
    made.running("emptier", "single", "n1")
    made.wait("owner", "w")
    assert plan_of(made) == ["single"]


def test_a_gang_that_waits_gets_all_of_its_room_or_none() -> None:
    made = Scene().node("n1", 2).node("n2", 1).tenant("owner", gpus=8).tenant("borrower")
    for n in range(2):
        made.running("borrower", f"b{n}", "n1")
    made.running("borrower", "kept", "n2", reclaimable=False)
    made.wait("owner", "w0", "w1", "w2")
    assert unmet(made) == [Unmet.ROOM]
    made.wait("owner", "v0", "v1")
    plan = plan_reclaim(made.snapshot())
    assert victims(plan) == ["b0", "b1"]
    assert plan.unmet == {"owner/w0": Unmet.ROOM}
    places = {r.group: dict(r.places) for r in plan.reservations}
    assert places == {"owner/v0": {"uid-v0": "n1", "uid-v1": "n1"}}


def test_a_plan_does_not_give_one_room_to_two() -> None:
    made = scene()
    for n in range(8):
        made.running("borrower", f"b{n}", "n1", age=n)
    for n in range(3):
        made.wait("owner", f"w{n}", gpus=2)
    assert plan_of(made) == [f"b{n}" for n in range(6)]


def test_who_is_not_needed_once_all_are_placed_is_spared() -> None:
    """The first takes a single pod; the second needs a large one, which has room for both."""
    made = Scene().node("n1", 1).node("n2", 4).tenant("owner", gpus=4).tenant("borrower")
    made.running("borrower", "single", "n1")
    made.running("borrower", "large", "n2", gpus=4)
    made.wait("owner", "w0")
    made.wait("owner", "w1", gpus=3)
    plan = plan_reclaim(made.snapshot())
    assert victims(plan) == ["large"]
    places = {r.group: dict(r.places) for r in plan.reservations}
    assert places == {"owner/w0": {"uid-w0": "n2"}, "owner/w1": {"uid-w1": "n2"}}


def test_a_notice_that_stands_is_kept_to() -> None:
    made = scene()
    for n in range(8):
        made.running("borrower", f"b{n}", "n1", age=100 + n)

    made.change(made.pods[("borrower", "")][5].pod, notice=notice(NOW + 60))
    made.wait("owner", "w")
    assert plan_of(made) == ["b5"]


def test_the_budget_bounds_what_is_planned_at_once() -> None:
    made = scene()
    made.settings = Settings(budget=Budget(per_tenant=2, per_seconds=600))
    for n in range(8):
        made.running("borrower", f"b{n}", "n1", age=n)
    for n in range(3):
        made.wait("owner", f"w{n}")
    plan = plan_reclaim(made.snapshot())
    assert victims(plan) == ["b0", "b1"]
    assert plan.unmet == {"owner/w2": Unmet.BUDGET}


@pytest.mark.parametrize(
    "budget", [Budget(per_tenant=3), Budget(per_node=3), Budget(per_cluster=3)]
)
def test_a_set_larger_than_the_budget_is_spread_over_time(budget: Budget) -> None:
    made = scene()
    made.settings = Settings(budget=budget)
    for n in range(8):
        pod = made.running("borrower", f"b{n}", "n1", age=n)

        made.change(pod, notice=notice(NOW))
    made.wait("owner", "w", gpus=8)
    evictions = [c for c in plan_reclaim(made.snapshot()).commands if isinstance(c, Evict)]
    assert [c.pod.name for c in evictions] == ["b0", "b1", "b2"]
    made.spent = [Disruption(NOW - 10, "borrower", "n1")] * 3
    plan = plan_reclaim(made.snapshot())
    assert plan.commands == ()
    assert plan.next_at == NOW + 590


def test_what_fits_a_budget_waits_until_it_fits_as_a_whole() -> None:
    made = scene()
    made.settings = Settings(budget=Budget(per_cluster=2))

    for n in range(2):
        pod = made.running("borrower", f"b{n}", "n1", gpus=4)
        made.change(pod, notice=notice(NOW))
    made.wait("owner", "w", gpus=8)
    made.spent = [Disruption(NOW - 10, "elsewhere", "n9")]
    assert plan_reclaim(made.snapshot()).commands == ()
    made.spent = [Disruption(NOW - 600, "elsewhere", "n9")]
    assert len(plan_reclaim(made.snapshot()).commands) == 2


def test_without_anything_to_do_a_plan_is_empty() -> None:
    made = scene()
    assert plan_reclaim(made.snapshot()) == ReclaimPlan(victims={}, unmet={})


def test_every_command_says_what_it_changes() -> None:
    made = scene()
    for n in range(8):
        made.running("borrower", f"b{n}", "n1", age=n)
    made.wait("owner", "w0", "w1")
    commands = plan_reclaim(made.snapshot()).commands
    assert [type(c) for c in commands] == [Notify, Notify]
    first, second = (c.why for c in commands if isinstance(c, Notify))
    assert str(first.beneficiary) == "owner/w0 (gang of 2) of tenant owner"
    assert first.rule == "ReclaimPolicy/main" == f"ReclaimPolicy/{POLICY.name}"
    assert (first.getter.before_milli, first.getter.after_milli) == (0, 2000)
    assert (first.giver.before_milli, first.giver.after_milli) == (8000, 7000)
    assert (second.giver.before_milli, second.giver.after_milli) == (7000, 6000)
    assert (first.generation, first.at, first.node) == ("g1", NOW, "n1")
