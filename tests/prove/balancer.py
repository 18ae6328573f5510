# SPDX-License-Identifier: Apache-2.0
"""Spreads connections over the replicas that are ready, as a Service with readiness probes does.

A program of its own, so that the proof's load does not slow it down. A replica that does not
answer /readyz is left out, and its connections are cut, since the server behind them is gone.
`python -m tests.prove.balancer FRONT CA BACKEND...`
"""

import asyncio
import contextlib
import ssl
import sys
from dataclasses import dataclass, field

import uvloop

_HOST = "127.0.0.1"
_PROBE_SECONDS = 0.5
_PATIENCE_SECONDS = 1.0
_PROBE = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@dataclass(eq=False, slots=True)
class Backend:
    """A replica's port, whether it is ready, and who is connected to it."""

    port: int
    is_ready: bool = False
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """End all connections to it."""
        for writer in tuple(self.open):
            writer.transport.abort()


class Balancer:
    """Round robin over backends."""

    def __init__(self, ports: list[int], tls: ssl.SSLContext) -> None:
        self._backends = [Backend(port) for port in ports]
        self._tls = tls
        self._next = 0

    async def probe(self, backend: Backend) -> None:
        """Ask whether it is ready, for ever."""
        while True:
            ready = await self._answers(backend)
            if backend.is_ready and not ready:
                backend.cut()
            backend.is_ready = ready
            await asyncio.sleep(_PROBE_SECONDS)

    async def probe_all(self) -> None:
        """Ask all."""
        async with asyncio.TaskGroup() as tasks:
            for backend in self._backends:
                tasks.create_task(self.probe(backend))

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client with the next backend that takes it."""
        for _ in self._backends:
            backend = self._backends[self._next % len(self._backends)]
            self._next += 1
            if not backend.is_ready:
                continue
            with contextlib.suppress(OSError):
                far_reader, far = await asyncio.open_connection(_HOST, backend.port)
                await _join(backend, (reader, writer), (far_reader, far))
                return
        writer.transport.abort()

    async def _answers(self, backend: Backend) -> bool:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                reader, writer = await asyncio.open_connection(
                    _HOST, backend.port, ssl=self._tls, server_hostname="localhost"
                )
                writer.write(_PROBE)
                return (await reader.readline()).split()[1:2] == [b"200"]
        except (OSError, TimeoutError):
            return False
        finally:
            if writer is not None:
                writer.transport.abort()


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _join(backend: Backend, near: Ends, far: Ends) -> None:
    writers = (near[1], far[1])
    backend.open.update(writers)
    try:
        await asyncio.gather(_copy(near[0], far[1]), _copy(far[0], near[1]))
    finally:
        backend.open.difference_update(writers)
        for writer in writers:
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def run(front: int, ca: str, ports: list[int]) -> None:
    """Listen until the process is ended."""
    balancer = Balancer(ports, ssl.create_default_context(cafile=ca))
    server = await asyncio.start_server(balancer.accept, _HOST, front)
    async with server:
        await balancer.probe_all()


if __name__ == "__main__":
    uvloop.run(run(int(sys.argv[1]), sys.argv[2], [int(port) for port in sys.argv[3:]]))
