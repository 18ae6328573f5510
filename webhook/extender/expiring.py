# SPDX-License-Identifier: Apache-2.0
"""Looks after assumptions while nobody asks: one whose time is over must not wait for a question.

Who waits for what it holds asks only once they are woken.
"""

from collections.abc import Awaitable, Callable
from typing import Final

_PERIOD_SECONDS: Final = 1.0


async def keep_expiring(
    expire: Callable[[], None],
    sleep: Callable[[float], Awaitable[None]],
    period_seconds: float = _PERIOD_SECONDS,
) -> None:
    """Take back what is over, again and again, until cancelled."""
    while True:
        expire()
        await sleep(period_seconds)
