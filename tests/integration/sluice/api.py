# SPDX-License-Identifier: Apache-2.0
"""Creates pods without kubectl, as many at once as a test wants."""

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import orjson

from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import Json
from tests.support.running import running

_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Created:
    """The API server's answer: the pod, or the Status that says why there is none."""

    status: int
    body: Json
    warnings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Tell whether the pod was made."""
        return self.status == HTTPStatus.CREATED

    @property
    def message(self) -> str:
        """Return why it was not."""
        return str(self.body.get("message", ""))


Answered = Callable[[Created], None]


class Api:
    """The API server for the cluster's admin."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def create(self, namespace: str, pod: Json) -> Created:
        """Create a pod, whatever comes of it."""
        url = f"{self._url}/api/v1/namespaces/{namespace}/pods"
        async with self._session.post(url, json=pod) as response:
            body = orjson.loads(await response.read())
            return Created(response.status, body, _warnings(response))

    async def keep_creating(
        self, namespace: str, make: Callable[[str], Json], answered: Answered, workers: int
    ) -> None:
        """Create pods of ever new names until cancelled, so many at a time."""
        names = (f"load-{number}" for number in itertools.count())
        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(self._work(namespace, names, make, answered))

    async def _work(
        self,
        namespace: str,
        names: Iterator[str],
        make: Callable[[str], Json],
        answered: Answered,
    ) -> None:
        for name in names:
            answered(await self.create(namespace, make(name)))


@asynccontextmanager
async def connected(control_plane: ControlPlane) -> AsyncIterator[Api]:
    """Connect to the API server."""
    tls = ssl.create_default_context(cadata=control_plane.ca_bundle.decode())
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {control_plane.token}"},
        connector=aiohttp.TCPConnector(ssl=tls, limit=0),
        timeout=aiohttp.ClientTimeout(total=_SECONDS),
    ) as session:
        yield Api(session, control_plane.url)


@asynccontextmanager
async def load(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have work go on beside the block; its failure is one of the block."""
    async with running(_together(work)):
        yield


async def _together(work: tuple[Coroutine[Any, Any, None], ...]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for coroutine in work:
            tasks.create_task(coroutine)


def _warnings(response: aiohttp.ClientResponse) -> tuple[str, ...]:
    """Return the texts of the Warning headers: `299 - "text"` (RFC 7234)."""
    headers = response.headers.getall("Warning", [])
    quoted = (header.split(" ", 2)[2] for header in headers)
    return tuple(orjson.loads(text) for text in quoted)
