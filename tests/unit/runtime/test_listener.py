# SPDX-License-Identifier: Apache-2.0
"""Probes and metrics of a process that answers no reviews."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest

from reconciler.runtime.health import Readiness, policies_condition
from reconciler.runtime.listener import Address, Listener
from reconciler.runtime.metrics import Metrics

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def listening(generation: Callable[[], str | None]) -> AsyncIterator[str]:
    """Run a listener and give its address."""
    listener = Listener(
        Address(LOOPBACK, 0), Metrics(), lambda: Readiness((policies_condition(generation()),))
    )
    async with listener.opened():
        yield f"http://{LOOPBACK}:{listener.port}"


async def test_readiness_is_asked_for_anew_with_each_probe() -> None:
    found: list[str | None] = [None]
    async with listening(lambda: found[0]) as address, aiohttp.ClientSession() as session:
        async with session.get(f"{address}/readyz") as answer:
            assert answer.status == 503
            assert (await answer.json())["conditions"][0]["name"] == "policies-loaded"
        found[0] = "7c1f"
        async with session.get(f"{address}/readyz") as answer:
            assert answer.status == 200
            assert (await answer.json())["ready"] is True


async def test_a_process_that_is_not_ready_is_alive_and_gives_its_metrics() -> None:
    async with listening(lambda: None) as address, aiohttp.ClientSession() as session:
        async with session.get(f"{address}/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        async with session.get(f"{address}/metrics") as answer:
            assert answer.content_type == "text/plain"
            assert "sluice_leader 0.0" in await answer.text()


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("POST", "/readyz", 405)]
)
async def test_it_answers_nothing_else(method: str, path: str, status: int) -> None:
    async with (
        listening(lambda: "7c1f") as address,
        aiohttp.ClientSession() as session,
        session.request(method, f"{address}{path}") as answer,
    ):
        assert answer.status == status


async def test_once_stopped_nobody_is_answered_and_open_connections_are_closed() -> None:
    async with aiohttp.ClientSession() as session:
        async with listening(lambda: "7c1f") as address, session.get(f"{address}/healthz"):
            pass
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{address}/healthz")
