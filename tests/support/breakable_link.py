# SPDX-License-Identifier: Apache-2.0
"""A TCP link to a server that a test can cut, freeze or take away; TLS passes through it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class BreakableLink:
    """Forwards loopback connections to a port while `run_link` is entered."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.is_down = False
        """Whether new connections are closed at once."""
        self.accepted = 0
        self._target_port = target_port
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._frozen: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._serving: set[asyncio.Task[None]] = set()

    def cut(self) -> int:
        """Reset every connection, and return how many there were."""
        for pair in self._pairs:
            for writer in pair:
                writer.transport.abort()
        return len(self._pairs)

    def freeze(self) -> int:
        """Let no byte through on the connections that are open now; new ones work."""
        self._frozen = set(self._pairs)
        return len(self._frozen)

    async def end(self) -> None:
        """Reset every connection and wait until each has come to its end."""
        while self._serving:
            self.cut()
            await asyncio.wait(self._serving, timeout=0.1)
        await asyncio.sleep(0)  # an aborted transport closes its socket in the next round

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a new connection in a task of its own."""
        task = asyncio.get_running_loop().create_task(self.serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection until either side ends it."""
        self.accepted += 1
        if self.is_down:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, far_writer)
        self._pairs.add(pair)
        try:
            await asyncio.gather(
                self._forward(reader, far_writer, pair), self._forward(far_reader, writer, pair)
            )
        finally:
            self._pairs.discard(pair)
            for end in pair:
                end.transport.abort()

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if pair not in self._frozen:
                    writer.write(data)
                    await writer.drain()
        writer.close()


@asynccontextmanager
async def run_link(target_port: int) -> AsyncIterator[BreakableLink]:
    """A link to a loopback port, itself on a free one."""
    link = BreakableLink(target_port)
    server = await asyncio.start_server(link.accept, "127.0.0.1", 0)
    link.port = server.sockets[0].getsockname()[1]
    try:
        yield link
    finally:
        server.close()
        await link.end()
