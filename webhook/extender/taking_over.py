# SPDX-License-Identifier: Apache-2.0
"""What becomes of pods that another extender, or this one before it was restarted, has refused.

Nobody knows them any more, so nobody would wake them when what they were refused for has passed.
They are asked about once more, as soon as as much is known as had refused them.
"""

from collections.abc import Awaitable, Callable
from typing import Final

_PERIOD_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 60.0
"""Telemetry may tell nothing at all; a minute is twice what the slowest class is sampled in."""


async def wake_the_refused(
    is_known: Callable[[], bool],
    wake: Callable[[], None],
    sleep: Callable[[float], Awaitable[None]],
    patience_seconds: float = _PATIENCE_SECONDS,
) -> None:
    """Wake them once enough is known, or there is no more patience."""
    waited = 0.0
    while not is_known() and waited < patience_seconds:
        await sleep(_PERIOD_SECONDS)
        waited += _PERIOD_SECONDS
    wake()
