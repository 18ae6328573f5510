# SPDX-License-Identifier: Apache-2.0
"""A waiting pod says why, when it changes, and no more often than the API server should bear."""

import asyncio
from collections.abc import Mapping
from typing import Any

from policies.quota.pods import QuotaPod
from reconciler.kube.errors import ApiError, ConflictError, UnavailableError
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Target
from reconciler.quota.reasons import ReasonSettings, ReasonWriter
from tests.support.quota_pods import waiting_pod
from tests.support.running import running


class World:
    """A clock that each sleep moves on, a server, and the pods that wait."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.rounds = 0
        self.last_round = 0
        self.rested = asyncio.Event()
        self.busy: set[str] = set()
        self.waits: list[tuple[QuotaPod, str]] = []
        self.written: list[tuple[str, str, float]] = []
        self.answers: list[ApiError] = []
        runtime = Runtime(clock=lambda: self.now, sleep=self.sleep)
        self.writer = ReasonWriter(self, self, self.busy, runtime, ReasonSettings(**settings))

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.rounds += 1
        if self.rounds >= self.last_round:
            self.rested.set()
            await asyncio.Event().wait()

    async def patch_merge(self, target: Target, body: Mapping[str, Any]) -> Mapping[str, object]:
        if self.answers:
            raise self.answers.pop(0)
        (text,) = body["metadata"]["annotations"].values()
        self.written.append((target.name, text, self.now))
        self.waits = [
            (waiting_pod(pod.uid, reason=text) if pod.name == target.name else pod, wanted)
            for pod, wanted in self.waits
        ]
        return {}

    def absorb(self, raw: Mapping[str, object]) -> None:
        pass

    async def play(self, rounds: int) -> None:
        self.last_round = self.rounds + rounds
        self.rested.clear()
        async with running(self.writer.run(lambda: self.waits)):
            await self.rested.wait()


async def test_a_pod_that_waits_long_enough_is_told_once() -> None:
    world = World()
    world.waits = [(waiting_pod("a"), "NoRoom: no node fits")]
    await world.play(30)
    assert [(name, text) for name, text, _ in world.written] == [("pod-a", "NoRoom: no node fits")]
    assert world.written[0][2] >= 2.0


async def test_a_pod_that_goes_at_once_gets_no_reason() -> None:
    world = World()
    world.waits = [(waiting_pod("a"), "NoRoom: x")]
    await world.play(1)
    world.waits = []
    await world.play(10)
    assert world.written == []


async def test_another_kind_is_told_at_once_but_other_numbers_only_after_a_while() -> None:
    world = World()
    world.waits = [(waiting_pod("a", reason="OverCeiling: uses 1"), "OverCeiling: uses 2")]
    await world.play(30)
    assert world.written == []
    world.waits = [(world.waits[0][0], "NoRoom: no node fits")]
    await world.play(3)
    assert [text for _, text, _ in world.written] == ["NoRoom: no node fits"]
    world.waits = [(world.waits[0][0], "NoRoom: now two nodes")]
    await world.play(50)
    assert len(world.written) == 1
    await world.play(30)
    assert world.written[-1][1] == "NoRoom: now two nodes"


async def test_pods_that_are_being_released_are_left_alone() -> None:
    world = World()
    world.busy.add("a")
    world.waits = [(waiting_pod("a"), "NoRoom: x"), (waiting_pod("b"), "NoRoom: x")]
    await world.play(10)
    assert {name for name, _, _ in world.written} == {"pod-b"}


async def test_the_longest_waiting_are_told_first_and_so_many_a_round() -> None:
    world = World(per_round=2, wait_seconds=0.0)
    world.waits = [(waiting_pod(str(n), created_at=1000 - n), "NoRoom: x") for n in range(5)]
    await world.play(1)
    assert [name for name, _, _ in world.written][:2] == ["pod-4", "pod-3"]
    assert len(world.written) == 2
    await world.play(5)
    assert len(world.written) == 5


async def test_a_write_that_fails_is_tried_again_in_a_later_round() -> None:
    world = World()
    world.answers = [ConflictError("moved", status=409), UnavailableError("down")]
    world.waits = [(waiting_pod("a"), "NoRoom: x")]
    await world.play(20)
    assert [name for name, _, _ in world.written] == ["pod-a"]


async def test_a_namespace_where_a_write_hangs_keeps_no_others_waiting() -> None:
    world = World(concurrency=1, wait_seconds=0.0)
    tries: list[str] = []
    patch = world.patch_merge

    async def hang(target: Target, body: Mapping[str, Any]) -> Mapping[str, object]:
        tries.append(target.namespace)
        if target.namespace == "slow":
            world.now += 10
            raise UnavailableError("failed calling webhook", status=500)
        return await patch(target, body)

    world.patch_merge = hang  # type: ignore[method-assign]
    slow = [waiting_pod(f"s{n}", namespace="slow", created_at=1) for n in range(20)]
    world.waits = [(pod, "NoRoom: x") for pod in (*slow, waiting_pod("a"))]
    await world.play(2)
    assert tries == ["slow", "chat"]
    await world.play(80)
    assert 1 < tries.count("slow") < 4
