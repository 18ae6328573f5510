# SPDX-License-Identifier: Apache-2.0
"""How long a lone pod waits for its release while quota is free."""

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Final

from tests.bench.processes import BenchError
from tests.bench.releasing import Bench, seeing
from tests.prove.world import Tenant

_WARM_UP: Final = 10
_PAUSE_SECONDS: Final = (0.02, 0.12)
_DEADLINE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.002


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds until the watch shows the release: since the pod was there, and asked for."""

    p50_ms: float
    p99_ms: float
    since_asked_p50_ms: float
    since_asked_p99_ms: float


async def measure(bench: Bench, tenant: Tenant, count: int) -> Latency:
    """Create pods one after the other, each released before the next."""
    pause = random.Random(1)  # noqa: S311 - a measurement must be repeatable
    since_made, since_asked = [], []
    names = set()
    async with seeing(bench.admin, tenant) as seen:
        for _ in range(_WARM_UP + count):
            pod = bench.driver.pod(tenant, None)
            name = pod["metadata"]["name"]
            names.add(name)
            asked = time.perf_counter()
            if not await bench.driver.create(pod):
                raise BenchError(f"a pod was refused: {bench.driver.created.refused}")
            made = time.perf_counter()
            while name not in seen.released:
                if time.perf_counter() - made > _DEADLINE_SECONDS:
                    raise BenchError("a lone pod was not released")
                await asyncio.sleep(_POLL_SECONDS)  # what is timed is the event
            since_made.append(1000 * (seen.released[name] - made))
            since_asked.append(1000 * (seen.released[name] - asked))
            await asyncio.sleep(pause.uniform(*_PAUSE_SECONDS))
        await bench.delete(names)
    made_ms, asked_ms = sorted(since_made[_WARM_UP:]), sorted(since_asked[_WARM_UP:])
    median, last = count // 2, count * 99 // 100
    return Latency(made_ms[median], made_ms[last], asked_ms[median], asked_ms[last])
