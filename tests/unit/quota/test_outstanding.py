# SPDX-License-Identifier: Apache-2.0
import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.kube.intents import MAX_INTENTS, Intent, IntentKind, encode_intents
from reconciler.kube.outstanding import Outstanding


def intent(uid: str) -> Intent:
    return Intent(IntentKind.RELEASE, "team", f"pod-{uid}", uid, "7")


class Lease:
    def __init__(self) -> None:
        self.written: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def declare(self, intents: Sequence[Intent]) -> None:
        await self.gate.wait()
        self.written.append([item.uid for item in intents])


async def test_a_declaration_names_what_is_outstanding_already() -> None:
    lease = Lease()
    outstanding = Outstanding(lease, [intent("past")])
    await outstanding.declare([intent("a")])
    await outstanding.declare([intent("b")])
    assert lease.written == [["past", "a"], ["past", "a", "b"]]


async def test_what_is_settled_is_left_out_of_the_next_declaration() -> None:
    lease = Lease()
    outstanding = Outstanding(lease)
    await outstanding.declare([intent("a")])
    outstanding.settle("a")
    await outstanding.declare([intent("b")])
    assert lease.written[-1] == ["b"]
    assert "a" not in outstanding


async def test_declarations_that_come_while_one_is_written_share_the_next_write() -> None:
    lease = Lease()
    lease.gate.clear()
    outstanding = Outstanding(lease)
    tasks = [asyncio.create_task(outstanding.declare([intent(uid)])) for uid in "abcd"]
    for _ in range(3):
        await asyncio.sleep(0)
    lease.gate.set()
    await asyncio.gather(*tasks)
    assert lease.written[-1] == ["a", "b", "c", "d"]
    assert len(lease.written) <= 2


async def test_nobody_goes_on_before_the_lease_names_the_intent() -> None:
    lease = Lease()
    lease.gate.clear()
    outstanding = Outstanding(lease)
    task = asyncio.create_task(outstanding.declare([intent("a")]))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    lease.gate.set()
    await task


async def test_releases_leave_room_on_the_lease_and_too_many_are_an_error() -> None:
    outstanding = Outstanding(Lease())
    await outstanding.declare([intent(str(n)) for n in range(MAX_INTENTS)])
    assert outstanding.room == 0
    with pytest.raises(ValueError, match="room"):
        await outstanding.declare([intent("one-more")])
    await outstanding.declare([intent("3")])


async def test_long_intents_fill_the_lease_before_there_are_too_many() -> None:
    lease = Lease()
    outstanding = Outstanding(lease)
    long = [replace(intent(str(n)), charge="x" * 1000) for n in range(300)]
    count = outstanding.fitting(long)
    assert 200 < count < 300
    await outstanding.declare(long[:count])
    encode_intents(tuple(outstanding.intents.values()))
    assert outstanding.fitting(long[count:]) == 0
    assert outstanding.fitting(long[:count]) == count
    with pytest.raises(ValueError, match="room"):
        await outstanding.declare(long[count : count + 1])
    assert long[count].uid not in outstanding


async def test_what_was_inherited_is_settled_without_what_was_declared_since() -> None:
    past = intent("a")
    outstanding = Outstanding(Lease(), [past])
    await outstanding.declare([replace(past, kind=IntentKind.EVICTION)])
    outstanding.settle_only(past)
    assert "a" in outstanding
