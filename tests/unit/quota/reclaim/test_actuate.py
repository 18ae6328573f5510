# SPDX-License-Identifier: Apache-2.0
"""What is sent for each command, what is declared before, and what is remembered of the answers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from policies.model.settings import Mode
from policies.quota.notice import read_notice
from policies.quota.pods import Notice, QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import (
    Beneficiary,
    Change,
    Command,
    Delete,
    Evict,
    Forewarn,
    GiveUp,
    Notify,
    Why,
    Withdraw,
)
from reconciler.kube.errors import (
    ApiError,
    BudgetError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from reconciler.kube.intents import MAX_INTENTS, Intent, IntentKind
from reconciler.kube.resources import Target
from reconciler.reclaim.actuate import Duties, ReclaimActuator
from reconciler.reclaim.words import ReclaimReason, Told
from reconciler.runtime.audit_eviction import EvictionEntry, Outcome, to_line
from tests.support.reclaiming import NOW, Scene, notice

WHY = Why(
    beneficiary=Beneficiary("owner/w", "owner", ("uid-w",), 1000),
    rule="ReclaimPolicy/main",
    getter=Change("owner", "", 8000, 0, 1000),
    giver=Change("borrower", "", 2000, 8000, 7000),
    node="n1",
    generation="7c1f",
    at=NOW,
)


def pod(**more: object) -> QuotaPod:
    made = Scene().running("borrower", "b", "n1")
    return replace(made, **more)  # type: ignore[arg-type] # fields of QuotaPod


class World:
    """An API server, a Lease and a log that note what they are told, in order."""

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []
        self.error: ApiError | None = None
        self.events: list[Told] = []
        self.entries: list[EvictionEntry] = []
        self.held = True
        self.outstanding = 0
        self.memory = Memory()
        self.absorbed: list[Mapping[str, object]] = []
        duties = Duties(
            self, self, self, self.memory, lambda: self.held, self.absorbed.append, lambda: NOW
        )
        self.actuator = ReclaimActuator(duties, lambda _command: 60)

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        self.said.append(("patch", target.name, body))
        self._fail()
        return body

    async def evict(self, target: Target, *, uid: str, version: str) -> None:
        self.said.append(("evict", target.namespace, target.name, uid, version))
        self._fail()

    async def delete(self, target: Target, *, uid: str, version: str) -> Mapping[str, object]:
        self.said.append(("delete", target.namespace, target.name, uid, version))
        self._fail()
        return {}

    async def declare(self, batch: Iterable[Intent]) -> None:
        self.said.append(("declare", *((i.kind, i.uid, i.version) for i in batch)))

    def fitting(self, batch: Sequence[Intent]) -> int:
        return min(len(batch), MAX_INTENTS - self.outstanding)

    def settle(self, uid: str) -> None:
        self.said.append(("settle", uid))

    def event(self, pod: QuotaPod, said: Told) -> None:
        assert pod.name == "b"
        self.events.append(said)

    def record(self, entry: EvictionEntry) -> None:
        self.entries.append(entry)

    def outcomes(self) -> list[Outcome]:
        return [entry.outcome for entry in self.entries]

    def kinds(self) -> list[object]:
        return [said[0] for said in self.said]

    def going(self) -> frozenset[str]:
        return self.memory.remembered(NOW, 600).going

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture
def world() -> World:
    return World()


async def test_a_notice_is_written_if_the_pod_is_as_it_was(world: World) -> None:
    given = Notice("owner/w", "ReclaimPolicy/main", NOW, NOW + 120)
    await world.actuator.carry_out([Notify(pod(), given, WHY)], Mode.ENFORCE)
    ((_, name, body),) = world.said
    assert name == "b"
    metadata = body["metadata"]  # type: ignore[index] # it is the body of the patch
    assert metadata["resourceVersion"] == "7"
    assert read_notice(metadata["annotations"]["state.sluice.dev/notice"]) == given
    assert world.absorbed == [body]
    (said,) = world.events
    assert said.reason is ReclaimReason.NOTICE
    for part in ("owner/w of tenant owner", "2031-05-17T12:02:00Z", "ReclaimPolicy/main", "7c1f"):
        assert part in said.note


async def test_a_notice_that_is_withdrawn_leaves_no_annotation(world: World) -> None:
    await world.actuator.carry_out([Withdraw(pod())], Mode.ENFORCE)
    ((_, _, body),) = world.said
    annotations = body["metadata"]["annotations"]  # type: ignore[index] # likewise
    assert annotations == {"state.sluice.dev/notice": None}
    assert world.events[0].reason is ReclaimReason.WITHDRAWN


async def test_an_eviction_is_declared_first_and_names_uid_and_version(world: World) -> None:
    """Case C84: a pod that was replaced under its name is not the victim."""
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    assert world.said == [
        ("declare", (IntentKind.EVICTION, "uid-b", "7")),
        ("evict", "borrower", "b", "uid-b", "7"),
        ("settle", "uid-b"),
    ]
    assert world.outcomes() == [Outcome.DONE]
    assert world.going() == {"uid-b"}
    (spent,) = world.memory.remembered(NOW, 600).spent
    assert (spent.tenant, spent.node, spent.at) == ("borrower", "n1", NOW)
    assert world.memory.held_until(pod()) == NOW + 60


async def test_a_deletion_names_uid_and_version_too(world: World) -> None:
    await world.actuator.carry_out([Delete(pod(), WHY, NOW - 600)], Mode.ENFORCE)
    assert world.kinds() == ["declare", "delete", "settle"]
    assert world.said[1] == ("delete", "borrower", "b", "uid-b", "7")
    assert world.events[0].reason is ReclaimReason.DELETED


async def test_what_runs_of_a_torn_gang_is_evicted_too(world: World) -> None:
    command = GiveUp(pod(), "borrower", "2 of gang x run, and the rest waits", "g1", NOW)
    await world.actuator.carry_out([command], Mode.ENFORCE)
    assert world.kinds() == ["declare", "evict", "settle"]
    assert world.events == [
        Told(ReclaimReason.GANG, "evicted: 2 of gang x run, and the rest waits", is_warning=True)
    ]


async def test_what_runs_of_a_torn_gang_is_told_first(world: World) -> None:
    told = notice(evict_at=NOW + 120)
    end = GiveUp(pod(), "borrower", "2 of gang x run, and the rest waits", "g1", NOW)
    await world.actuator.carry_out([Forewarn(end, told)], Mode.ENFORCE)
    assert world.kinds() == ["patch"]
    (said,) = world.events
    assert said.note == "will be evicted at 2031-05-17T12:02:00Z: " + end.text
    line = json.loads(to_line(world.entries[0]))
    assert (line["action"], line["rule"]) == ("Forewarn", "gangTimeout")
    assert (line["because"], line["evictAt"]) == (end.text, "2031-05-17T12:02:00Z")


@pytest.mark.parametrize("error", [ConflictError("changed"), NotFoundError("gone")])
async def test_a_pod_that_has_changed_is_planned_for_again(world: World, error: ApiError) -> None:
    world.error = error
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    assert world.kinds() == ["declare", "evict", "settle"]
    assert world.outcomes() == [Outcome.STALE]
    assert world.events == []
    assert world.going() == frozenset()
    assert world.memory.remembered(NOW, 600).spent == ()


@pytest.mark.parametrize(
    "error",
    [
        BudgetError("Cannot evict pod as it would violate the pod's disruption budget."),
        UnavailableError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource "
            "does not support.",
            status=500,
            may_have_happened=True,
        ),
    ],
)
async def test_a_refusal_by_budgets_is_remembered_on_the_pod(world: World, error: ApiError) -> None:
    world.error = error
    await world.actuator.carry_out([Evict(pod(notice=notice(NOW)), WHY)], Mode.ENFORCE)
    assert world.kinds() == ["declare", "evict", "settle", "patch"]
    annotations = world.said[3][2]["metadata"]["annotations"]  # type: ignore[index] # a patch
    told = read_notice(annotations["state.sluice.dev/notice"])
    assert told is not None
    assert told.refused_at == NOW
    assert world.memory.remembered(NOW, 600).refused == {"uid-b": NOW + 15}
    assert world.outcomes() == [Outcome.REFUSED]
    assert world.events[0].reason is ReclaimReason.REFUSED


async def test_a_second_refusal_does_not_begin_the_time_anew(world: World) -> None:
    world.error = BudgetError("no", retry_after_seconds=30)
    refused = pod(notice=notice(NOW - 90, refused_at=NOW - 60))
    await world.actuator.carry_out([Evict(refused, WHY)], Mode.ENFORCE)
    assert world.kinds() == ["declare", "evict", "settle"]
    assert world.memory.remembered(NOW, 600).refused == {"uid-b": NOW + 30}


async def test_an_unknown_outcome_counts_until_the_pod_shows(world: World) -> None:
    world.error = UnavailableError("no answer", may_have_happened=True)
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    assert world.kinds() == ["declare", "evict"]
    assert world.going() == {"uid-b"}
    assert len(world.memory.remembered(NOW, 600).spent) == 1
    world.actuator.seen(pod())
    assert world.kinds() == ["declare", "evict"]
    world.actuator.seen(pod(version="8", deleted_at=NOW + 30))
    assert world.said[-1] == ("settle", "uid-b")
    assert world.going() == frozenset()


async def test_a_conflict_after_an_unknown_outcome_may_mean_that_it_had_landed(
    world: World,
) -> None:
    world.error = UnavailableError("no answer", may_have_happened=True)
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    world.error = ConflictError("changed")
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    assert len(world.memory.remembered(NOW, 600).spent) == 1
    assert world.said[-1] == ("settle", "uid-b")


async def test_the_end_of_a_pod_settles_what_was_unknown(world: World) -> None:
    world.error = UnavailableError("no answer", may_have_happened=True)
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    world.actuator.gone("uid-b")
    assert world.said[-1] == ("settle", "uid-b")


async def test_an_end_that_is_forbidden_is_not_tried_again_at_once(world: World) -> None:
    world.error = ForbiddenError("no")
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    assert world.memory.remembered(NOW, 600).refused == {"uid-b": NOW + 60}
    assert world.outcomes() == [Outcome.REFUSED]


async def test_nothing_is_sent_once_leadership_is_lost(world: World) -> None:
    world.held = False
    given = Notice("owner/w", "r", NOW, NOW)
    commands: list[Command] = [Evict(pod(), WHY), Notify(pod(), given, WHY), Withdraw(pod())]
    await world.actuator.carry_out(commands, Mode.ENFORCE)
    assert world.kinds() == ["declare", "settle"]
    assert world.entries == []


async def test_a_refusal_by_budgets_settles_no_earlier_try_whose_outcome_is_unknown(
    world: World,
) -> None:
    world.error = UnavailableError("no answer", may_have_happened=True)
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    world.error = BudgetError("no")
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.ENFORCE)
    assert "settle" not in world.kinds()
    world.actuator.seen(pod(version="8"))
    assert world.said[-1] == ("settle", "uid-b")


async def test_in_mode_observe_everything_is_written_down_once_and_nothing_done(
    world: World,
) -> None:
    for _ in range(3):
        await world.actuator.carry_out([Evict(pod(), WHY)], Mode.OBSERVE)
    assert world.said == []
    assert world.events == []
    assert [(e.outcome, e.mode) for e in world.entries] == [(Outcome.OBSERVED, Mode.OBSERVE)]
    await world.actuator.carry_out([], Mode.OBSERVE)
    await world.actuator.carry_out([Evict(pod(), WHY)], Mode.OBSERVE)
    assert len(world.entries) == 2


async def test_an_audit_line_explains_an_eviction_by_itself(world: World) -> None:
    await world.actuator.carry_out([Evict(pod(notice=notice(NOW)), WHY)], Mode.ENFORCE)
    text = to_line(world.entries[0])
    assert text.startswith(b'{"time":"2031-05-17T12:00:00')
    assert text.count(b"\n") == 1
    line = json.loads(text)
    assert (line["kind"], line["action"], line["outcome"]) == ("eviction", "Evict", "Done")
    assert (line["namespace"], line["name"], line["uid"]) == ("borrower", "b", "uid-b")
    assert (line["rule"], line["generation"]) == ("ReclaimPolicy/main", "7c1f")
    assert line["beneficiary"]["name"] == "owner/w"
    assert line["beneficiary"]["uids"] == ["uid-w"]
    assert line["giver"] == {
        "tenant": "borrower",
        "pool": "",
        "guaranteeMilli": 2000,
        "beforeMilli": 8000,
        "afterMilli": 7000,
    }
    assert line["getter"]["afterMilli"] == 1000
    assert line["charge"]["milli"] == 1000
    assert line["evictAt"] == "2031-05-17T12:00:00Z"


async def test_no_more_ends_are_declared_than_the_lease_can_name(world: World) -> None:
    pods = [pod(uid=f"uid-{n}") for n in range(80)]
    await world.actuator.carry_out([Evict(p, WHY) for p in pods], Mode.ENFORCE)
    assert world.kinds().count("evict") == 50
    world.said.clear()
    world.outstanding = 499
    await world.actuator.carry_out([Evict(p, WHY) for p in pods], Mode.ENFORCE)
    assert world.kinds() == ["declare", "evict", "settle"]


def test_disruptions_of_a_past_leader_are_known_from_the_pods_that_still_end() -> None:
    memory = Memory()
    ending = pod(notice=notice(NOW - 60), deleted_at=NOW + 20)
    memory.recover([ending, pod(notice=notice(NOW))], {"uid-b": "borrower"}, NOW)
    (found,) = memory.remembered(NOW, 600).spent
    assert (found.at, found.tenant) == (NOW - 10, "borrower")


def test_after_taking_over_the_budget_counts_as_used_up_until_its_while_has_passed() -> None:
    memory = Memory()
    assert memory.remembered(NOW, 600).budget_used_up_until == 0
    memory.recover([], {}, NOW)
    assert memory.remembered(NOW + 5, 600).budget_used_up_until == NOW + 600


def test_what_no_longer_counts_is_forgotten() -> None:
    memory = Memory()
    memory.refused(pod(), NOW + 5)
    assert memory.remembered(NOW + 5, 600).refused == {}
