# SPDX-License-Identifier: Apache-2.0
"""The small HTTP server of a process that answers no reviews: /metrics, /healthz and /readyz.

Plain HTTP, as probes and scrapers within a cluster expect it. What is ready is decided elsewhere.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

import orjson
from aiohttp import hdrs, web

from reconciler.runtime.health import Readiness

_LOG: Final = logging.getLogger(__name__)
_CLOSE_SECONDS: Final = 1.0
"""How long what is being answered at the end may take."""


class Exposer(Protocol):
    """Where metrics are."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return what /metrics answers, and its content type."""
        ...


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; without `host` on all addresses, port 0 for any free one."""

    host: str | None = None
    port: int = 9445


class Listener:
    """Answers while it is open. `port` is the one that is bound once it has started."""

    def __init__(
        self, address: Address, metrics: Exposer, readiness: Callable[[], Readiness]
    ) -> None:
        self._address = address
        self._metrics = metrics
        self._readiness = readiness
        self.port = address.port

    async def run(self, stop: asyncio.Event) -> None:
        """Answer until `stop` is set. Raises OSError if the port cannot be had."""
        async with self.opened():
            await stop.wait()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Answer during the block. Raises OSError if the port cannot be had."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._exposition)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSE_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._address.host, self._address.port).start()
            self.port = runner.addresses[0][1]
            _LOG.info("listening on port %d", self.port)
            yield
        finally:
            await runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        """Say that the event loop turns: whatever else is wrong, a restart would not cure it."""
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        readiness = self._readiness()
        return web.Response(
            body=orjson.dumps(readiness.to_json()),
            status=HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE,
            content_type="application/json",
        )

    async def _exposition(self, request: web.Request) -> web.Response:
        body, content_type = self._metrics.exposition(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})
