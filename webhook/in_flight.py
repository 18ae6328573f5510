# SPDX-License-Identifier: Apache-2.0
"""Which requests are being answered, for a server that ends without cutting one off.

What is answered, and how long a server waits, must not be here.
"""

import asyncio
from types import TracebackType


class InFlight:
    """Counts requests that are being answered: each is one `with`.

    `draining` is set when the process is about to stop. Then it is unready, and every answer is the
    last one of its connection.
    """

    def __init__(self) -> None:
        self._idle = asyncio.Event()
        self.draining = False
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.count -= 1
        if self.draining and not self.count:
            self._idle.set()

    async def until_idle(self) -> None:
        """Wait until no request is being answered; for a server that takes no new connections."""
        while self.count:
            self._idle.clear()
            await self._idle.wait()
