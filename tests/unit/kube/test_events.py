# SPDX-License-Identifier: Apache-2.0
"""The recorder in simulated time, against a server that keeps Events."""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
import pytest

from reconciler.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from reconciler.kube.event_object import cut_note
from reconciler.kube.events import (
    EventType,
    Recorder,
    RecorderHooks,
    RecorderSettings,
    Regarding,
    Reporter,
)
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Target
from tests.support.simulated import SimulatedProcess, World

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
POD = Regarding("Pod", "team", "p", "uid-1")


@dataclass
class Events:
    """A client that keeps what it is given; `failing` answers every call."""

    held: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    failing: ApiError | None = None
    version: int = 1

    def _answer(self, call: str) -> None:
        self.calls.append(call)
        if self.failing:
            raise self.failing

    async def get(self, target: Target) -> Mapping[str, Any]:
        self._answer("get")
        if target.path not in self.held:
            raise NotFoundError("not found")
        found: Mapping[str, Any] = self.held[target.path]
        return found

    async def create(self, target: Target, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self._answer("create")
        path = f"{target.path}/{body['metadata']['name']}"
        if path in self.held:
            raise AlreadyExistsError("already exists")
        self.held[path] = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
        return body

    async def patch_json(
        self, target: Target, operations: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        self._answer("patch")
        item: Any = jsonpatch.apply_patch(self.held[target.path], list(operations))
        if (
            item["metadata"]["resourceVersion"]
            != self.held[target.path]["metadata"]["resourceVersion"]
        ):
            raise ConflictError("modified")
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.held[target.path] = item
        return self.held[target.path]  # type: ignore[no-any-return]

    def one(self) -> Any:
        (item,) = self.held.values()
        return item


@dataclass
class Stage:
    world: World
    process: SimulatedProcess
    events: Events = field(default_factory=Events)
    dropped: list[str] = field(default_factory=list)

    def recorder(self, **settings: Any) -> tuple[Recorder, asyncio.Task[None]]:
        runtime = Runtime(
            lambda: self.world.now,
            random.Random(0).uniform,  # noqa: S311 - replayable
            wall_clock=lambda: EPOCH + timedelta(seconds=self.world.now - 1000),
        )
        made = Recorder(
            self.events, RecorderSettings(**settings), runtime, RecorderHooks(self.dropped.append)
        )
        return made, self.world.start(self.process, made.run())


@pytest.fixture
def stage() -> Iterator[Stage]:
    with World() as world:
        yield Stage(world, world.process("sluice"))


def test_an_event_is_written_at_once_with_all_that_describe_shows(stage: Stage) -> None:
    recorder, _ = stage.recorder(reporter=Reporter("sluice", "sluice-0"))
    recorder.record(POD, "Released", "charged 1 GPU", EventType.NORMAL, "Release")
    stage.world.run(0.1)
    item = stage.events.one()
    assert item["metadata"].pop("name").startswith("p.")
    assert item == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "team", "resourceVersion": "1"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "p",
            "uid": "uid-1",
        },
        "type": "Normal",
        "reason": "Released",
        "action": "Release",
        "message": "charged 1 GPU",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "sluice"},
        "reportingComponent": "sluice",
        "reportingInstance": "sluice-0",
    }


def test_repeats_are_counted_in_one_write_a_minute(stage: Stage) -> None:
    recorder, _ = stage.recorder()
    for _ in range(600):
        recorder.record(POD, "Waiting", "no quota", EventType.WARNING)
        stage.world.run(1)
    stage.world.run(120)
    item = stage.events.one()
    assert item["count"] == 600
    assert (item["firstTimestamp"], item["lastTimestamp"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:09:59Z",
    )
    assert stage.events.calls.count("create") == 1
    assert stage.events.calls.count("patch") <= 11


def test_what_another_process_wrote_is_counted_on(stage: Stage) -> None:
    for _ in range(2):
        recorder, task = stage.recorder()
        recorder.record(POD, "Waiting", "no quota")
        stage.world.run(1)
        stage.process.call_soon(task.cancel)
        stage.world.run(1)
    assert stage.events.one()["count"] == 2


def test_an_event_that_the_api_forgot_begins_anew(stage: Stage) -> None:
    recorder, _ = stage.recorder()
    recorder.record(POD, "Waiting", "no quota")
    stage.world.run(100)
    stage.events.held.clear()
    recorder.record(POD, "Waiting", "no quota")
    stage.world.run(100)
    item = stage.events.one()
    assert (item["count"], item["firstTimestamp"]) == (1, "2026-01-01T00:01:40Z")


def test_events_of_cluster_scoped_objects_lie_in_default(stage: Stage) -> None:
    recorder, _ = stage.recorder()
    recorder.record(Regarding("Tenant", "", "chat", "u", "sluice.dev/v1alpha1"), "Borrows", "x")
    stage.world.run(1)
    assert stage.events.one()["metadata"]["namespace"] == "default"
    assert stage.events.one()["involvedObject"]["namespace"] == ""


def test_no_more_than_the_rate_are_written(stage: Stage) -> None:
    recorder, _ = stage.recorder(events_per_second=2.0, burst=3)
    for number in range(100):
        recorder.record(POD, "Waiting", f"note {number}")
    stage.world.run(0.01)
    assert len(stage.events.held) == 3
    stage.world.run(10)
    assert len(stage.events.held) in (22, 23)
    stage.world.run(60)
    assert len(stage.events.held) == 100


def test_memory_is_bounded_and_what_is_dropped_is_told(stage: Stage) -> None:
    recorder, _ = stage.recorder(max_events=10)
    for number in range(30):
        recorder.record(POD, "Waiting", f"note {number}")
    assert stage.dropped == ["Waiting"] * 20
    stage.world.run(700)
    recorder.record(POD, "Waiting", "later")
    stage.world.run(1)
    assert len(stage.events.held) == 11
    assert len(recorder._held) == 1


def test_an_outage_delays_events_and_loses_none(stage: Stage) -> None:
    recorder, _ = stage.recorder()
    stage.events.failing = UnavailableError("connection refused")
    for number in range(20):
        recorder.record(POD, "Waiting", f"note {number}")
    stage.world.run(120)
    assert len(stage.events.calls) < 20
    stage.events.failing = None
    stage.world.run(60)
    assert len(stage.events.held) == 20
    assert stage.dropped == []


def test_what_the_server_refuses_is_dropped_and_the_rest_goes_on(stage: Stage) -> None:
    recorder, task = stage.recorder()
    stage.events.failing = ForbiddenError("the namespace is being terminated")
    recorder.record(POD, "Waiting", "x")
    recorder.record(Regarding("Pod", "no/namespace", "p", "u"), "Odd", "x")
    stage.world.run(1)
    assert sorted(stage.dropped) == ["Odd", "Waiting"]
    stage.events.failing = None
    recorder.record(POD, "Released", "y")
    stage.world.run(1)
    assert len(stage.events.held) == 1
    assert not task.done()


def test_what_waits_at_the_end_is_still_written(stage: Stage) -> None:
    recorder, task = stage.recorder(events_per_second=0.1, burst=1)
    for number in range(5):
        recorder.record(POD, "Waiting", f"note {number}")
    stage.world.run(0.1)
    stage.process.call_soon(task.cancel)
    stage.world.run(1)
    assert task.cancelled()
    assert len(stage.events.held) == 5


def test_a_note_is_cut_between_characters_to_what_the_api_takes() -> None:
    assert cut_note("x" * 1024) == "x" * 1024
    assert cut_note("x" * 1025) == "x" * 1021 + "..."
    assert len(cut_note("€" * 400).encode()) <= 1024
    assert cut_note("€" * 400) == "€" * 340 + "..."
    assert cut_note("\ud800") == "?"
