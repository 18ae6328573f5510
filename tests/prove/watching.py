# SPDX-License-Identifier: Apache-2.0
"""The observer's own list and watch, on plain HTTP; no client of Sluice or of Kubernetes.

It goes on from the last version that it has seen, and lists again only where the server has lost
that history.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

import aiohttp
import orjson

from tests.prove.connection import Connection
from tests.prove.findings import Fact, Finding
from tests.prove.leases import LeaseHistory
from tests.prove.observer import Observer
from tests.prove.standstill import Standstill
from tests.prove.world import Json

_PODS: Final = "/api/v1/pods"
_PAGE: Final = 500
_WATCH_SECONDS: Final = 300
_PAUSE_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 0.5
_SYNC_SECONDS: Final = 30.0
_BROKEN: Final = (aiohttp.ClientError, OSError, TimeoutError, json.JSONDecodeError)


class Sink(Protocol):
    """Takes what a watch shows."""

    def listed(self, items: list[Json], version: int) -> None: ...

    def changed(self, kind: str, item: Json) -> None: ...


class Watch:
    """Lists and watches one collection until cancelled."""

    def __init__(self, connection: Connection, path: str, sink: Sink, selector: str = "") -> None:
        self._connection = connection
        self._path = path
        self._sink = sink
        self._query = {"fieldSelector": selector} if selector else {}
        self.version = 0
        """The last one that it has seen; 0 while there is no list yet."""

    async def run(self) -> None:
        """Go on whatever happens to the server."""
        while True:
            with suppress(*_BROKEN):
                if not self.version:
                    await self._list()
                await self._follow()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def list_all(self) -> tuple[list[Json], int]:
        """Return all objects as they are now (a consistent read), and the version of the list."""
        items: list[Json] = []
        more = ""
        while True:
            query = {"limit": str(_PAGE), **self._query, **({"continue": more} if more else {})}
            status, page = await self._connection.call("GET", self._path, query=query)
            if status != HTTPStatus.OK:
                raise aiohttp.ClientError(f"{self._path}: {status} {page.get('message', '')}")
            items += page["items"]
            more = page["metadata"].get("continue", "")
            if not more:
                return items, int(page["metadata"]["resourceVersion"])

    async def _list(self) -> None:
        items, version = await self.list_all()
        self._sink.listed(items, version)
        self.version = version

    async def _follow(self) -> None:
        query = {
            "watch": "1",
            "resourceVersion": str(self.version),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
            **self._query,
        }
        async with self._connection.stream(self._path, query) as response:
            if response.status == HTTPStatus.GONE:
                self.version = 0
                return
            response.raise_for_status()
            async for line in _lines(response):
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    if event["object"].get("code") == HTTPStatus.GONE:
                        self.version = 0
                    return
                if event["type"] != "BOOKMARK":
                    self._sink.changed(event["type"], event["object"])
                self.version = int(event["object"]["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class _PodSink:
    observer: Observer
    clock: Callable[[], float]

    def listed(self, items: list[Json], version: int) -> None:
        self.observer.listed(items, version, self.clock())

    def changed(self, kind: str, item: Json) -> None:
        self.observer.changed(kind, item, self.clock())


@dataclass(frozen=True, slots=True)
class _LeaseSink:
    history: LeaseHistory

    def listed(self, items: list[Json], version: int) -> None:
        del version
        for item in items:
            self.history.take(item, is_known=False)

    def changed(self, kind: str, item: Json) -> None:
        del kind
        self.history.take(item)


class Observation:
    """An observer at work on a cluster."""

    def __init__(
        self,
        connection: Connection,
        observer: Observer,
        stuck_seconds: float,
        lease: tuple[str, str],
    ) -> None:
        self.observer = observer
        self.leases = LeaseHistory()
        self.standstill = Standstill(observer, stuck_seconds)
        self._pods = Watch(connection, _PODS, _PodSink(observer, time.monotonic))
        namespace, name = lease
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        sink = _LeaseSink(self.leases)
        self._lease = Watch(connection, path, sink, f"metadata.name={name}")

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pods.run())
            tasks.create_task(self._lease.run())
            tasks.create_task(self._look())

    async def synced(self) -> None:
        """Wait until the first lists are in."""
        async with asyncio.timeout(_SYNC_SECONDS):
            while not (self._pods.version and self._lease.version):  # noqa: ASYNC110 - two watches
                await asyncio.sleep(_PAUSE_SECONDS)

    async def compare(self) -> None:
        """Hold what the watch has told against a new list; call it when all has come to rest."""
        deadline = time.monotonic() + _SYNC_SECONDS
        while True:
            items, version = await self._pods.list_all()
            found = self.observer.differences(items)
            if not found:
                return
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(_PAUSE_SECONDS)  # what the watch has not yet told
        for text in found:
            self.observer.findings.append(Finding(Fact.DRIFT, text, "", version))

    async def _look(self) -> None:
        while True:
            self.standstill.look(time.monotonic())
            await asyncio.sleep(_LOOK_SECONDS)


@asynccontextmanager
async def observing(observation: Observation) -> AsyncIterator[Observation]:
    """Have it at work during the block; what ends its work by itself is raised."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(observation.run())
        await observation.synced()
        yield observation
        task.cancel()


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines, however long."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
