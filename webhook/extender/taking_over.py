# SPDX-License-Identifier: Apache-2.0
"""What becomes of pods that another extender, or this one before it was restarted, has refused.

Nobody knows them any more, so nobody would wake them when what they were refused for has passed.
They are asked about once more, as soon as as much is known as had refused them. Not before the
scheduler reaches us: it goes on without an extender that it does not reach, and would put them
right where they were refused.
"""

from collections.abc import Awaitable, Callable
from typing import Final

_PERIOD_SECONDS: Final = 1.0
_REACHED_SECONDS: Final = 5.0
"""Until the Service leads here: readiness is probed each second, and what comes of it has to reach
every node's proxy."""
_PATIENCE_SECONDS: Final = 60.0
"""Telemetry may tell nothing at all; a minute is twice what the slowest class is sampled in."""


async def wake_the_refused(
    is_known: Callable[[], bool],
    wake: Callable[[], None],
    sleep: Callable[[float], Awaitable[None]],
    patience_seconds: float = _PATIENCE_SECONDS,
) -> None:
    """Wake them once we are reached and enough is known, or there is no more patience."""
    await sleep(_REACHED_SECONDS)
    waited = _REACHED_SECONDS
    while not is_known() and waited < patience_seconds:
        await sleep(_PERIOD_SECONDS)
        waited += _PERIOD_SECONDS
    wake()
