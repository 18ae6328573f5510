# SPDX-License-Identifier: Apache-2.0
"""Runs the long-lived activities of a process side by side, as one unit.

The first activity to end stops the others: a process that has lost one of its parts must not
look alive. What the activities do must not be here, nor signals (reconciler.runtime.signals).
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping

logger = logging.getLogger(__name__)

Activity = Coroutine[object, object, None]


async def supervise(activities: Mapping[str, Activity], *, patience_seconds: float = 20.0) -> None:
    """Run named coroutines until the first ends, then cancel the others and wait for them.

    One that does not stop within `patience_seconds` is logged, cancelled again and left behind.
    A failure is raised as it was; several are raised as an ExceptionGroup.
    """
    tasks = {asyncio.create_task(coro, name=name) for name, coro in activities.items()}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                logger.info("%s has ended, so the rest is stopped", task.get_name())
    finally:
        await _stop(tasks, patience_seconds)
    _raise_failures(tasks)


async def _stop(tasks: Iterable["asyncio.Task[None]"], patience_seconds: float) -> None:
    running = {task for task in tasks if not task.done()}
    for task in running:
        task.cancel()
    if not running:
        return
    _, hung = await asyncio.wait(running, timeout=patience_seconds)
    for task in sorted(hung, key=asyncio.Task.get_name):
        logger.error(
            "%s did not stop within %g s and is left behind, at %s",
            task.get_name(),
            patience_seconds,
            task.get_stack(limit=1),
        )
        task.cancel()


def _raise_failures(tasks: Iterable["asyncio.Task[None]"]) -> None:
    ended = [task for task in sorted(tasks, key=asyncio.Task.get_name) if task.done()]
    failures = [
        failure
        for task in ended
        if not task.cancelled() and (failure := task.exception()) is not None
    ]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup("several activities failed", failures)
