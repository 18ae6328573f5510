# SPDX-License-Identifier: Apache-2.0
"""In which modes pods hold what they are charged, and what is written down of it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from policies.cluster.constraints import Constraints
from policies.cluster.shape import FitShape
from policies.pod.view import ContainerKind
from policies.quota.amount import Amount
from policies.quota.metering import MIXED, UNKNOWN, Key, Modes
from policies.quota.pods import Ask, Shape
from reconciler.kube.reflector import Runtime
from reconciler.tenants.usage import UsageRecorder, UsageSettings
from tests.support.builders import GPU, policy_set
from tests.support.planning import World, node, tenant
from tests.support.running import running
from tests.support.waiting import until

MIG = "nvidia.com/mig-3g.135gb"
BEGIN = datetime(2031, 5, 17, tzinfo=UTC)


def shape(*asks: Ask) -> Shape:
    return Shape(FitShape.of({}, Constraints()), asks)


def ask(resource: str, count: int = 1, profile: str = "") -> Ask:
    return Ask(ContainerKind.APP, {resource: count}, profile)


def test_a_whole_gpu_is_exclusive_and_what_it_was_charged() -> None:
    found = Modes().split(shape(ask(GPU, 2)), Amount({1: 2}), policy_set())
    assert found == {"Exclusive": Amount({1: 2})}


def test_a_pod_in_two_modes_is_split_by_what_each_costs() -> None:
    both = shape(ask(GPU), ask(MIG, 2))
    found = Modes().split(both, Amount({1: 1, 8: 8}), policy_set())
    assert {mode: amount.parts for mode, amount in found.items()} == {
        "Exclusive": {1: 1},
        "MIG": {8: 8},
    }


def test_a_charge_that_nothing_explains_any_more_is_kept_whole() -> None:
    both = shape(ask(GPU), ask(MIG, 2))
    assert Modes().split(both, Amount({1: 3}), policy_set()) == {MIXED: Amount({1: 3})}


@pytest.mark.parametrize("asks", [(), (ask("nvidia.com/gpu.shared"),)])
def test_what_nothing_tells_the_form_of_is_unknown(asks: tuple[Ask, ...]) -> None:
    bare = replace(policy_set(), profiles={})
    assert Modes().split(shape(*asks), Amount({1: 1}), bare) == {UNKNOWN: Amount({1: 1})}


class Log:
    def __init__(self) -> None:
        self.records: list[Any] = []

    def record_lines(self, lines: Sequence[bytes]) -> None:
        self.records += [json.loads(line) for line in lines]


class Clock:
    """Time that passes only when somebody sleeps, and stops at an hour."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seconds = 0.0
        self.events: dict[float, Any] = {}

    async def sleep(self, seconds: float) -> None:
        await until(lambda: self.seconds < 3600)
        before = self.seconds
        for at in sorted(at for at in self.events if before <= at < before + seconds):
            self.seconds = at
            self.events.pop(at)()
        self.seconds = before + seconds


async def test_usage_is_written_in_spans_and_the_rest_of_it_at_the_end() -> None:
    world = World([tenant("chat", 8), tenant("lab", 8)], [node("n", 16)])
    clock, log = Clock(world), Log()
    (first,) = world.run("chat", 2)
    clock.events[100.5] = lambda: world.run("lab", 4)
    clock.events[200.0] = lambda: world.end(first)
    counted: list[tuple[Key, int]] = []
    recorder = UsageRecorder(
        world.state,
        log,
        lambda: BEGIN + timedelta(seconds=clock.seconds),
        lambda key, micro: counted.append((key, micro)),
        Runtime(clock=lambda: clock.seconds, sleep=clock.sleep),
        UsageSettings(count_seconds=15, write_seconds=1500),
    )
    async with running(recorder.run()):
        await until(lambda: clock.seconds >= 3600)
    chat, *labs = log.records
    assert chat == {
        "time": "2031-05-17T00:25:00Z",
        "kind": "usage",
        "from": "2031-05-17T00:00:00Z",
        "until": "2031-05-17T00:25:00Z",
        "tenant": "chat",
        "pool": "",
        "mode": "Exclusive",
        "microGpuSeconds": 400_000_000,
    }
    assert sum(lab["microGpuSeconds"] for lab in labs) == 4_000_000 * 3600 - 4_000_000 * 1005 // 10
    assert [lab["until"] for lab in labs][-1] == "2031-05-17T01:00:00Z"
    assert sum(micro for _, micro in counted) == sum(r["microGpuSeconds"] for r in log.records)


async def test_a_namespace_that_moves_is_metered_for_its_new_owner() -> None:
    world = World([tenant("chat", 8), tenant("lab", 8)], [node("n", 16)])
    clock, log = Clock(world), Log()
    world.run("chat", 1)

    def move() -> None:
        chat, lab = (world.tenants[name] for name in ("chat", "lab"))
        world.set_tenants(
            [
                replace(chat, namespaces=frozenset()),
                replace(lab, namespaces=frozenset({"chat", "lab"})),
            ]
        )

    clock.events[1000.0] = move
    recorder = UsageRecorder(
        world.state,
        log,
        lambda: BEGIN,
        lambda _key, _micro: None,
        Runtime(clock=lambda: clock.seconds, sleep=clock.sleep),
    )
    async with running(recorder.run()):
        await until(lambda: clock.seconds >= 3600)
    by_tenant = {"chat": 0, "lab": 0}
    for record in log.records:
        by_tenant[record["tenant"]] += record["microGpuSeconds"]
    assert by_tenant == {"chat": 1_000_000_000, "lab": 2_600_000_000}


async def test_what_ends_while_charges_are_taken_up_is_metered_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.tenants.usage._AT_ONCE", 1)
    world = World([tenant("chat", 8)], [node("n", 16)])
    clock, log = Clock(world), Log()
    *_, last = world.run("chat", 1, many=3)
    recorder = UsageRecorder(
        world.state,
        log,
        lambda: BEGIN,
        lambda _key, _micro: None,
        Runtime(clock=lambda: clock.seconds, sleep=clock.sleep),
    )
    async with running(recorder.run()):
        await asyncio.sleep(0)
        world.end(last)
        await until(lambda: clock.seconds >= 3600)
    assert sum(record["microGpuSeconds"] for record in log.records) == 2 * 3600 * 1_000_000
