# SPDX-License-Identifier: Apache-2.0
"""Long work that pauses now and then, so that whatever else the process does has its turn."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

U = TypeVar("U")


async def in_slices(
    items: Iterable[U], act: Callable[[U], None], seconds: float, clock: Callable[[], float]
) -> None:
    """Act on each in order; after so many seconds of it, others run first."""
    until = clock() + seconds
    for item in items:
        act(item)
        if clock() >= until:
            await asyncio.sleep(0)
            until = clock() + seconds
