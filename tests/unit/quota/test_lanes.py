# SPDX-License-Identifier: Apache-2.0
"""A webhook of others that hangs on one namespace's pods keeps no others from being released."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from policies.quota.pods import QuotaPod
from reconciler.kube.errors import ApiError, ForbiddenError, TimedOutError, UnavailableError
from reconciler.kube.intents import Intent
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Target
from reconciler.quota.lanes import Lanes
from reconciler.quota.releasing import Release, Releaser, ReleaseSettings
from tests.support.quota_pods import waiting_pod
from tests.support.running import running
from tests.support.waiting import until
from tests.unit.quota.test_releasing import Planned

HUNG = UnavailableError("failed calling webhook", status=500)


class Lease:
    async def declare(self, intents: Sequence[Intent]) -> None:
        pass


class Bench:
    """A server on which writes hang in namespace `slow`, until a test ends that."""

    def __init__(self, error: ApiError = HUNG) -> None:
        self.now = 1000.0
        self.error: ApiError | None = error
        self.over = asyncio.Event()
        self.tries: Counter[str] = Counter()
        self.released: list[str] = []
        self.waits: list[float] = []
        runtime = Runtime(clock=lambda: self.now, uniform=lambda _low, high: high)
        settings = ReleaseSettings(concurrency=8)
        self.outstanding = Outstanding(Lease())
        self.releaser = Releaser(self, self.outstanding, self, lambda: True, settings, runtime)

    async def get(self, target: Target) -> Mapping[str, object]:
        return {}

    async def patch_merge(self, target: Target, body: Mapping[str, Any]) -> Mapping[str, object]:
        self.tries[target.namespace] += 1
        if target.namespace == "slow":
            await self.over.wait()
            if self.error is not None:
                raise self.error
        uid = target.name.removeprefix("pod-")
        return {"metadata": {"name": target.name, "uid": uid, "resourceVersion": "2"}}

    def stands(self, release: Release) -> bool:
        return True

    def looked(self, raw: Mapping[str, Any]) -> None:
        self.releaser.seen(raw["metadata"]["uid"], raw["metadata"]["resourceVersion"])

    def landed(self, release: Release) -> None:
        self.released.append(release.pod.uid)

    def withdrawn(self, pod: QuotaPod) -> None:
        raise AssertionError(pod)

    def refused(self, pod: QuotaPod, error: ApiError, seconds: float) -> None:
        self.waits.append(seconds)

    async def hand_in(self, namespace: str, many: int) -> None:
        pods = [waiting_pod(f"{namespace}-{n}", namespace=namespace) for n in range(many)]
        await self.releaser.hand_in([Planned(pod) for pod in pods])


async def _hang(bench: Bench) -> None:
    """Have a first round of writes hang, and end."""
    await bench.hand_in("slow", 20)
    await until(lambda: bench.tries["slow"] == 6)
    bench.now += 10
    bench.over.set()


async def test_others_are_released_while_those_of_a_namespace_hang() -> None:
    bench = Bench()
    async with running(bench.releaser.run()):
        await bench.hand_in("slow", 20)
        await bench.hand_in("chat", 20)
        await until(lambda: bench.tries["chat"] == 20)
        assert bench.tries["slow"] == 6


async def test_what_is_behind_those_that_hang_is_set_aside_unsent() -> None:
    bench = Bench()
    async with running(bench.releaser.run()):
        await _hang(bench)
        await until(lambda: len(bench.waits) == 20)
        assert bench.tries["slow"] < 10
        assert sum(seconds >= 10 for seconds in bench.waits) > 10
        assert not len(bench.outstanding)
        assert bench.releaser.under_way == 0


async def test_a_namespace_where_writes_hung_has_two_places_until_one_is_answered() -> None:
    bench = Bench()
    async with running(bench.releaser.run()):
        await _hang(bench)
        await until(lambda: len(bench.waits) == 20)
        bench.over.clear()
        bench.error = None
        before = bench.tries["slow"]
        await bench.hand_in("slow", 2)
        await until(lambda: bench.tries["slow"] == before + 2)
        await bench.hand_in("chat", 1)
        bench.over.set()
        await until(lambda: not len(bench.outstanding))
        await bench.hand_in("slow", 20)
        await until(lambda: bench.tries["slow"] == before + 22)
    assert len(bench.waits) == 20


def test_only_what_fails_late_has_hung() -> None:
    lanes: Lanes[str] = Lanes(6)
    for seconds, error, hangs in (
        (0.1, HUNG, False),
        (9.0, ForbiddenError("no"), False),
        (9.0, None, False),
        (9.0, TimedOutError("no answer"), True),
        (0.1, ForbiddenError("no"), False),
    ):
        lanes.answered("a", seconds, error)
        assert (lanes.hangs("a") is not None) is hangs
        assert lanes.hangs("b") is None


def test_places_are_given_in_order_and_none_is_lost() -> None:
    lanes: Lanes[str] = Lanes(2)
    assert [lanes.enter("a") for _ in range(3)] == [True, True, False]
    assert lanes.enter("b")
    for item in "xyz":
        lanes.wait("a", item)
    assert lanes.leave("b") == ()
    assert lanes.leave("a") == ["x"]
    lanes.answered("a", 10.0, HUNG)
    assert lanes.leave("a") == ["y", "z"]
    assert [lanes.enter("a") for _ in range(3)] == [True, True, False]
