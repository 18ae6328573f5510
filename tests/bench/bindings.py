# SPDX-License-Identifier: Apache-2.0
"""Pods given to the real kube-scheduler, and what its watch shows of where and when it binds them.

What pods ask and what is made of it must not be here.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final

from tests.bench.processes import BenchError
from tests.prove.connection import Connection
from tests.prove.watching import Watch

Json = dict[str, Any]

_POLL_SECONDS: Final = 0.05
_WRITERS: Final = 8
_NO_BATCHES: Final = "--feature-gates=OpportunisticBatching=false"
_EDGE_SHARE: Final = 0.1

SCHEDULER_ARGUMENTS: Final = (_NO_BATCHES,)
"""Every pod is decided on by itself: batches go by scores of up to 500 ms ago."""


class Bindings:
    """The pods of one namespace by name: where each is bound and since when, and who was refused.

    Times are those of this process, in seconds.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.at: dict[str, float] = {}
        self.refused: dict[str, str] = {}
        self.alive: set[str] = set()

    def listed(self, items: list[Json], version: int) -> None:
        """Take a list."""
        del version
        for item in items:
            self.changed("ADDED", item)

    def changed(self, kind: str, item: Json) -> None:
        """Take an event."""
        name = item["metadata"]["name"]
        if kind == "DELETED":
            self.alive.discard(name)
            return
        self.alive.add(name)
        node = item["spec"].get("nodeName")
        if node and name not in self.nodes:
            self.nodes[name] = node
            self.at[name] = time.perf_counter()
            self.refused.pop(name, None)
        for condition in item["status"].get("conditions", ()) if not node else ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                self.refused[name] = condition.get("message", "")

    async def until_decided(self, names: Iterable[str], seconds: float) -> None:
        """Wait until each of these is bound or refused. Raises BenchError."""
        left, deadline = set(names), time.monotonic() + seconds
        while left := left - self.nodes.keys() - self.refused.keys():
            if time.monotonic() > deadline:
                raise BenchError(f"{len(left)} pods were not decided on within {seconds:g} s")
            await asyncio.sleep(_POLL_SECONDS)

    async def until_gone(self, seconds: float) -> None:
        """Wait until no pod is left. Raises BenchError."""
        deadline = time.monotonic() + seconds
        while self.alive:
            if time.monotonic() > deadline:
                raise BenchError(f"{len(self.alive)} pods are still there after {seconds:g} s")
            await asyncio.sleep(_POLL_SECONDS)

    def per_second(self, names: Iterable[str]) -> float:
        """Return how many of these were bound a second, without the first and last tenth."""
        times = sorted(self.at[name] for name in names)
        cut = int(len(times) * _EDGE_SHARE)
        kept = times[cut : len(times) - cut]
        return (len(kept) - 1) / (kept[-1] - kept[0])


@asynccontextmanager
async def watching(connection: Connection, namespace: str) -> AsyncIterator[Bindings]:
    """Watch the pods of a namespace during the block."""
    found = Bindings()
    watch = Watch(connection, f"/api/v1/namespaces/{namespace}/pods", found)
    task = asyncio.create_task(watch.run())
    try:
        while not watch.version:  # noqa: ASYNC110 - the first list
            await asyncio.sleep(_POLL_SECONDS)
        yield found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def create(connection: Connection, path: str, objects: Sequence[Json]) -> None:
    """Create objects, nearly in this order. Raises BenchError."""
    left = iter(objects)

    async def write() -> None:
        for body in left:
            status, answer = await connection.call("POST", path, body)
            if status != HTTPStatus.CREATED:
                raise BenchError(f"{path}: {status} {answer.get('message')}")

    await asyncio.gather(*(write() for _ in range(_WRITERS)))


async def delete_pods(connection: Connection, namespace: str) -> None:
    """Delete all pods of a namespace at once. Raises BenchError."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    status, answer = await connection.call("DELETE", path, query={"gracePeriodSeconds": "0"})
    if status != HTTPStatus.OK:
        raise BenchError(f"{path}: {status} {answer.get('message')}")
