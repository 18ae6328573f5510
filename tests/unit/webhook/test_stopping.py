# SPDX-License-Identifier: Apache-2.0
"""Stopping without losing a review, as the API server's connections see it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from reconciler.runtime.signals import StopEvents
from tests.support.certificates import Pki
from tests.support.reviews import UID, body, review
from tests.support.serving import RecordingAudit, client, make_serving, make_tls, running
from tests.support.waiting import until
from webhook.server import Listen, WebhookServer, serve

REVIEW = body(review())
HEAD = (
    b"POST /mutate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % len(REVIEW)
)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LONG = 30.0


@asynccontextmanager
async def connected(server: WebhookServer, pki: Pki) -> AsyncIterator[Streams]:
    """Open a connection, and say at the end of the block that it is done with."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=pki.client_context(), server_hostname="localhost"
    )
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(streams: Streams) -> bytes:
    """Send a review and return its answer."""
    streams[1].write(HEAD + REVIEW)
    return await answer(streams[0])


async def answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return head + await reader.readexactly(length)


async def ends(reader: asyncio.StreamReader) -> bool:
    """Tell that the server closes the connection without another byte."""
    async with asyncio.timeout(10):
        return await reader.read() == b""


async def test_while_stopping_reviews_are_answered_and_connections_closed_one_by_one(
    pki: Pki,
) -> None:
    hurry = asyncio.Event()
    async with (
        running(make_serving(), pki, grace=LONG) as server,
        connected(server, pki) as used,
        connected(server, pki) as idle,
        client(server, pki) as http,
    ):
        assert b"Connection: close" not in await ask(used)
        async with http.get("/readyz") as got:
            assert got.status == 200
        stopping = asyncio.create_task(server.stop(hurry))
        await asyncio.sleep(0)
        async with http.get("/readyz") as got:
            assert got.status == 503
            assert "the process is stopping" in await got.text()
            assert got.headers["Connection"] == "close"
        last = await ask(used)
        assert UID.encode() in last
        assert b"Connection: close\r\n" in last
        assert await ends(used[0])
        async with connected(server, pki) as late:
            assert b"Connection: close\r\n" in await ask(late)
        assert not stopping.done()
        hurry.set()
        await stopping
        assert await ends(idle[0])
        with pytest.raises(OSError, match="refused"):
            await asyncio.open_connection("127.0.0.1", server.port)


async def test_a_review_whose_body_is_under_way_is_answered_before_the_end(pki: Pki) -> None:
    async with running(make_serving(), pki) as server, connected(server, pki) as slow:
        slow[1].write(HEAD + REVIEW[:100])
        await until(lambda: server._handlers.in_flight.count == 1)
        stopping = asyncio.create_task(server.stop())
        await until(lambda: not _listens(server))
        slow[1].write(REVIEW[100:])
        assert UID.encode() in await answer(slow[0])
        assert await ends(slow[0])
        await stopping


def _listens(server: WebhookServer) -> bool:
    return server._listener is not None and server._listener.is_serving()


async def test_a_body_that_never_ends_cannot_hold_the_process(
    pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(make_serving(), pki, drain=0.05) as server, connected(server, pki) as slow:
        slow[1].write(HEAD)
        await until(lambda: server._handlers.in_flight.count == 1)
        async with asyncio.timeout(5):
            await server.stop()
        assert await ends(slow[0])
    assert "cut off in the middle: 1" in caplog.text


async def test_serving_ends_with_its_event_and_tells_its_port_when_it_is_open(pki: Pki) -> None:
    events = StopEvents()
    ports: list[int] = []
    server = WebhookServer(make_serving(), make_tls(pki), Listen("127.0.0.1", 0, grace=LONG))
    task = asyncio.create_task(serve(server, events, ports.append))
    await until(lambda: bool(ports))
    async with connected(server, pki) as streams:
        assert UID.encode() in await ask(streams)
    assert ports == [server.port]
    events.stop.set()
    events.hurry.set()
    async with asyncio.timeout(5):
        await task


async def test_a_cancelled_server_still_finishes_what_it_has(pki: Pki) -> None:
    server = WebhookServer(make_serving(), make_tls(pki), Listen("127.0.0.1", 0, grace=0))
    ports: list[int] = []
    task = asyncio.create_task(serve(server, StopEvents(), ports.append))
    await until(lambda: bool(ports))
    async with connected(server, pki) as slow:
        slow[1].write(HEAD + REVIEW[:100])
        await until(lambda: server._handlers.in_flight.count == 1)
        task.cancel()
        await until(lambda: not _listens(server))
        slow[1].write(REVIEW[100:])
        assert UID.encode() in await answer(slow[0])
    with pytest.raises(asyncio.CancelledError):
        await task


@asynccontextmanager
async def accepted(server: WebhookServer, pki: Pki) -> AsyncIterator[Streams]:
    """Open a connection that has been accepted, and whose handshake has not begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        async with connected(server, pki):  # they are accepted in turn
            yield reader, writer
    finally:
        writer.close()


async def test_a_handshake_that_began_before_the_end_leads_to_an_answer(pki: Pki) -> None:
    async with running(make_serving(), pki) as server, accepted(server, pki) as late:
        stopping = asyncio.create_task(server.stop())
        await until(lambda: not _listens(server))
        await late[1].start_tls(pki.client_context(), server_hostname="localhost")
        assert b"Connection: close\r\n" in await ask(late)
        await stopping


async def test_nothing_is_answered_that_would_not_be_recorded(pki: Pki) -> None:
    serving = make_serving()
    async with running(serving, pki) as server, accepted(server, pki) as late:
        await server.stop()
        with suppress(ConnectionError):  # which of the two ends sees it first is open
            await late[1].start_tls(pki.client_context(), server_hostname="localhost")
            late[1].write(HEAD + REVIEW)
            assert await ends(late[0])
    assert isinstance(serving.audit, RecordingAudit)
    assert serving.audit.entries == []


PROGRAM = Path(__file__).with_name("program.py")


class Process:
    """The webhook as a process of its own, with a real audit log; its core allows everything."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port

    @classmethod
    @asynccontextmanager
    async def started(cls, pki: Pki, audit: Path, grace: float) -> AsyncIterator["Process"]:
        arguments = (PROGRAM, pki.certificate, pki.key, audit, grace)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *map(str, arguments),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(20):
                yield cls(process, int(await process.stdout.readline()))
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def ask_until_told_to_leave(started: Process, pki: Pki, answers: list[bytes]) -> None:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", started.port, ssl=pki.client_context(), server_hostname="localhost"
    )
    try:
        while not answers or b"Connection: close" not in answers[-1]:
            answers.append(await ask((reader, writer)))
        assert await ends(reader)
    finally:
        writer.close()


async def test_sigterm_loses_no_review_and_no_audit_line(pki: Pki, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with Process.started(pki, audit, grace=0.5) as started:
        answers: list[list[bytes]] = [[] for _ in range(8)]
        async with asyncio.TaskGroup() as tasks:
            for each in answers:
                tasks.create_task(ask_until_told_to_leave(started, pki, each))
            await until(lambda: all(len(each) > 20 for each in answers))
            started.process.send_signal(signal.SIGTERM)
        assert await started.process.wait() == 0
    lines = audit.read_bytes().splitlines()
    assert len(lines) == sum(map(len, answers))
    assert all(json.loads(line)["uid"] == UID for line in lines)


async def test_a_second_signal_skips_the_grace_period(pki: Pki, tmp_path: Path) -> None:
    async with Process.started(pki, tmp_path / "audit.jsonl", grace=LONG) as started:
        answers: list[bytes] = []
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ask_until_told_to_leave(started, pki, answers))
            await until(lambda: bool(answers))
            started.process.send_signal(signal.SIGTERM)
        assert started.process.returncode is None
        started.process.send_signal(signal.SIGINT)
        assert await started.process.wait() == 0


async def test_a_client_that_does_not_read_cannot_keep_the_process(
    pki: Pki, tmp_path: Path
) -> None:
    async with Process.started(pki, tmp_path / "audit.jsonl", grace=0.1) as started:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", started.port, ssl=pki.client_context(), server_hostname="localhost"
        )
        cast("asyncio.Transport", writer.transport).pause_reading()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):  # until neither side takes any more
                    while True:
                        writer.write((HEAD + REVIEW) * 50)
                        await writer.drain()
            started.process.send_signal(signal.SIGTERM)
            assert await started.process.wait() == 0
        finally:
            writer.transport.abort()
