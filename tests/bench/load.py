# SPDX-License-Identifier: Apache-2.0
"""Sends reviews of so many different pods in turn, and prints what came of it as JSON.

A program of its own, so that the server's core does nothing else; written on asyncio's protocols,
since an HTTP client would need more of a core than the server that it measures.
`python -m tests.bench.load CA PORT CONNECTIONS SECONDS PODS`
"""

import asyncio
import itertools
import json
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import uvloop

from tests.bench.pods import gpu_review


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent: on how many connections, for how long, and of how many different pods."""

    connections: int
    seconds: float
    pods: int


@dataclass(slots=True)
class Results:
    """Seconds of each answered review; from when and until when they are sent."""

    since: float
    until: float
    latencies: list[float] = field(default_factory=list)
    failures: int = 0


class Sender(asyncio.Protocol):
    """One connection: sends the next request when the answer to the last is whole."""

    def __init__(
        self, requests: Iterator[bytes], results: Results, done: "asyncio.Future[None]"
    ) -> None:
        self._requests = requests
        self._results = results
        self._done = done
        self._received = b""
        self._started = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has another base
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return
        self._results.latencies.append(time.perf_counter() - self._started)
        self._results.failures += not head.startswith(b"HTTP/1.1 200 ")
        self._received = b""
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self._done.done():
            self._results.failures += 1
            self._done.set_result(None)

    def _send(self) -> None:
        assert self._transport is not None
        self._started = time.perf_counter()
        if self._started < self._results.until:
            self._transport.write(next(self._requests))
        elif not self._done.done():
            self._done.set_result(None)
            self._transport.close()


def _length(head: bytes) -> int:
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    return int(head[start:].partition(b"\r\n")[0])


def make_request(body: bytes) -> bytes:
    """Return the request as the API server's client sends it."""
    lines = (
        "POST /mutate?timeout=10s HTTP/1.1",
        "Host: localhost",
        "User-Agent: kube-apiserver-admission",
        f"Content-Length: {len(body)}",
        "Accept: application/json, */*",
        "Content-Type: application/json",
        "Accept-Encoding: gzip",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


async def run(ca: str, port: int, load: Load) -> Results:
    """Keep all connections busy for so long."""
    loop = asyncio.get_running_loop()
    context = ssl.create_default_context(cafile=ca)
    requests = itertools.cycle([make_request(gpu_review(number)) for number in range(load.pods)])
    since = time.perf_counter()
    results = Results(since, since + load.seconds)
    dones = [loop.create_future() for _ in range(load.connections)]
    for done in dones:
        await loop.create_connection(
            lambda done=done: Sender(requests, results, done),  # type: ignore[misc] # mypy#12557
            "127.0.0.1",
            port,
            ssl=context,
        )
    await asyncio.gather(*dones)
    return results


def main(ca: str, port: str, connections: str, seconds: str, pods: str) -> None:
    """Run, and print one line."""
    load = Load(int(connections), float(seconds), int(pods))
    results = uvloop.run(run(ca, int(port), load))
    elapsed = time.perf_counter() - results.since
    latencies = sorted(results.latencies)
    report = {
        "reviews": len(latencies),
        "failures": results.failures,
        "seconds": elapsed,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
    }
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
