# SPDX-License-Identifier: Apache-2.0
"""Runs something that runs until cancelled, for as long as a test needs it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator["asyncio.Task[None]"]:
    """Run `work` beside the block; a failure of it that the block has not seen is raised."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        if task.done():
            task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
