# SPDX-License-Identifier: Apache-2.0
"""Long work pauses for others, and a list that is being published is known to be torn."""

import asyncio

from reconciler.kube.client import Client
from reconciler.kube.reflector import Reflector, ReflectorSettings
from reconciler.kube.resources import PODS, Selection
from reconciler.kube.slices import in_slices
from tests.support.fake_apiserver import FakeApiServer
from tests.support.running import running


async def test_others_have_their_turn_each_time_that_a_slice_is_over() -> None:
    now, turns, done = [0.0], [0], list[int]()

    def act(item: int) -> None:
        done.append(item)
        now[0] += 1.0

    async def other() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async with running(other()):
        await in_slices(range(10), act, 3.0, lambda: now[0])
        assert turns[0] in (3, 4)
        before = turns[0]
        await in_slices(range(10), act, 100.0, lambda: now[0])
        assert turns[0] == before
    assert done == [*range(10), *range(10)]


async def test_a_picture_is_whole_only_when_all_of_a_list_was_told(
    fake: FakeApiServer, client: Client
) -> None:
    for number in range(5):
        fake.put("/api/v1/pods", {"metadata": {"name": f"p{number}", "namespace": "team"}})
    reflector = Reflector(
        client,
        Selection(PODS),
        lambda item: str(item["metadata"]),
        ReflectorSettings(slice_seconds=0.0),
    )
    told: list[bool] = []
    between: list[tuple[int, bool]] = []

    async def other() -> None:
        while True:
            between.append((len(told), reflector.is_whole))
            await asyncio.sleep(0)

    reflector.subscribe(lambda _change: told.append(reflector.is_whole))
    async with running(other()), running(reflector.run()):
        await reflector.synced.wait()
        assert reflector.is_whole
    assert told == [False] * 5
    assert {(count, False) for count in range(1, 5)} <= set(between)
    assert (0, True) in between
