# SPDX-License-Identifier: Apache-2.0
"""Sends one HTTP call to the API server: with current credentials, a deadline, and our errors.

It stands on aiohttp and takes only configuration from kubernetes_asyncio (`access`), whose
ApiClient builds models, bounds a watch event at its read buffer and re-reads no token file. What
the calls mean is not known here. Only a call that was refused as unauthenticated is sent again.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from reconciler.kube.access import Access, AccessSource
from reconciler.kube.errors import (
    AccessError,
    TimedOutError,
    UnauthorizedError,
    UnavailableError,
    error_from_response,
)
from reconciler.kube.server_clock import ServerClock

_LOG: Final = logging.getLogger(__name__)
_FIRST_REFUSAL: Final = 300
"""Redirects are not followed: they would carry the credentials elsewhere."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as, for who may. Source: Kubernetes "User impersonation"."""

    user: str
    groups: tuple[str, ...] = ()

    def headers(self) -> CIMultiDict[str]:
        """Return the headers of every call; ValueError for names that no header can hold."""
        names = (self.user, *self.groups)
        if not all(name.isprintable() and name.isascii() for name in names):
            raise ValueError(f"{self.user!r} cannot be impersonated: it is no plain ASCII")
        groups = (("Impersonate-Group", group) for group in self.groups)
        return CIMultiDict((("Impersonate-User", self.user), *groups))


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a client behaves; one that must not wait for others gets settings of its own."""

    call_seconds: float = 10.0
    """The deadline of a call, from waiting for a connection to the last byte of the answer."""
    connect_seconds: float = 10.0
    """The part of it in which a connection must come about; also that of a watch."""
    connections: int = 64
    """How many at once, watches included."""
    renew_access_seconds: float = 60.0
    """How often token and certificate files are read again; service account tokens rotate."""
    user_agent: str = "sluice"
    impersonation: Impersonation | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `seconds` is its deadline (None: none); `silence_seconds` the longest pause."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    seconds: float | None = None
    silence_seconds: float | None = None

    @property
    def is_write(self) -> bool:
        """Whether it changes anything."""
        return self.method != "GET"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    """A connection pool to one API server. Use as an async context manager."""

    def __init__(
        self,
        source: AccessSource,
        settings: ClientSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._settings = settings
        self._clock = clock
        self.server_clock = ServerClock()
        self._access: Access | None = None
        self._loaded_at = 0.0
        self._loading = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Read the access; raises AccessError where there is none. Connects at the first call."""
        self._access, self._loaded_at = await self._source.load(), self._clock()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.connections),
            headers={"Accept": "application/json", "User-Agent": self._settings.user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            # Transports that were aborted close in the next turn of the loop.
            await asyncio.sleep(0)

    async def send(self, call: Call) -> aiohttp.ClientResponse:
        """Return a response of success, its body unread; the caller must read or close it.

        Raises ApiError for everything else.
        """
        if self._session is None:
            raise UnavailableError("the client is not open")
        access = await self._current_access()
        try:
            return await self._send_as(access, call)
        except UnauthorizedError:
            # Nothing was done, so a second try is safe, with what the files say now.
            return await self._send_as(await self._renewed_access(access), call)

    async def _send_as(self, access: Access, call: Call) -> aiohttp.ClientResponse:
        response = await translated(lambda: self._request(access, call), call)
        self.server_clock.observe(response.headers.get("Date"), self._clock())
        if response.status < _FIRST_REFUSAL:
            return response
        body = await translated(response.read, call)
        raise error_from_response(
            response.status,
            body,
            retry_after=response.headers.get("Retry-After"),
            is_write=call.is_write,
        )

    async def _request(self, access: Access, call: Call) -> aiohttp.ClientResponse:
        if self._session is None:
            raise UnavailableError("the client was closed meanwhile")
        acting = self._settings.impersonation
        headers: CIMultiDict[str] = acting.headers() if acting is not None else CIMultiDict()
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if access.authorization:
            headers["Authorization"] = access.authorization
        query = f"?{urlencode(call.query)}" if call.query else ""
        return await self._session.request(
            call.method,
            URL(f"{access.server}{call.path}{query}", encoded=True),
            data=call.body,
            headers=headers,
            ssl=access.tls if access.tls is not None else True,
            server_hostname=access.server_hostname,
            proxy=access.proxy,
            timeout=self._timeout(call),
            allow_redirects=False,
        )

    def _timeout(self, call: Call) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(
            total=call.seconds,
            connect=self._settings.connect_seconds,
            sock_read=call.silence_seconds,
        )

    async def _current_access(self) -> Access:
        if self._clock() - self._loaded_at >= self._settings.renew_access_seconds:
            async with self._loading:
                if self._clock() - self._loaded_at >= self._settings.renew_access_seconds:
                    await self._load(renew=False)
        if self._access is None:
            raise UnavailableError("the client has no credentials")
        return self._access

    async def _renewed_access(self, refused: Access) -> Access:
        """Return credentials read after the refusal, once for all who wait."""
        async with self._loading:
            if self._access is refused:
                await self._load(renew=True)
            return self._access or refused

    async def _load(self, *, renew: bool) -> None:
        self._loaded_at = self._clock()
        try:
            self._access = await self._source.load(renew=renew)
        except AccessError as error:
            # What we have may still be good; if it is not, the server will say so.
            _LOG.warning("keeping the present credentials: %s", error)


async def translated(act: Callable[[], Awaitable[_T]], call: Call) -> _T:
    """Await a step of a call, with aiohttp's errors as ours."""
    try:
        return await act()
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        # No connection came about, so nothing was sent.
        raise UnavailableError(f"{call}: {error}") from error
    except TimeoutError as error:
        raise TimedOutError(
            f"{call}: no answer in time", may_have_happened=call.is_write
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise UnavailableError(
            f"{call}: {type(error).__name__} {error}", may_have_happened=call.is_write
        ) from error
