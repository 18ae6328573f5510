# SPDX-License-Identifier: Apache-2.0
"""How long the leader's picture holds the loop: while 50,000 pods are listed, and as they change.

`python -m tests.bench.holding` ends with one line of JSON. A heartbeat measures how long it was
kept from its turn, by the clock and in the thread's own processor time, which neighbours do not
disturb. The picture is fed as by the API client: pages of JSON, then one event after another.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from policies.model.policyset import PolicySet
from policies.quota.planning.plan import plan
from reconciler.cluster import LiveCluster
from reconciler.kube.client import Page
from reconciler.kube.resources import NODES, PODS, Selection
from reconciler.kube.stream import EventType, WatchEvent
from reconciler.runtime.collecting import spared
from tests.bench.machine import describe_machine
from tests.bench.pod_memory import NODES as NODE_COUNT
from tests.bench.pod_memory import PODS as POD_COUNT
from tests.bench.pod_memory import TEAMS, WAITING, pages
from tests.support.builders import catalog
from tests.support.planning import base, tenant

_EVENTS: Final = 4000
_PLAN_EVERY: Final = 200
_BEAT_SECONDS: Final = 0.001
_BEGUN_AT: Final = 1_936_800_000


@dataclass(slots=True)
class Held:
    """Milliseconds between two turns of the heartbeat."""

    clock_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Return the longest, and how often it was more than 100 ms of processor time."""
        return {
            "longest_ms": round(max(self.clock_ms), 1),
            "longest_cpu_ms": round(max(self.cpu_ms), 1),
            "over_100_ms": sum(ms > 100 for ms in self.cpu_ms),
        }


@contextmanager
def _beating() -> Iterator[Held]:
    held = Held()

    async def beat() -> None:
        while True:
            clock, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_BEAT_SECONDS)
            held.clock_ms.append((time.perf_counter() - clock) * 1e3)
            held.cpu_ms.append((time.thread_time() - cpu) * 1e3)

    task = asyncio.get_running_loop().create_task(beat())
    try:
        yield held
    finally:
        task.cancel()


class Source:
    """Serves lists in pages, and the changes of some pods as a watch."""

    def __init__(self, pods: list[bytes]) -> None:
        self._pods = pods
        self._nodes = [_node(number) for number in range(NODE_COUNT)]
        self._changing = [
            orjson.dumps(pod) for page in pods[:: len(pods) // 4] for pod in orjson.loads(page)
        ]
        self.go = asyncio.Event()
        self.events = 0

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        """Return a page; the next one comes by its number."""
        await asyncio.sleep(2 * _BEAT_SECONDS)
        if selection.resource is NODES:
            return Page(self._nodes, "9000000", "")
        if selection.resource is not PODS:
            names = [f"team-{number:03d}-prod" for number in range(TEAMS)]
            return Page([_named(name) for name in names], "9000000", "")
        number = int(continue_token or 0)
        token = str(number + 1) if number + 1 < len(self._pods) else ""
        return Page(orjson.loads(self._pods[number]), "20000000", token)

    @asynccontextmanager
    async def watch(
        self, selection: Selection, version: str, *, seconds: float, silence_seconds: float
    ) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        """Yield pods that change, once they may."""
        yield self._changes() if selection.resource is PODS else self._silence()

    async def _silence(self) -> AsyncIterator[WatchEvent]:
        await asyncio.Event().wait()
        yield WatchEvent(EventType.BOOKMARK, {})

    async def _changes(self) -> AsyncIterator[WatchEvent]:
        await self.go.wait()
        for number in range(_EVENTS):
            pod: dict[str, Any] = orjson.loads(self._changing[number % len(self._changing)])
            pod["metadata"]["resourceVersion"] = str(20_000_001 + number)
            pod["metadata"]["labels"]["seen"] = str(number % 7)
            self.events += 1
            yield WatchEvent(EventType.MODIFIED, pod)
            await asyncio.sleep(0)
        await asyncio.Event().wait()


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}}


def _node(number: int) -> dict[str, Any]:
    node = _named(f"node-{number}")
    node["status"] = {
        "allocatable": {"nvidia.com/gpu": "64", "cpu": "256", "memory": "2Ti", "pods": "250"}
    }
    return node


def _policies() -> PolicySet:
    tenants = [tenant(f"team-{number:03d}", 200, 400) for number in range(TEAMS)]
    owned = {f"{each.name}-prod": each for each in tenants}
    return replace(
        base(),
        tenants={each.name: each for each in tenants},
        tenant_by_namespace=owned,
        selecting_tenants=(),
    )


async def measure(count: int, waiting: int) -> dict[str, Any]:
    """Return the figures of so many pods, of which some wait."""
    source, policies = Source(list(pages(count, waiting))), _policies()
    cluster = LiveCluster(source, lambda: policies, catalog())
    gc.collect()
    gc.freeze()
    began = time.process_time()
    with _beating() as listing:
        task = asyncio.create_task(cluster.run())
        async with spared():
            await cluster.wait_synced()
        await asyncio.sleep(2 * _BEAT_SECONDS)
    listed_seconds = time.process_time() - began
    plan(cluster.state, _BEGUN_AT, 0)
    began = time.process_time()
    with _beating() as changing:
        await _change(source, cluster)
    figures = {
        "bench": "holding",
        "pods": count,
        "listing": {**listing.figures(), "cpu_seconds": round(listed_seconds, 2)},
        "changing": {
            **changing.figures(),
            "cpu_seconds": round(time.process_time() - began, 2),
            "full_collection_cpu_ms": _full_collection_ms(),
        },
        "full_collection_of_all_cpu_ms": _of_all(),
        **describe_machine(),
    }
    task.cancel()
    await asyncio.wait((task,))
    return figures


def _full_collection_ms() -> float:
    began = time.thread_time()
    gc.collect()
    return round((time.thread_time() - began) * 1e3, 1)


def _of_all() -> float:
    """Return what a full collection would hold the loop for, had nothing been spared."""
    gc.unfreeze()
    return _full_collection_ms()


async def _change(source: Source, cluster: LiveCluster) -> None:
    """Let pods change, and plan now and then."""
    source.go.set()
    planned = 0
    while source.events < _EVENTS:
        await asyncio.sleep(0)
        if source.events - planned >= _PLAN_EVERY:
            planned = source.events
            plan(cluster.state, _BEGUN_AT + planned // _PLAN_EVERY, 0)


def main() -> int:
    """Measure, print the line, return the exit code."""
    sys.stdout.write(json.dumps(asyncio.run(measure(POD_COUNT, WAITING))) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
