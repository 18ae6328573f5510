# SPDX-License-Identifier: Apache-2.0
"""Waits for a condition with a deadline, in place of sleeping and hoping."""

import asyncio
from collections.abc import Callable

_POLL_SECONDS = 0.005


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Return once the condition holds. Raises TimeoutError when it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - conditions of any kind, in code that has no event
            await asyncio.sleep(_POLL_SECONDS)
