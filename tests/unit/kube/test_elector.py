# SPDX-License-Identifier: Apache-2.0
"""Electors in simulated time: how leadership begins, is kept, lost and handed on."""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.kube.elector import (
    Elector,
    ElectorHooks,
    ElectorSettings,
    Leadership,
    LeadershipLostError,
    WorkNotStoppedError,
)
from reconciler.kube.errors import ApiError, ForbiddenError
from reconciler.kube.intents import INTENTS, MAX_INTENTS, Intent, IntentKind, encode_intents
from reconciler.kube.reflector import Runtime
from reconciler.runtime.tasks import Activity
from tests.support.lease_server import LeaseServer, Network, Object, RemoteClient
from tests.support.simulated import SimulatedProcess, World

PATH = "/apis/coordination.k8s.io/v1/namespaces/sluice/leases/leader"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def intent(name: str = "p") -> Intent:
    return Intent(IntentKind.RELEASE, "team", name, f"uid-{name}", "7", '{"tenant":"a"}')


async def wait(_: Leadership) -> None:
    await asyncio.Event().wait()


@dataclass
class Candidate:
    """One process that runs an elector."""

    name: str
    process: SimulatedProcess
    elector: Elector
    work: Callable[[Leadership], Activity]
    task: asyncio.Task[None] | None = None
    leaderships: list[Leadership] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    failures: list[ApiError] = field(default_factory=list)

    async def lead(self, leadership: Leadership) -> None:
        self.leaderships.append(leadership)
        self.events.append("begin")
        try:
            await self.work(leadership)
        finally:
            self.events.append("end")

    @property
    def leads(self) -> bool:
        """Whether it holds the Lease and its work in this term has begun."""
        return self.elector.is_leading and bool(self.leaderships) and self.now.is_held()

    @property
    def now(self) -> Leadership:
        return self.leaderships[-1]


@dataclass
class Stage:
    """A world with a server and candidates."""

    world: World
    server: LeaseServer = field(default_factory=LeaseServer)
    network: Network = field(default_factory=Network)
    candidates: list[Candidate] = field(default_factory=list)

    def add(
        self, name: str, work: Callable[[Leadership], Activity] = wait, **settings: Any
    ) -> Candidate:
        process = self.world.process(name)
        draw = random.Random(name)  # noqa: S311 - replayable
        runtime = Runtime(
            lambda: self.world.now,
            draw.uniform,
            wall_clock=lambda: EPOCH + timedelta(seconds=self.world.now),
        )
        client = RemoteClient(self.world, process, self.server, self.network)
        failures: list[ApiError] = []
        elector = Elector(
            client,
            ElectorSettings(
                **{"namespace": "sluice", "name": "leader", "identity": name, **settings}
            ),
            runtime,
            ElectorHooks(failed=failures.append),
        )
        made = Candidate(name, process, elector, work, failures=failures)
        made.task = self.world.start(process, elector.run(made.lead))
        self.candidates.append(made)
        return made

    def seed(self, **spec: Any) -> None:
        self.server.objects[PATH] = {
            "metadata": {
                "name": "leader",
                "namespace": "sluice",
                "resourceVersion": "1",
                "uid": "u",
            },
            "spec": spec,
        }

    def spec(self) -> Object:
        return dict(self.server.objects[PATH]["spec"])

    def run(self, seconds: float) -> None:
        self.world.run(seconds)

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> float:
        begun = self.world.now
        self.world.run(seconds, condition)
        assert condition(), f"not within {seconds} s"
        return self.world.now - begun

    def do(self, candidate: Candidate, work: Any) -> asyncio.Task[Any]:
        return self.world.start(candidate.process, work)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with World() as world:
        yield Stage(world)


def free(stage: Stage) -> None:
    stage.seed(leaseDurationSeconds=1)


def test_a_released_lease_is_taken_at_once_and_kept(stage: Stage) -> None:
    free(stage)
    a = stage.add("a")
    assert stage.until(lambda: a.leads) < 0.1
    stage.run(120)
    assert a.leads
    assert a.events == ["begin"]
    assert stage.spec() | {"renewTime": ""} == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": stage.spec()["acquireTime"],
        "renewTime": "",
        "leaseTransitions": 1,
    }


def annotation(stage: Stage) -> str:
    return str(stage.server.objects[PATH]["metadata"]["annotations"][INTENTS])


def led(stage: Stage, name: str = "a", **settings: Any) -> Candidate:
    """A candidate that leads."""
    free(stage)
    made = stage.add(name, **settings)
    stage.until(lambda: made.leads)
    return made


def renewed(stage: Stage) -> float:
    """When the Lease was last renewed, on the world's clock."""
    at = datetime.fromisoformat(stage.spec()["renewTime"])
    return (at - EPOCH).total_seconds()


# How it begins


def test_a_lease_that_is_missing_is_made_only_once_a_leader_would_have_put_it_back(
    stage: Stage,
) -> None:
    a = stage.add("a")
    assert 15 <= stage.until(lambda: a.leads) < 17.1
    assert not a.now.inherited_unreadable


def test_a_held_lease_is_taken_when_it_has_not_changed_for_its_duration_on_our_own_clock(
    stage: Stage,
) -> None:
    long_ago = "2001-01-01T00:00:00.000000Z"
    stage.seed(holderIdentity="x", leaseDurationSeconds=15, renewTime=long_ago, leaseTransitions=4)
    a = stage.add("a")
    assert 15 <= stage.until(lambda: a.leads) < 17.1
    assert stage.spec()["leaseTransitions"] == 5


@pytest.mark.parametrize(("stated", "waits"), [(30, 30), (5, 15), (2**31 - 1, 15)])
def test_a_longer_promise_of_the_holder_counts_unless_it_is_absurd(
    stage: Stage, stated: int, waits: int
) -> None:
    stage.seed(holderIdentity="x", leaseDurationSeconds=stated)
    a = stage.add("a")
    assert waits <= stage.until(lambda: a.leads) < waits + 2.1


def test_edits_of_labels_do_not_keep_a_dead_leader_in_office(stage: Stage) -> None:
    stage.seed(holderIdentity="x", leaseDurationSeconds=15)
    a = stage.add("a")
    for second in range(40):
        stage.world.at(
            stage.world.now + second,
            lambda second=second: stage.server.edit(  # type: ignore[misc]
                PATH, lambda item: item["metadata"].update(labels={"second": str(second)})
            ),
        )
    assert stage.until(lambda: a.leads) < 20


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"holderIdentity": 7, "leaseDurationSeconds": "long", "leaseTransitions": None},
        {"holderIdentity": "x", "leaseDurationSeconds": -1, "renewTime": "yesterday"},
        {"leaseTransitions": 2**31 - 1, "acquireTime": [], "strategy": "OldestEmulationVersion"},
        None,
    ],
)
def test_whatever_somebody_wrote_into_the_lease_a_leader_comes(
    stage: Stage, spec: Object | None
) -> None:
    stage.seed()
    stage.server.edit(PATH, lambda item: item.update(spec=spec))
    a = stage.add("a")
    stage.until(lambda: a.leads)
    assert set(stage.spec()) == {
        "holderIdentity",
        "leaseDurationSeconds",
        "acquireTime",
        "renewTime",
        "leaseTransitions",
    }
    assert 0 <= stage.spec()["leaseTransitions"] < 2**31


def test_an_answer_without_a_version_is_an_error_and_no_crash(stage: Stage) -> None:
    free(stage)
    stage.server.objects[PATH]["metadata"].pop("resourceVersion")
    a = stage.add("a")
    stage.run(5)
    assert a.failures
    free(stage)
    stage.until(lambda: a.leads)


def test_a_refusal_is_told_and_borne(stage: Stage) -> None:
    free(stage)
    stage.server.refusals = [ForbiddenError("no such right", status=403) for _ in range(5)]
    a = stage.add("a")
    assert stage.until(lambda: a.leads) > 4
    assert len(a.failures) == 5


def test_a_taking_whose_outcome_was_unknown_is_found_to_be_ours(stage: Stage) -> None:
    free(stage)
    stage.network.delay = (6.0, 6.0)
    a = stage.add("a")
    stage.run(11)
    stage.network.delay = (0.01, 0.01)
    assert stage.until(lambda: a.leads) < 4


def test_settings_that_leave_no_time_to_stop_are_refused() -> None:
    for settings in ({"renew_seconds": 15}, {"retry_seconds": 10}, {"name": ""}):
        with pytest.raises(ValueError, match=r"Lease needs|must hold"):
            ElectorSettings(
                **{"namespace": "sluice", "name": "leader", "identity": "a", **settings}  # type: ignore[arg-type]
            )
    with pytest.raises(ValueError, match="3600"):
        ElectorSettings("sluice", "leader", "a", lease_seconds=4000)


# How it is handed on


def test_the_death_of_a_leader_is_noticed_after_its_lease_has_run_out(stage: Stage) -> None:
    a = led(stage)
    b = stage.add("b")
    stage.run(7)
    assert (a.leads, b.leads, b.elector.holder) == (True, False, "a")
    stage.world.kill(a.process)
    last = renewed(stage)
    stage.until(lambda: b.leads)
    # It may have been seen up to 2 s after it was sent, and looked at 2 s after it had run out.
    assert 15 <= stage.world.now - last < 19.2


def test_a_leader_that_is_told_to_stop_lets_the_next_one_lead_at_once(stage: Stage) -> None:
    a = led(stage)
    b = stage.add("b")
    stage.run(5)
    assert a.task
    landed = len(stage.server.writes)
    a.task.cancel()
    assert stage.until(lambda: b.leads) < 2.1
    assert a.task.cancelled()
    assert a.events == ["begin", "end"]
    release = next(item for _, item in stage.server.writes[landed:])
    assert "holderIdentity" not in release["spec"]
    assert release["spec"]["leaseDurationSeconds"] == 1


def test_the_lease_is_released_only_after_the_work_has_ended(stage: Stage) -> None:
    ended: list[float] = []

    async def lingering(_: Leadership) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(3)
            ended.append(stage.world.now)

    free(stage)
    a, b = stage.add("a", lingering), stage.add("b", lingering)
    stage.until(lambda: a.leads or b.leads)
    first, second = (a, b) if a.leads else (b, a)
    assert first.task
    first.task.cancel()
    stage.until(lambda: second.leads)
    assert ended
    assert ended[0] < stage.world.now < ended[0] + 2.1


def test_work_that_does_not_stop_ends_the_process_before_another_leads(stage: Stage) -> None:
    async def stubborn(_: Leadership) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    free(stage)
    a = stage.add("a", stubborn)
    stage.until(lambda: a.leads)
    b = stage.add("b")
    stage.run(10)
    stage.network.down.add("a")
    assert a.task
    stage.until(a.task.done)
    assert isinstance(a.task.exception(), WorkNotStoppedError)
    assert not b.leads
    assert not a.leads
    stage.until(lambda: b.leads)
    for task in asyncio.all_tasks(a.process):
        task.get_coro().close()


@pytest.mark.parametrize("failure", [None, RuntimeError("a bug")])
def test_work_that_ends_ends_leadership(stage: Stage, failure: Exception | None) -> None:
    async def short(_: Leadership) -> None:
        await asyncio.sleep(4)
        if failure:
            raise failure

    free(stage)
    a = stage.add("a", short)
    stage.until(lambda: a.leads)
    b = stage.add("b")
    stage.until(lambda: b.leads, 7)
    assert a.task
    assert a.task.done()
    assert a.task.exception() is failure


def test_a_failure_of_work_that_was_told_to_stop_is_seen(stage: Stage) -> None:
    async def failing(_: Leadership) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("a bug")

    free(stage)
    a = stage.add("a", failing)
    stage.until(lambda: a.leads)
    assert a.task
    a.task.cancel()
    stage.until(a.task.done)
    assert isinstance(a.task.exception(), RuntimeError)
    assert "holderIdentity" not in stage.spec()


# How it is lost


def test_without_the_server_leadership_ends_at_the_deadline_and_begins_again_after(
    stage: Stage,
) -> None:
    a = led(stage)
    stage.run(30)
    stage.network.down.add("a")
    last = renewed(stage)
    stage.until(lambda: not a.leads)
    assert stage.world.now == pytest.approx(last + 10)
    stage.until(lambda: a.events == ["begin", "end"], 0.1)
    assert a.failures
    stage.network.down.clear()
    # Its own old term needs no waiting: the work in it has ended.
    stage.until(lambda: a.leads, 2.1)
    assert not a.leaderships[0].is_held()
    assert a.now.is_held()


def test_the_deadline_counts_from_when_a_renewal_was_sent(stage: Stage) -> None:
    a = led(stage)
    stage.network.delay = (2.0, 2.4)
    stage.run(60)
    assert a.events == ["begin"]
    stage.network.down.add("a")
    stage.until(lambda: not a.leads)
    # The last one may have been on its way when the server went.
    assert stage.world.now == pytest.approx(renewed(stage) + 10)


def test_an_outage_shorter_than_the_deadline_is_lived_through(stage: Stage) -> None:
    a = led(stage)
    stage.run(20)
    for _ in range(10):
        stage.network.down.add("a")
        stage.run(7)
        stage.network.down.clear()
        stage.run(3)
    assert a.events == ["begin"]


def test_a_frozen_leader_wakes_without_leadership(stage: Stage) -> None:
    a = led(stage)
    b = stage.add("b")
    stage.run(5)
    first = a.now
    a.process.frozen_until = stage.world.now + 60
    stage.until(lambda: b.leads)
    assert not first.is_held()
    declared = stage.do(a, first.declare([intent()]))
    stage.run(50)
    assert isinstance(declared.exception(), LeadershipLostError)
    assert a.events == ["begin", "end"]
    assert b.events == ["begin"]
    assert a.elector.holder == "b"


def test_a_holder_that_somebody_edited_ends_leadership_at_the_next_renewal(stage: Stage) -> None:
    a = led(stage)
    stage.server.edit(PATH, lambda item: item["spec"].update(holderIdentity="somebody"))
    stage.until(lambda: a.events == ["begin", "end"], 4)
    stage.until(lambda: a.leads, 20)


def test_two_processes_of_one_identity_never_lead_together(stage: Stage) -> None:
    free(stage)
    a = stage.add("a", identity="same")
    b = stage.add("b", identity="same")

    def check() -> None:
        assert not (a.leads and b.leads)

    stage.world.check = check
    stage.run(60)
    first, second = (a, b) if a.leads else (b, a)
    assert first.leads
    stage.world.kill(first.process)
    stage.until(lambda: second.leads)


def test_other_peoples_labels_and_annotations_stay(stage: Stage) -> None:
    a = led(stage)

    def edit(item: Object) -> None:
        item["metadata"]["labels"] = {"team": "platform"}
        item["metadata"]["annotations"] |= {"note": "x", INTENTS: "gone"}

    stage.server.edit(PATH, edit)
    stage.run(5)
    assert a.leads
    metadata = stage.server.objects[PATH]["metadata"]
    assert metadata["labels"] == {"team": "platform"}
    assert metadata["annotations"] == {"note": "x", INTENTS: encode_intents(())}


def test_a_lease_that_was_deleted_is_put_back_with_its_intents(stage: Stage) -> None:
    a = led(stage)
    b = stage.add("b")
    task = stage.do(a, a.now.declare([intent()]))
    stage.until(task.done)
    stage.run(3)
    stage.server.remove(PATH)
    stage.until(lambda: PATH in stage.server.objects, 3)
    stage.run(40)
    assert a.events == ["begin"]
    assert b.events == []
    assert annotation(stage) == encode_intents([intent()])


def test_a_lease_deleted_under_a_dead_leader_says_that_its_intents_are_lost(stage: Stage) -> None:
    a = led(stage)
    b = stage.add("b")
    stage.run(3)
    stage.world.kill(a.process)
    stage.server.remove(PATH)
    stage.until(lambda: b.leads)
    assert b.now.inherited_unreadable


# What it declares


def declare(stage: Stage, candidate: Candidate, intents: list[Intent]) -> asyncio.Task[Any]:
    task = stage.do(candidate, candidate.now.declare(intents))
    stage.until(task.done)
    return task


def test_what_a_leader_declared_its_successor_inherits(stage: Stage) -> None:
    a = led(stage)
    assert a.now.inherited == ()
    assert not a.now.inherited_unreadable
    b = stage.add("b")
    declare(stage, a, [intent("p"), intent("q")])
    declare(stage, a, [intent("q"), Intent(IntentKind.EVICTION, "team", "r", "u", "9")])
    stage.run(20)
    stage.world.kill(a.process)
    stage.until(lambda: b.leads)
    assert b.now.inherited == (intent("q"), Intent(IntentKind.EVICTION, "team", "r", "u", "9"))


def test_intents_outlive_a_release(stage: Stage) -> None:
    a = led(stage)
    declare(stage, a, [intent()])
    assert a.task
    a.task.cancel()
    stage.until(a.task.done)
    b = stage.add("b")
    stage.until(lambda: b.leads)
    assert b.now.inherited == (intent(),)


def test_a_declaration_counts_as_a_renewal(stage: Stage) -> None:
    a = led(stage)
    stage.run(5.123)
    sent = stage.world.now
    declare(stage, a, [intent()])
    stage.network.down.add("a")
    stage.until(lambda: not a.leads)
    assert stage.world.now == pytest.approx(sent + 10)


def test_a_declaration_is_tried_until_it_is_known_to_stand(stage: Stage) -> None:
    a = led(stage)
    stage.network.failing = 0.3
    for number in range(50):
        task = stage.do(a, a.now.declare([intent(f"p{number}")]))
        stage.until(task.done)
        assert task.exception() is None
        assert annotation(stage) == encode_intents([intent(f"p{number}")])
        stage.run(1)


def test_declarations_and_renewals_do_not_undo_each_other(stage: Stage) -> None:
    a = led(stage, retry_seconds=0.05)
    tasks = []
    for number in range(40):
        tasks.append(stage.do(a, a.now.declare([intent(f"p{number}")])))
        stage.run(0.02)
    stage.until(lambda: all(task.done() for task in tasks))
    assert annotation(stage) == encode_intents([intent("p39")])
    stage.run(5)
    assert annotation(stage) == encode_intents([intent("p39")])


def test_a_declaration_that_cannot_be_made_in_time_is_an_error(stage: Stage) -> None:
    a = led(stage)
    stage.network.down.add("a")
    task = declare(stage, a, [intent()])
    assert isinstance(task.exception(), LeadershipLostError)
    stage.until(lambda: a.events == ["begin", "end"], 0.1)
    assert declare(stage, a, []).exception() is not None


def test_a_declaration_that_is_too_large_is_refused_before_anything_is_sent(stage: Stage) -> None:
    a = led(stage)
    writes = len(stage.server.writes)
    for intents in ([intent()] * (MAX_INTENTS + 1), [intent("p" * 1000)] * 300):
        task = stage.do(a, a.now.declare(intents))
        stage.world.run(1, task.done)
        assert isinstance(task.exception(), ValueError)
    assert len(stage.server.writes) == writes
    assert a.leads


def test_losing_leadership_in_a_declaration_is_no_failure_of_the_work(stage: Stage) -> None:
    begun: list[Leadership] = []

    async def declaring(leadership: Leadership) -> None:
        begun.append(leadership)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await asyncio.sleep(0.5)
                tasks.create_task(leadership.declare([intent()]))

    free(stage)
    a = stage.add("a", declaring)
    stage.until(lambda: a.leads)
    stage.server.edit(PATH, lambda item: item["spec"].update(holderIdentity="somebody"))
    stage.until(lambda: len(begun) == 2)
    assert a.task
    assert not a.task.done()


def test_intents_that_cannot_be_read_are_not_taken_for_none(stage: Stage) -> None:
    stage.seed(leaseDurationSeconds=1)
    stage.server.edit(PATH, lambda item: item["metadata"].update(annotations={INTENTS: "[]"}))
    a = stage.add("a")
    stage.until(lambda: a.leads)
    assert a.now.inherited_unreadable
    stage.run(5)
    assert annotation(stage) == "[]"
    declare(stage, a, [])
    assert annotation(stage) == encode_intents(())


def test_intents_that_somebody_removed_are_not_taken_for_none(stage: Stage) -> None:
    a = led(stage)
    assert a.task
    a.task.cancel()
    stage.until(a.task.done)
    stage.server.edit(PATH, lambda item: item["metadata"].pop("annotations"))
    b = stage.add("b")
    stage.until(lambda: b.leads)
    assert b.now.inherited_unreadable
