# SPDX-License-Identifier: Apache-2.0
"""Signals as events."""

import asyncio
import os
import signal

import pytest

from reconciler.runtime.signals import stop_on_signals


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_stops_and_the_second_hurries(first: signal.Signals) -> None:
    with stop_on_signals() as events:
        os.kill(os.getpid(), first)
        async with asyncio.timeout(5):
            await events.stop.wait()
        assert not events.hurry.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        async with asyncio.timeout(5):
            await events.hurry.wait()


async def test_after_the_block_signals_are_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
