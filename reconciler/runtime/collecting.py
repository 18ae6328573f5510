# SPDX-License-Identifier: Apache-2.0
"""Keeps Python's garbage collector away from what lives long, such as a leader's picture.

A full collection looks through everything that is alive and holds the event loop meanwhile: with
50,000 pods for hundreds of milliseconds. What is let go otherwise is freed by reference counts, at
once. Source: Python `gc.freeze`.
"""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_AGAIN_SECONDS: Final = 0.05
_TIMES: Final = 1200
"""For a minute: what else the process leaves behind meanwhile is spared as well, and stays."""
_LET_GO_SECONDS: Final = 1.0
"""By then the tasks that have held it are gone, and with them their references."""


@asynccontextmanager
async def spared() -> AsyncIterator[None]:
    """Spare what is made within: also meanwhile, else it is looked through ever longer as it grows.

    Nothing is disabled: the collector goes on with what is made in between.
    """
    task = asyncio.create_task(_freeze_often(), name="spare the picture")
    try:
        yield
    finally:
        task.cancel()
        gc.freeze()


def let_go_soon() -> None:
    """Have what was spared collected if nothing refers to it any more, once its tasks are gone."""
    asyncio.get_running_loop().call_later(_LET_GO_SECONDS, _let_go)


async def _freeze_often() -> None:
    for _ in range(_TIMES):
        gc.freeze()
        await asyncio.sleep(_AGAIN_SECONDS)


def _let_go() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()
