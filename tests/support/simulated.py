# SPDX-License-Identifier: Apache-2.0
"""Several processes in simulated time: each an event loop of its own that can be frozen.

A frozen process runs nothing, as under SIGSTOP, while the clock and the others go on; what was due
meanwhile happens when it wakes. Nothing here waits in real time. What the processes do, and what
the network between them loses, is the tests'.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

_MANY_STEPS = 100_000
_TICK_SECONDS = 1e-6
"""Loops take timers for due that are nearer than their clocks can tell; time must have passed."""


@dataclass(order=True, slots=True)
class _Happening:
    time: float
    number: int
    act: Callable[[], None] = field(compare=False)


class SimulatedProcess(asyncio.SelectorEventLoop):
    """One process; its tasks see the world's time."""

    def __init__(self, world: "World", name: str) -> None:
        super().__init__()
        self.name = name
        self.frozen_until = 0.0
        self._world = world

    def time(self) -> float:
        return self._world.now if hasattr(self, "_world") else 0.0

    def call_at(  # type: ignore[override]  # typeshed's has types for all arguments
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if when > self.time():
            when = max(when, self.time() + _TICK_SECONDS)
        return super().call_at(when, callback, *args, context=context)

    @property
    def is_frozen(self) -> bool:
        return self.frozen_until > self._world.now

    def step(self) -> None:
        """Run what is ready and due, once."""
        self.call_soon(self.stop)
        self.run_forever()

    def next_time(self) -> float | None:
        """When it next has something to do, None for never."""
        ready, scheduled = getattr(self, "_ready"), getattr(self, "_scheduled")  # noqa: B009 - typeshed has neither
        if ready:
            due = self._world.now
        elif scheduled:
            due = scheduled[0].when()
        else:
            return None
        return max(due, self.frozen_until, self._world.now)


class World:
    """The clock, the processes, and what happens outside of all of them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.processes: list[SimulatedProcess] = []
        self.check: Callable[[], None] = lambda: None
        """Called after every step."""
        self._numbers = count()
        self._happenings: list[_Happening] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.frozen_until = 0.0
            self._end(process)

    def process(self, name: str) -> SimulatedProcess:
        made = SimulatedProcess(self, name)
        self.processes.append(made)
        return made

    def start(self, process: SimulatedProcess, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return process.create_task(work)

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Have something happen outside of all processes."""
        self._happenings.append(_Happening(max(time, self.now), next(self._numbers), act))

    def kill(self, process: SimulatedProcess) -> None:
        """End a process at once; nothing of it runs any more."""
        process.frozen_until = float("inf")

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, but no longer than until a condition holds."""
        end = self.now + seconds
        steps = 0
        while not until():
            due = self._next()
            if due is None or due > end:
                self.now = end
                return
            steps = 0 if due > self.now else steps + 1
            assert steps < _MANY_STEPS, f"time stands still at {self.now}"
            self.now = due
            self._step()

    def _next(self) -> float | None:
        times = [process.next_time() for process in self.processes]
        times += [happening.time for happening in self._happenings]
        return min((time for time in times if time is not None), default=None)

    def _step(self) -> None:
        due = sorted(each for each in self._happenings if each.time <= self.now)
        for happening in due:
            self._happenings.remove(happening)
            happening.act()
        if due:
            self.check()
        for process in self.processes:
            time = process.next_time()
            if time is not None and time <= self.now and not process.is_frozen:
                process.step()
                self.check()

    def _end(self, process: SimulatedProcess) -> None:
        for _ in range(100):
            tasks = asyncio.all_tasks(process)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            process.step()
            self.now += 10.0
        for task in asyncio.all_tasks(process):
            task.set_name(f"never ended: {task.get_name()}")
        process.run_until_complete(process.shutdown_asyncgens())
        process.close()
