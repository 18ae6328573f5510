# SPDX-License-Identifier: Apache-2.0
"""Creates pods without kubectl, as many at once as a test wants."""

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp
import orjson

from tests.controlplane import ControlPlane
from tests.integration.sluice.objects import Json

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

    @asynccontextmanager
    async def creating(
        self,
        namespace: str,
        make: Callable[[str], Json],
        answers: list[Created],
        workers: int,
    ) -> AsyncIterator[None]:
        """Create pods of ever new names beside the block, so many at a time."""
        names = (f"load-{number}" for number in itertools.count())
        is_over = asyncio.Event()

        async def work() -> None:
            while not is_over.is_set():
                answers.append(await self.create(namespace, make(next(names))))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(work())
            try:
                yield
            finally:
                is_over.set()


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


def _warnings(response: aiohttp.ClientResponse) -> tuple[str, ...]:
    """Return the texts of the Warning headers: `299 - "text"` (RFC 7234)."""
    headers = response.headers.getall("Warning", [])
    quoted = (header.split(" ", 2)[2] for header in headers)
    return tuple(orjson.loads(text) for text in quoted)
