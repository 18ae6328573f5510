# SPDX-License-Identifier: Apache-2.0
"""The endpoints over real connections: what is no question is told, and nothing stops pods."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop

from certs.files import ensure
from certs.names import LOOPBACK
from reconciler.runtime.health import Condition, Readiness
from reconciler.runtime.metrics import Metrics
from tests.unit.extender.building import World, raw_pod, shared
from webhook.extender import handlers
from webhook.extender.handlers import Asked, Handlers
from webhook.extender.metrics import ExtenderCounts
from webhook.server import HttpServer, Listen
from webhook.tls import ServerTls
from webhook.tls_sources import PemFiles

_READY = Readiness((Condition("active", ok=True),))


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


class Broken:
    """Knows no answer: each is a fault."""

    def filter(self, _: object) -> Any:
        raise RuntimeError("a fault")

    def prioritize(self, _: object) -> Any:
        raise RuntimeError("a fault")

    def choose(self, _: object) -> Any:
        raise RuntimeError("a fault")

    def preempt(self, _: object) -> Any:
        raise RuntimeError("a fault")


def _always() -> bool:
    return True


@asynccontextmanager
async def serving(
    asked: Asked,
    readiness: Readiness = _READY,
    certificates: Path | None = None,
    is_active: Callable[[], bool] = _always,
) -> AsyncIterator[str]:
    """Serve on a free port of the loopback; yield the address."""
    metrics = Metrics()
    tls = None
    if certificates is not None:
        ensure(certificates, LOOPBACK, datetime.now(UTC))
        tls = ServerTls(PemFiles(certificates / "tls.crt", certificates / "tls.key"), metrics)
    found = Handlers(asked, lambda: readiness, ExtenderCounts(metrics, ()), is_active)
    listen = Listen(host="127.0.0.1", port=0, grace=0.0)
    server = HttpServer(found, tls, listen, "extender")
    await server.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.port}"
    finally:
        await server.stop()


def _world() -> World:
    world = World()
    for name in ("a", "b"):
        world.node(shared(name))
    return world


_QUESTION = {"Pod": raw_pod("p"), "Nodes": None, "NodeNames": ["a", "b"]}


@pytest.mark.parametrize("is_tls", [False, True])
async def test_a_scheduler_is_answered_over_plain_http_and_over_tls(
    is_tls: bool, tmp_path: Path
) -> None:
    served = serving(_world().answers, certificates=tmp_path if is_tls else None)
    async with served as url, aiohttp.ClientSession() as session:
        for verb, answer in (
            ("filter", ["a", "b"]),
            ("prioritize", [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 9}]),
        ):
            path = f"{url}/scheduler/{verb}"
            async with session.post(path, json=_QUESTION, ssl=False) as response:
                assert response.status == 200
                found = await response.json()
                assert (found["NodeNames"] if verb == "filter" else found) == answer


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("POST", "/scheduler/filter", b"{", 400, "the body is not JSON"),
        ("POST", "/scheduler/prioritize", b"{}", 400, "missing required field `Pod`"),
        ("POST", "/scheduler/preempt", b'{"Pod": 1}', 400, "Pod is not an object"),
        ("GET", "/scheduler/filter", b"", 405, "questions are sent by POST"),
        ("POST", "/scheduler/bind", b"{}", 404, "there is no such path"),
        ("POST", "/readyz", b"", 405, "/readyz is read by GET"),
    ],
)
async def test_what_is_no_question_gets_a_status_and_a_line(
    method: str, path: str, body: bytes, status: int, told: str
) -> None:
    async with (
        serving(_world().answers) as url,
        aiohttp.ClientSession() as session,
        session.request(method, url + path, data=body) as response,
    ):
        assert response.status == status
        text = await response.text()
    assert told in text
    assert "Traceback" not in text


async def test_a_body_above_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "MAX_BODY_BYTES", 1000)
    async with serving(_world().answers) as url, aiohttp.ClientSession() as session:
        path = f"{url}/scheduler/filter"
        async with session.post(path, data=b"x" * 1001) as response:
            assert response.status == 413


async def test_a_body_that_does_not_come_is_waited_for_no_longer_than_a_scheduler_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handlers, "BODY_SECONDS", 0.05)
    async with serving(_world().answers) as url:
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()
        await writer.wait_closed()


async def test_a_fault_of_our_own_is_logged_and_lets_every_node_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    answers: dict[str, object] = {}
    async with serving(Broken()) as url, aiohttp.ClientSession() as session:
        for verb in ("filter", "prioritize", "choose", "preempt"):
            async with session.post(f"{url}/scheduler/{verb}", json=_QUESTION) as response:
                assert response.status == 200
                answers[verb] = await response.json()
        async with session.get(f"{url}/metrics") as response:
            metrics = await response.text()
    assert answers["filter"] == {
        "Nodes": None,
        "NodeNames": ["a", "b"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert answers["choose"] == answers["filter"]
    assert answers["prioritize"] == [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 0}]
    assert answers["preempt"] == {"NodeNameToMetaVictims": {}}
    for verb in answers:
        assert f'sluice_extender_failures_total{{verb="{verb}"}} 1.0' in metrics


async def test_one_that_is_not_active_is_alive_and_not_ready() -> None:
    waiting = Readiness((Condition("active", ok=False, message="another extender is active"),))
    async with serving(_world().answers, waiting) as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/healthz") as response:
            assert response.status == 200
        async with session.get(f"{url}/readyz") as response:
            assert response.status == 503
            assert json.loads(await response.text())["conditions"][0]["message"] == (
                "another extender is active"
            )


async def test_a_scheduler_asks_anew_where_to_ask_once_its_extender_is_not_active_any_more() -> (
    None
):
    active = [True, True, False]
    told: list[str | None] = []
    served = serving(_world().answers, is_active=lambda: active.pop(0))
    async with served as url, aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.post(f"{url}/scheduler/filter", json=_QUESTION) as response:
                assert (await response.json())["NodeNames"] == ["a", "b"]
                told.append(response.headers.get("Connection"))
    assert told == [None, None, "close"]


async def test_one_pod_after_the_other_no_card_is_given_twice_though_none_is_seen_bound() -> None:
    world = _world()
    async with serving(world.answers) as url, aiohttp.ClientSession() as session:

        async def schedule(number: int) -> str | None:
            body = {**_QUESTION, "Pod": raw_pod(f"p{number}", mib=60_000)}
            async with session.post(f"{url}/scheduler/filter", json=body) as response:
                names = (await response.json())["NodeNames"]
            if len(names) < 2:
                return names[0] if names else None
            body["NodeNames"] = names
            async with session.post(f"{url}/scheduler/prioritize", json=body) as response:
                scores = await response.json()
            return next(str(each["Host"]) for each in scores if each["Score"] == 10)

        # A scheduler asks for one pod after the other, and binds while it asks for the next.
        found = [await schedule(number) for number in range(4)]
    assert sorted(name for name in found if name) == ["a", "b"]
