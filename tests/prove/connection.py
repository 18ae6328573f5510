# SPDX-License-Identifier: Apache-2.0
"""Plain HTTP to the API server."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import aiohttp
import orjson

from tests.controlplane import ControlPlane
from tests.prove.world import Json

_CALL_SECONDS: Final = 20.0
_SILENCE_SECONDS: Final = 330.0
_JSON: Final = "application/json"


class Connection:
    """A session; `connections` bounds how many calls are under way at once."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = _JSON,
    ) -> tuple[int, Json]:
        """Send one request and return status and body; raises what aiohttp raises."""
        data = None if body is None else orjson.dumps(body)
        async with self._session.request(
            method, path, data=data, params=query, headers={"Content-Type": content_type}
        ) as answer:
            text = await answer.read()
        try:
            return answer.status, orjson.loads(text)
        except orjson.JSONDecodeError:
            return answer.status, {"message": text.decode(errors="replace")}

    def stream(
        self, path: str, query: Mapping[str, str]
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Open a response without end."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=_SILENCE_SECONDS)
        return self._session.get(path, params=query, timeout=timeout)


@asynccontextmanager
async def connected(
    control_plane: ControlPlane, connections: int, token: str = ""
) -> AsyncIterator[Connection]:
    """Connect with a token, or as the admin, with so many connections at most."""
    tls = ssl.create_default_context(cadata=control_plane.ca_bundle.decode())
    async with aiohttp.ClientSession(
        control_plane.url,
        headers={"Authorization": f"Bearer {token or control_plane.token}"},
        connector=aiohttp.TCPConnector(ssl=tls, limit=connections),
        timeout=aiohttp.ClientTimeout(total=_CALL_SECONDS),
    ) as session:
        yield Connection(session)
