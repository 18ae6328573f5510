# SPDX-License-Identifier: Apache-2.0
"""A pod that was given a node and never came: who was refused for it meanwhile is woken."""

import asyncio

from policies.placement.model import ModelSettings, Release
from tests.support.running import running
from tests.support.waiting import until
from tests.unit.extender.building import READER, World, raw_pod, shared
from tests.unit.extender.test_waking import Patches
from webhook.extender.expiring import keep_expiring
from webhook.extender.waking import Waker
from webhook.extender.wire import Question

_ASSUME_SECONDS = 30.0


def _world() -> World:
    """One node of one card, 60,000 MiB of which a pod `p` was given."""
    world = World(ModelSettings(assume_seconds=_ASSUME_SECONDS))
    world.node(shared("a"))
    world.answers.filter(Question(raw_pod("p", mib=60_000), ("a",)))
    return world


def _released(world: World) -> list[Release]:
    told: list[Release] = []
    world.answers.released = told.append
    return told


def test_an_assumption_that_runs_out_is_told_with_its_node_and_its_beginning() -> None:
    world = _world()
    told, began = _released(world), world.clock()
    world.clock.now += _ASSUME_SECONDS - 0.1
    world.answers.expire()
    assert told == []
    world.clock.now += 0.1
    world.answers.expire()
    world.answers.expire()
    assert told == [Release("a", began)]


def test_an_assumption_that_is_found_to_be_over_by_a_question_is_told_as_well() -> None:
    world = _world()
    told = _released(world)
    world.clock.now += _ASSUME_SECONDS
    assert world.answers.filter(Question(raw_pod("q", mib=60_000), ("a",))).names
    assert [release.node for release in told] == ["a"]


def test_a_pod_that_is_scheduled_anew_frees_the_node_that_it_was_given_before() -> None:
    world = _world()
    world.node(shared("b"))
    told, began = _released(world), world.clock()
    world.clock.now += 5
    world.answers.filter(Question(raw_pod("p", mib=60_000), ("b",)))
    assert told == [Release("a", began)]
    assert world.model.node_of("uid-p") == "b"


def test_one_cycle_of_the_scheduler_frees_nothing() -> None:
    world = _world()
    world.node(shared("b"))
    told = _released(world)
    question = Question(raw_pod("q", mib=10_000), ("a", "b"))
    world.answers.filter(question)
    world.answers.prioritize(question)
    assert told == []


def test_a_pod_that_is_bound_in_time_frees_nothing() -> None:
    world = _world()
    told = _released(world)
    world.bound(raw_pod("p", mib=60_000), "a")
    world.clock.now += 2 * _ASSUME_SECONDS
    world.answers.expire()
    assert told == []
    assert world.model.assumption("uid-p") is None


def test_what_is_only_assumed_is_known_as_such_until_it_is_seen_bound_or_gone() -> None:
    world = _world()
    assert world.model.assumption("uid-p") == Release("a", world.clock())
    world.model.put_pod(READER.read(raw_pod("p", mib=60_000)))
    assert world.model.assumption("uid-p") is not None
    world.model.remove_pod("uid-p")
    assert world.model.assumption("uid-p") is None


async def test_assumptions_run_out_while_nobody_asks() -> None:
    world = _world()
    told = _released(world)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        world.clock.now += seconds
        await asyncio.sleep(0)

    async with running(keep_expiring(world.answers.expire, sleep)):
        await until(lambda: bool(told))
    assert world.clock() >= 1000 + _ASSUME_SECONDS
    assert not world.model.assumed
    assert set(slept) == {1.0}


async def _woken(*, refused_at: float, since: float) -> list[str]:
    client = Patches()
    waker = Waker(client, 800)
    waker.kept_out(refused_at)
    waker.released(Release("a", since))
    async with running(waker.run()):
        for _ in range(10):
            await asyncio.sleep(0)
    return [name for name, _ in client.patched]


async def test_whoever_was_refused_while_it_counted_is_woken_however_long_ago_that_was() -> None:
    assert await _woken(refused_at=100.0, since=100.0) == ["a"]
    assert await _woken(refused_at=155.0, since=100.0) == ["a"]


async def test_nobody_is_woken_who_was_refused_before_it_counted() -> None:
    assert await _woken(refused_at=99.9, since=100.0) == []


async def test_a_refusal_by_the_model_wakes_once_what_refused_it_has_run_out() -> None:
    world = _world()
    client = Patches()
    waker = Waker(client, 800)
    world.answers.kept_out, world.answers.released = waker.kept_out, waker.released
    assert not world.answers.filter(Question(raw_pod("q", mib=60_000), ("a",))).names
    world.clock.now += _ASSUME_SECONDS
    async with running(waker.run()):
        world.answers.expire()
        await until(lambda: bool(client.patched))
    assert [name for name, _ in client.patched] == ["a"]
