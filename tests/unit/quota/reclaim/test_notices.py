# SPDX-License-Identifier: Apache-2.0
"""When pods are told, when they go, and what disruption budgets change of it."""

from dataclasses import replace
from typing import Any

from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.reclaim import AfterPdbTimeout, ReclaimPolicy
from policies.model.settings import Budget, Settings
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.pods import Notice
from policies.quota.reclaim.outcome import Delete, Notify
from reconciler.reclaim.plan import plan_reclaim
from tests.support.reclaiming import NOW, Scene, gang, notice

TOLD = ReclaimPolicy(name="main", notice_seconds=120, pdb_timeout_seconds=600)
WEB = LabelSelector((Expression("app", Operator.IN, ("web",)),))


def scene(policy: ReclaimPolicy = TOLD, pods: int = 2, spare: int = 0, **borrower: Any) -> Scene:
    """A node full of a borrower's pods, but for some GPUs."""
    made = Scene().node("n1", pods + spare).tenant("owner", gpus=pods, policy=policy)
    made.tenant("borrower", policy=policy, **borrower)
    for n in range(pods):
        made.running("borrower", f"b{n}", "n1", age=3600 + n, labels={"app": "web"})
    return made


def pdb(allowed: int, name: str = "web") -> PodDisruptionBudget:
    return PodDisruptionBudget("borrower", name, WEB, min_available=1, disruptions_allowed=allowed)


def commands(made: Scene) -> list[tuple[str, str]]:
    return [(type(c).__name__, c.pod.name) for c in plan_reclaim(made.snapshot()).commands]


def told(made: Scene, name: str, evict_at: int, refused_at: int | None = None) -> None:
    pods = [held.pod for held in made.pods[("borrower", "")] if held.pod.name == name]
    made.change(pods[0], notice=notice(evict_at, refused_at))


def test_a_pod_is_told_first_for_whom_and_when() -> None:
    made = scene()
    made.wait("owner", "w")
    plan = plan_reclaim(made.snapshot())
    (command,) = plan.commands
    assert isinstance(command, Notify)
    assert command.notice == Notice("owner/w", "ReclaimPolicy/main", NOW, NOW + 120)
    assert plan.next_at == NOW + 120


def test_nothing_is_done_while_the_notice_runs() -> None:
    made = scene()
    told(made, "b0", NOW + 1)
    made.wait("owner", "w")
    plan = plan_reclaim(made.snapshot())
    assert plan.commands == ()
    assert plan.next_at == NOW + 1


def test_a_pod_goes_when_its_notice_is_over_and_it_is_still_needed() -> None:
    made = scene()
    told(made, "b0", NOW)
    made.wait("owner", "w")
    assert commands(made) == [("Evict", "b0")]


def test_even_without_a_notice_period_a_pod_is_told_first() -> None:
    made = scene(ReclaimPolicy(notice_seconds=0))
    made.wait("owner", "w")
    assert commands(made) == [("Notify", "b0")]


def test_a_notice_is_withdrawn_when_nobody_has_needed_the_room_for_a_while() -> None:
    made = scene()
    told(made, "b0", NOW - 5)
    made.unneeded_since = {"uid-b0": NOW - 10}
    assert commands(made) == [("Withdraw", "b0")]


def test_a_notice_stays_that_only_the_last_passes_did_not_need() -> None:
    made = scene()
    told(made, "b0", NOW - 5)
    plan = plan_reclaim(made.snapshot())
    assert (plan.commands, plan.next_at) == ((), NOW + 10)
    made.unneeded_since = {"uid-b0": NOW - 9}
    plan = plan_reclaim(made.snapshot())
    assert (plan.commands, plan.next_at) == ((), NOW + 1)


def test_after_taking_over_nobody_goes_before_the_budgets_while_has_passed() -> None:
    made = scene()
    told(made, "b0", NOW)
    made.wait("owner", "w")
    made.budget_used_up_until = NOW + 600
    assert commands(made) == [("Evict", "b0")]  # no bound is set
    made.settings = Settings(budget=Budget(per_node=5))
    plan = plan_reclaim(made.snapshot())
    assert (plan.commands, plan.next_at) == ((), NOW + 600)
    made.budget_used_up_until = NOW
    assert commands(made) == [("Evict", "b0")]


def test_no_notice_is_withdrawn_from_a_pod_that_is_going() -> None:
    made = scene()
    told(made, "b0", NOW - 5)
    made.going = frozenset({"uid-b0"})
    assert commands(made) == []


def test_a_notice_does_not_cut_the_minimum_runtime_short() -> None:
    made = scene(min_runtime_seconds=3700)
    made.wait("owner", "w")
    (command,) = plan_reclaim(made.snapshot()).commands
    assert isinstance(command, Notify)
    assert command.pod.name == "b0"
    assert command.notice.evict_at == NOW + 120
    made = scene(min_runtime_seconds=3700)
    told(made, "b0", NOW)
    made.wait("owner", "w")
    assert ("Evict", "b0") not in commands(made)


def test_all_who_go_for_one_go_together_when_the_last_has_had_its_notice() -> None:
    made = scene()
    told(made, "b0", NOW - 60)
    told(made, "b1", NOW + 60)
    made.wait("owner", "w", gpus=2)
    assert commands(made) == []
    told(made, "b1", NOW)
    assert commands(made) == [("Evict", "b0"), ("Evict", "b1")]


def test_another_one_goes_where_a_budget_allows_none() -> None:
    made = scene(spare=1)
    made.running("borrower", "free", "n1", age=99999)
    made.pdbs = [pdb(0)]
    made.wait("owner", "w")
    assert commands(made) == [("Notify", "free")]


def test_a_budget_that_allows_one_gives_one() -> None:
    made = scene(pods=3, spare=1)
    made.running("borrower", "free", "n1", age=99999)
    made.pdbs = [pdb(1)]
    made.wait("owner", "w0", gpus=2)
    assert commands(made) == [("Notify", "b0"), ("Notify", "free")]


def test_who_was_refused_is_left_for_another() -> None:
    made = scene()
    told(made, "b0", NOW - 5, refused_at=NOW - 1)
    made.refused = {"uid-b0": NOW + 10}
    made.wait("owner", "w")
    assert commands(made) == [("Notify", "b1")]
    made.unneeded_since = {"uid-b0": NOW - 10}
    assert commands(made) == [("Withdraw", "b0"), ("Notify", "b1")]


def test_where_there_is_no_other_the_refused_one_is_tried_again_later() -> None:
    made = scene(pods=1)
    told(made, "b0", NOW - 5, refused_at=NOW - 1)
    made.refused = {"uid-b0": NOW + 10}
    made.wait("owner", "w")
    plan = plan_reclaim(made.snapshot())
    assert plan.commands == ()
    assert plan.next_at == NOW + 10
    made.refused = {"uid-b0": NOW}
    assert commands(made) == [("Evict", "b0")]


def test_a_pod_that_budgets_have_kept_for_too_long_is_deleted() -> None:
    made = scene(pods=1)
    told(made, "b0", NOW - 700, refused_at=NOW - 599)
    made.pdbs = [pdb(0)]
    made.wait("owner", "w")
    assert commands(made) == [("Evict", "b0")]
    told(made, "b0", NOW - 700, refused_at=NOW - 600)
    (command,) = plan_reclaim(made.snapshot()).commands
    assert isinstance(command, Delete)
    assert command.refused_at == NOW - 600


def test_a_policy_may_keep_what_budgets_protect() -> None:
    made = scene(replace(TOLD, after_pdb_timeout=AfterPdbTimeout.KEEP), pods=1)
    told(made, "b0", NOW - 70000, refused_at=NOW - 60000)
    made.pdbs = [pdb(0)]
    made.wait("owner", "w")
    assert commands(made) == [("Evict", "b0")]


def test_those_whom_a_budget_may_keep_are_tried_before_anyone_ends_in_vain() -> None:
    made = scene()
    told(made, "b0", NOW - 1)
    told(made, "b1", NOW - 1)
    made.pdbs = [pdb(1)]
    made.wait("owner", "w", gpus=2)
    assert commands(made) == [("Evict", "b1")]


def test_a_pod_that_several_budgets_cover_comes_last() -> None:
    made = scene(spare=1)
    made.running("borrower", "free", "n1", age=99999)
    made.pdbs = [pdb(5), pdb(5, name="web-too")]
    made.wait("owner", "w")
    assert commands(made) == [("Notify", "free")]


def test_a_pod_on_no_node_goes_whatever_its_budgets_say() -> None:
    """The Eviction API asks no budget about pods that are pending."""
    made = Scene().node("n1", 1).tenant("owner", gpus=1).tenant("borrower")
    made.running("borrower", "unbound", "", labels={"app": "web"}, notice=notice(NOW))
    made.pdbs = [pdb(0)]
    made.wait("owner", "w")
    assert commands(made) == [("Evict", "unbound")]


def test_a_gang_is_told_and_goes_as_one() -> None:
    made = Scene().node("n1", 2).tenant("owner", gpus=1).tenant("borrower")
    for n in range(2):
        made.running("borrower", f"g{n}", "n1", gang=gang("train", 2))
    made.wait("owner", "w")
    assert commands(made) == [("Notify", "g0"), ("Notify", "g1")]
    for name in ("g0", "g1"):
        told(made, name, NOW)
    assert commands(made) == [("Evict", "g0"), ("Evict", "g1")]
