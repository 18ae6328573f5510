# SPDX-License-Identifier: Apache-2.0
"""When all releases wait for the API server: it cannot be reached, or asks to slow down."""

from typing import Final

from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import (
    ApiError,
    MalformedAnswerError,
    TimedOutError,
    TooManyRequestsError,
    UnavailableError,
)
from reconciler.kube.reflector import Runtime

DEFAULT_BACKOFF: Final = Backoff(0.1, 5.0)


class Patience:
    """Counts outages, and waits them out."""

    def __init__(self, backoff: Backoff, runtime: Runtime) -> None:
        self._backoff = backoff
        self._runtime = runtime
        self._until = 0.0
        self._failures = 0

    def answered(self) -> None:
        """Know that the server is well."""
        self._failures = 0

    def hold(self, error: ApiError) -> float:
        """Let all wait for the server, and return for how long, in seconds."""
        now = self._runtime.clock()
        if now >= self._until:
            # One outage fails all writes under way, and counts once.
            self._failures += 1
            seconds = self._backoff.seconds(self._failures, self._runtime.uniform)
            self._until = now + max(seconds, error.retry_after_seconds or 0.0)
        return self._until - now

    async def wait(self) -> None:
        """Return when nothing need wait any more."""
        while (seconds := self._until - self._runtime.clock()) > 0:
            await self._runtime.sleep(seconds)


def is_server(error: ApiError) -> bool:
    """Tell whether it is no fault of the pod: no connection, or a request to slow down.

    A timeout may well be the pod's: a webhook of others may hang on it alone.
    """
    if isinstance(error, TooManyRequestsError):
        return True
    return isinstance(error, UnavailableError) and not (
        error.status or isinstance(error, TimedOutError | MalformedAnswerError)
    )
