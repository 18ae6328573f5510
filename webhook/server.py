# SPDX-License-Identifier: Apache-2.0
"""Runs an HTTP server: listens, and stops without losing a request.

Clients keep their connections and go on using them while the process is being taken out
of service. So stopping is: not ready, answer with `Connection: close` for a while, then accept no
more, finish what is in flight, close what is idle, and end. The audit log is flushed by who made
it, after that.
"""

import asyncio
import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from reconciler.runtime.signals import StopEvents
from webhook.handlers import Handlers
from webhook.in_flight import InFlight
from webhook.protocol_log import ProtocolLog
from webhook.serving import Serving
from webhook.tls import ServerTls

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 0.5
"""How long a connection without a request in flight may take to close."""

_HANDSHAKE_SECONDS = 0.2
"""How long a connection may take to be ready that was accepted just before the listener closed."""


class _Http(web.Server):
    """Takes no connection once it is closed, though the handshake had begun before.

    Who was answered after the audit log is flushed would be on no record.
    """

    is_closed = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Register a connection whose handshake is done."""
        super().connection_made(handler, transport)
        if self.is_closed:
            transport.abort()


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen, and how long things may take, in seconds.

    `keepalive` is longer than the 90 s after which the API server's client drops an idle
    connection, so that the server is never the one to close under a request that is on its way.
    `grace` is how long answers go on after the signal to stop, `drain` how long reviews in flight
    may take then.
    """

    host: str | None = None
    port: int = 9443
    grace: float = 5.0
    drain: float = 10.0
    keepalive: float = 120.0
    handshake: float = 10.0
    lingering: float = 5.0
    backlog: int = 1024


class Endpoints(Protocol):
    """What a server answers with."""

    in_flight: InFlight

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any request."""
        ...

    def flush(self) -> None:
        """Record what has been answered and not been recorded yet."""
        ...


class HttpServer:
    """An open server. `port` is the one that is bound once it has started, also for port 0.

    Without `tls` it speaks plain HTTP.
    """

    def __init__(
        self, handlers: Endpoints, tls: ServerTls | None, listen: Listen, name: str
    ) -> None:
        self.name = name
        self._tls = tls
        self._listen = listen
        self._handlers = handlers
        self._in_flight = handlers.in_flight
        self._http = _Http(
            self._handlers.handle,
            access_log=None,
            logger=ProtocolLog(logger, {}),
            keepalive_timeout=listen.keepalive,
            lingering_time=listen.lingering,
            auto_decompress=False,
        )
        self._listener: asyncio.Server | None = None
        self.port = listen.port

    async def is_certified(self, stop: asyncio.Event) -> bool:
        """Wait until there is a certificate to serve with; False if the process is to stop."""
        if self._tls is None or self._tls.loaded.is_set():
            return True
        waits = [asyncio.ensure_future(event.wait()) for event in (self._tls.loaded, stop)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        return self._tls.loaded.is_set()

    async def start(self) -> None:
        """Begin to listen. Raises OSError if the port cannot be had."""
        loop, listen = asyncio.get_running_loop(), self._listen
        self._listener = await loop.create_server(
            self._http,
            listen.host,
            listen.port,
            ssl=self._tls.context if self._tls else None,
            # Of a server without TLS they must not even be said.
            ssl_handshake_timeout=listen.handshake if self._tls else None,
            ssl_shutdown_timeout=listen.lingering if self._tls else None,
            backlog=listen.backlog,
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self, hurry: asyncio.Event | None = None) -> None:
        """Stop as the module says; `hurry` cuts the grace period short."""
        self._in_flight.draining = True
        await _wait(self._listen.grace, hurry)
        if self._listener is not None:
            self._listener.close()
            await _wait(_HANDSHAKE_SECONDS, hurry)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._in_flight.until_idle(), self._listen.drain)
        if self._in_flight.count:
            logger.error("requests cut off in the middle: %d", self._in_flight.count)
        self._http.is_closed = True
        self._http.pre_shutdown()
        await self._http.shutdown(_CLOSE_SECONDS)
        self._handlers.flush()


class WebhookServer(HttpServer):
    """The server of admission reviews."""

    def __init__(self, serving: Serving, tls: ServerTls, listen: Listen) -> None:
        super().__init__(Handlers(serving), tls, listen, "webhook")


async def serve(
    server: HttpServer, events: StopEvents, ready: Callable[[int], None] | None = None
) -> None:
    """Serve until `events.stop` is set, then stop. `ready` is told the port once it is open."""
    if not await server.is_certified(events.stop):
        return
    await server.start()
    spare_what_stays()
    try:
        logger.info("%s listening on port %d", server.name, server.port)
        if ready is not None:
            ready(server.port)
        await events.stop.wait()
    finally:
        await server.stop(events.hurry)
        logger.info("%s stopped", server.name)


def spare_what_stays() -> None:
    """Keep the garbage collector from walking over all that was made so far.

    Modules, schemas, policies and nodes live as long as the process; looking at them again and
    again makes answers wait for tens of milliseconds.
    """
    gc.collect()
    gc.freeze()


async def _wait(seconds: float, hurry: asyncio.Event | None) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for((hurry or asyncio.Event()).wait(), seconds)
