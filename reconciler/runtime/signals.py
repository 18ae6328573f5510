# SPDX-License-Identifier: Apache-2.0
"""Turns SIGTERM and SIGINT into events that activities wait on.

The only place that installs signal handlers; what is done on a signal must not be here.
"""

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class StopEvents:
    """`stop` is set by the first signal, `hurry` by the second: it cuts waiting short."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)


@contextmanager
def stop_on_signals() -> Iterator[StopEvents]:
    """Catch SIGTERM and SIGINT within the block; needs a running loop in the main thread."""
    loop = asyncio.get_running_loop()
    events = StopEvents()

    def caught(received: signal.Signals) -> None:
        event = events.hurry if events.stop.is_set() else events.stop
        logger.info("%s received, %s", received.name, "stopping" if event is events.stop else "now")
        event.set()

    for each in _SIGNALS:
        loop.add_signal_handler(each, caught, each)
    try:
        yield events
    finally:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
