# SPDX-License-Identifier: Apache-2.0
"""Telemetry that several run at a time: it samples once, and its faults are everybody's."""

import asyncio
from typing import Any, cast

from reconciler.kube.client import Client
from reconciler.telemetry.config import TelemetryConfig
from reconciler.telemetry.kinds import SourceKind
from reconciler.telemetry.run import Telemetry
from tests.support.waiting import until


class _Faulty:
    """A client with a fault of our own, once it may show."""

    def __init__(self) -> None:
        self.may_fail = asyncio.Event()
        self.lists = 0

    async def list_page(self, *_: Any, **__: Any) -> None:
        self.lists += 1
        await self.may_fail.wait()
        raise ZeroDivisionError


def _telemetry(client: _Faulty) -> Telemetry:
    return Telemetry(cast("Client", client), TelemetryConfig(source=SourceKind.SCRAPE))


async def test_a_fault_is_raised_to_all_who_run_it_and_it_can_be_run_again() -> None:
    client = _Faulty()
    telemetry = _telemetry(client)
    runs = [asyncio.create_task(telemetry.run(writes=writes)) for writes in (True, False)]
    await until(lambda: client.lists > 0)
    assert client.lists == 1
    client.may_fail.set()
    found = await asyncio.gather(*runs, return_exceptions=True)
    assert all(isinstance(error, ExceptionGroup) for error in found)
    again = await asyncio.gather(telemetry.run(), return_exceptions=True)
    assert isinstance(again[0], ExceptionGroup)
    assert client.lists == 2


async def test_who_stops_first_does_not_stop_it_and_who_stops_last_does() -> None:
    client = _Faulty()
    telemetry = _telemetry(client)
    before = asyncio.all_tasks()
    first, last = (asyncio.create_task(telemetry.run(writes=writes)) for writes in (True, False))
    await until(lambda: client.lists == 1)
    first.cancel()
    await asyncio.wait({first})
    assert not last.done()
    last.cancel()
    await asyncio.wait({last})
    assert asyncio.all_tasks() == before, "nothing is left running"
    assert client.lists == 1
