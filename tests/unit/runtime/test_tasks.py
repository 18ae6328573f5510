# SPDX-License-Identifier: Apache-2.0
"""Activities that live and die together."""

import asyncio
import logging

import pytest

from reconciler.runtime.tasks import supervise
from tests.support.waiting import until


class Activity:
    """Runs until it is told to end, and remembers how it ended."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.cancelled = False
        self.cleaned = False

    async def run(self) -> None:
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            await asyncio.sleep(0)
            self.cleaned = True
            raise


async def failing(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def test_the_first_to_end_stops_the_others_after_their_cleaning() -> None:
    first, second, third = Activity(), Activity(), Activity()
    together = asyncio.create_task(
        supervise({"first": first.run(), "second": second.run(), "third": third.run()})
    )
    await asyncio.sleep(0)
    second.end.set()
    await together
    assert [each.cancelled for each in (first, second, third)] == [True, False, True]
    assert first.cleaned
    assert third.cleaned


async def test_a_failure_stops_the_others_and_is_raised_as_it_was() -> None:
    other = Activity()
    error = OSError("port in use")
    with pytest.raises(OSError, match="port in use") as caught:
        await supervise({"other": other.run(), "failing": failing(error)})
    assert caught.value is error
    assert other.cleaned


async def test_several_failures_are_raised_together() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await supervise({"a": failing(OSError("a")), "b": failing(ValueError("b"))})
    assert [str(error) for error in caught.value.exceptions] == ["a", "b"]


async def test_a_failure_while_being_stopped_is_not_lost() -> None:
    async def fails_when_stopped() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("while stopping")

    with pytest.raises(LookupError, match="while stopping"):
        await supervise({"a": fails_when_stopped(), "b": asyncio.sleep(0)})


async def test_one_that_does_not_stop_is_named_and_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    release = asyncio.Event()
    ended = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    async with asyncio.timeout(5):
        await supervise({"stubborn": stubborn(), "short": asyncio.sleep(0)}, patience_seconds=0.01)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith("stubborn did not stop within 0.01 s")
    assert "stubborn" in record.getMessage().split("at ", 1)[1]
    release.set()
    await ended.wait()


async def test_cancelling_the_supervisor_stops_all() -> None:
    one, two = Activity(), Activity()
    together = asyncio.create_task(supervise({"one": one.run(), "two": two.run()}))
    await asyncio.sleep(0)
    together.cancel()
    with pytest.raises(asyncio.CancelledError):
        await together
    await until(lambda: one.cleaned and two.cleaned)


async def test_what_ended_first_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await supervise({"webhook": Activity().run(), "quota": asyncio.sleep(0)})
    assert "quota has ended, so the rest is stopped" in caplog.text
