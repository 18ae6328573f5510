# SPDX-License-Identifier: Apache-2.0
"""Who is asked how often, what is done when a source fails, and who is told."""

import asyncio
import contextlib
import logging
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import pytest

from policies.telemetry.classes import DEFAULT_CLASSES, INFERENCE, TRAINING
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample, Subject
from policies.telemetry.state import Outcome
from reconciler.kube.reflector import Runtime
from reconciler.telemetry.nodes import TelemetryNode
from reconciler.telemetry.sampler import Sampler
from reconciler.telemetry.source import Report, SourceError, Take
from reconciler.telemetry.store import TelemetryStore
from tests.support.telemetry import LIMITS, NOW, Clock

_NODES = [
    TelemetryNode("node-i", "1", INFERENCE),
    TelemetryNode("node-t", "2", TRAINING),
    TelemetryNode("node-u", "3", TRAINING),
]


class _Enough(Exception):  # noqa: N818 - ends a run that goes on for ever
    pass


@dataclass
class _World:
    """A source, and time that passes only while everybody sleeps."""

    is_by_node: bool = True
    name: str = "scripted"
    clock: Clock = field(default_factory=Clock)
    until: float = NOW + 59
    asked: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    error: SourceError | None = None
    report: Report = field(default_factory=Report)
    sleepers: list[tuple[float, "asyncio.Future[None]"]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = TelemetryStore(lambda _: LIMITS, clock=self.clock)

    async def read(self, nodes: AbstractSet[str], take: Take) -> Report:
        self.asked.append((self.clock.now - NOW, tuple(sorted(nodes))))
        if self.error is not None:
            raise self.error
        names = [*sorted(nodes), "node-of-another-cluster"]
        take(
            Sample(Quantity.UTILISATION, Subject(name, f"GPU-{name}", 0), 0.5, self.clock.now)
            for name in names
        )
        return self.report

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.clock.now + seconds, future))
        await future

    async def pass_time(self) -> None:
        """Wake sleepers in order, each at its time, until the end."""
        while self.clock.now < self.until:
            for _ in range(20):
                await asyncio.sleep(0)
            self.sleepers.sort(key=lambda each: each[0])
            at, future = self.sleepers.pop(0)
            self.clock.now = max(self.clock.now, at)
            if not future.done():
                future.set_result(None)
        raise _Enough

    def sampler(self, nodes: list[TelemetryNode]) -> Sampler:
        runtime = Runtime(clock=self.clock, sleep=self.sleep, uniform=lambda _, high: high)
        return Sampler(self, self.store, lambda: nodes, DEFAULT_CLASSES, runtime)

    async def run(self, nodes: list[TelemetryNode]) -> Sampler:
        sampler = self.sampler(nodes)
        with contextlib.suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(sampler.run())
                tasks.create_task(self.pass_time())
        return sampler


async def test_each_class_is_asked_for_as_often_as_it_needs() -> None:
    world = _World()
    await world.run(_NODES)
    inference = [at for at, nodes in world.asked if nodes == ("node-i",)]
    training = [at for at, nodes in world.asked if nodes == ("node-t", "node-u")]
    assert inference == [0, 10, 20, 30, 40, 50]
    assert training == [0, 30]
    assert len(world.asked) == len(inference) + len(training)


async def test_a_source_that_tells_all_is_asked_at_the_shortest_interval_that_there_is() -> None:
    world = _World(is_by_node=False)
    await world.run(_NODES)
    assert [at for at, _ in world.asked] == [0, 10, 20, 30, 40, 50]
    assert {nodes for _, nodes in world.asked} == {("node-i", "node-t", "node-u")}
    world = _World(is_by_node=False)
    await world.run(_NODES[1:])
    assert [at for at, _ in world.asked] == [0, 30]


async def test_nobody_is_asked_while_there_are_no_nodes() -> None:
    world = _World()
    await world.run([])
    assert world.asked == []


async def test_samples_of_nodes_that_were_not_asked_for_are_not_kept() -> None:
    world = _World()
    await world.run(_NODES)
    assert sorted(world.store.nodes()) == ["node-i", "node-t", "node-u"]


async def test_a_source_that_fails_is_asked_less_and_less_often_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = _World(error=SourceError("no route"), until=NOW + 300)
    sampler = await world.run(_NODES[:1])
    assert [at for at, _ in world.asked] == [0, 10, 30, 70, 130, 190, 250]
    assert sampler.looks == {"Failure": 7}
    assert [record.getMessage() for record in caplog.records] == [
        "telemetry from scripted (inference nodes): no route"
    ]


async def test_a_source_is_left_alone_for_as_long_as_it_asks() -> None:
    world = _World(error=SourceError("busy", retry_after_seconds=45))
    await world.run(_NODES[:1])
    assert [at for at, _ in world.asked] == [0, 45]


async def test_while_a_source_fails_what_is_known_becomes_unknown_in_time_and_then_known_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    world = _World()
    told: list[tuple[float, frozenset[str]]] = []
    world.store.subscribe(lambda nodes: told.append((world.clock.now - NOW, nodes)))
    sampler = world.sampler(_NODES[:1])
    assert await sampler.look(frozenset({"node-i"})) is None
    assert world.store.node("node-i").cards[0].values.utilisation is not None
    world.error = SourceError("no route")
    world.clock.now += 35.5
    assert await sampler.look(frozenset({"node-i"})) == 0.0
    assert world.store.expire() == {"node-i"}
    assert world.store.node("node-i").cards[0].values.utilisation is None
    world.error = None
    await sampler.look(frozenset({"node-i"}))
    assert world.store.node("node-i").cards[0].values.utilisation is not None
    assert [at for at, _ in told] == [0, 35.5, 35.5]
    assert [record.getMessage() for record in caplog.records] == [
        "telemetry from scripted: no route",
        "telemetry from scripted is whole again",
    ]


async def test_a_look_that_brings_a_part_is_counted_so_and_its_samples_are_kept() -> None:
    world = _World(report=Report(("exporters that gave nothing: x",), malformed=3))
    sampler = world.sampler(_NODES)
    await sampler.look(frozenset({"node-t"}))
    assert sampler.looks == {"Partial": 1}
    assert sampler.malformed == 3
    assert world.store.node("node-t").cards[0].values.utilisation is not None


async def test_samples_that_all_name_nodes_otherwise_are_not_passed_over_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = _World(is_by_node=False)
    sampler = world.sampler(_NODES)
    await sampler.look(frozenset())
    assert sampler.looks == {"Partial": 1}
    (record,) = caplog.records
    assert record.getMessage() == (
        "telemetry from scripted: every sample is of a node that is not known here, "
        "such as 'node-of-another-cluster'"
    )


def test_subscribers_are_told_once_of_all_that_changed() -> None:
    store = TelemetryStore(lambda _: LIMITS, clock=Clock())
    told: list[frozenset[str]] = []
    store.subscribe(told.append)
    for name in ("a", "b", "a"):
        store.put([Sample(Quantity.UTILISATION, Subject(name, "GPU", 0), 0.5, NOW)])
    store.put([Sample(Quantity.UTILISATION, Subject("c", "GPU", 0), float("nan"), NOW)])
    assert told == []
    assert store.publish() == {"a", "b"}
    assert store.publish() == frozenset()
    assert told == [frozenset({"a", "b"})]
    assert (store.outcomes[Outcome.TAKEN], store.outcomes[Outcome.NOT_A_MEASUREMENT]) == (3, 1)


def test_a_view_is_kept_until_it_changes_or_goes_stale_or_the_clock_is_set_back() -> None:
    clock = Clock()
    store = TelemetryStore(lambda _: LIMITS, clock=clock)
    sample = Sample(Quantity.UTILISATION, Subject("a", "GPU", 0), 0.5, NOW)
    store.put([sample])
    first = store.node("a")
    clock.now += 35
    assert store.node("a") is first
    clock.now += 0.1
    assert store.node("a").cards[0].values.utilisation is None
    clock.now = NOW - 100
    assert store.node("a").cards[0].values.utilisation is None


def test_a_node_that_is_gone_is_forgotten_and_told() -> None:
    store = TelemetryStore(lambda _: LIMITS, clock=Clock())
    told: list[frozenset[str]] = []
    store.put([Sample(Quantity.UTILISATION, Subject("a", "GPU", 0), 0.5, NOW)])
    store.subscribe(told.append)
    store.forget("a")
    assert told == [frozenset({"a"})]
    assert store.nodes() == ()
    assert store.node("a").cards == ()
