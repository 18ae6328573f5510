# SPDX-License-Identifier: Apache-2.0
"""Whether the API server answers this process: asked again and again, for readiness.

A standby writes nothing and may watch little, so that silence alone would say nothing.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from reconciler.kube.errors import ApiError
from reconciler.runtime.health import Condition

_LOG: Final = logging.getLogger(__name__)
_ASK_SECONDS: Final = 5.0
_LOST_SECONDS: Final = 30.0
"""Unanswered for so long it is out of reach: a restart of an API server must not show."""


class Server(Protocol):
    """The part of a client that is needed."""

    async def server_version(self) -> str:
        """Return the server's version. Raises ApiError."""
        ...


class ApiContact:
    """Knows when the API server answered last, while `run` runs."""

    def __init__(
        self,
        server: Server,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._server = server
        self._clock = clock
        self._sleep = sleep
        self._answered_at: float | None = None
        self._error = ""

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            try:
                await self._server.server_version()
            except ApiError as error:
                self._failed(str(error))
            else:
                self._answered_at, self._error = self._clock(), ""
            await self._sleep(_ASK_SECONDS)

    def condition(self) -> Condition:
        """Return the condition of readiness: it holds once answered, until silence is too long."""
        at = self._answered_at
        if at is None:
            return _condition(self._error or "the API server has not been asked yet")
        silence = self._clock() - at
        if silence <= _LOST_SECONDS:
            return _condition("")
        why = f": {self._error}" if self._error else ""
        return _condition(f"the API server has not answered for {silence:.0f} s{why}")

    def _failed(self, error: str) -> None:
        if error != self._error:
            self._error = error
            _LOG.warning("the API server does not answer: %s", error)


def _condition(message: str) -> Condition:
    return Condition("api-reachable", ok=not message, message=message)
