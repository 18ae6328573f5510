# SPDX-License-Identifier: Apache-2.0
"""The memory of nodes' cards in the nodes' annotations: read as a source, written for others.

Only three keys are touched, by server-side apply under a field manager of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample, Subject
from policies.telemetry.views import NodeTelemetry
from reconciler.kube.client import JsonObject
from reconciler.kube.errors import ApiError, ConflictError, NotFoundError
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import NODES, Target
from reconciler.telemetry.nodes import (
    MEMORY_TOTAL,
    MEMORY_USED,
    UPDATED_AT,
    MemoryNote,
    TelemetryNode,
)
from reconciler.telemetry.source import Report, Take

_LOG: Final = logging.getLogger(__name__)
_FIELD_MANAGER: Final = "sluice-telemetry"
_RANK: Final = 1000
"""Annotations come after every exporter."""
_RUNTIME: Final = Runtime()


class Annotations:
    """The annotations as a source. `nodes` are those that are known now."""

    def __init__(self, nodes: Callable[[], Iterable[TelemetryNode]]) -> None:
        self._nodes = nodes

    @property
    def name(self) -> str:
        """The source's name."""
        return "annotations"

    @property
    def is_by_node(self) -> bool:
        """Return True: each node has its own."""
        return True

    async def read(self, nodes: AbstractSet[str], take: Take) -> Report:
        """Hand over the notes of these nodes; each is of all cards of a node together."""
        for node in self._nodes():
            if node.name in nodes and node.note is not None:
                take(_samples(node.name, node.note))
        return Report()


def _samples(node: str, note: MemoryNote) -> Iterable[Sample]:
    subject = Subject(node)
    yield Sample(Quantity.MEMORY_USED, subject, float(note.used_mib), note.time, _RANK)
    yield Sample(Quantity.MEMORY_TOTAL, subject, float(note.total_mib), note.time, _RANK)


class Applier(Protocol):
    """The part of a client that writing needs."""

    async def apply(
        self, target: Target, body: JsonObject, *, field_manager: str, force: bool = True
    ) -> JsonObject:
        """Server-side apply."""
        ...


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """When a node is written. Raises ValueError for what would never or always write.

    `threshold` is the part of the total by which the used memory must have changed;
    `refresh_seconds` after which it is written all the same, so that readers can tell stale ones.
    """

    threshold: float = 0.02
    node_seconds: float = 10.0
    refresh_seconds: float = 120.0
    writes_a_second: float = 20.0
    concurrency: int = 4
    look_seconds: float = 1.0

    def __post_init__(self) -> None:
        times = (self.node_seconds, self.refresh_seconds, self.writes_a_second, self.look_seconds)
        if not all(time > 0 for time in times) or not 0 <= self.threshold < 1:
            raise ValueError("the writer's times and rate must be above 0, its threshold below 1")
        if self.concurrency < 1:
            raise ValueError("the writer needs at least one call at a time")


class Writer:
    """Writes what is known of nodes into their annotations, while `run` runs.

    What is unknown is not written: the time that is there tells how old it has become.
    """

    def __init__(
        self,
        client: Applier,
        nodes: Callable[[], Iterable[TelemetryNode]],
        telemetry: Callable[[str], NodeTelemetry],
        settings: WriterSettings,
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._telemetry = telemetry
        self._settings = settings
        self._runtime = runtime
        self._tried: dict[str, float] = {}
        """When, by the monotonic clock, each node was last written or tried to be."""
        self._errors: set[str] = set()

    async def run(self) -> None:
        """Write until cancelled."""
        budget = max(1, round(self._settings.writes_a_second * self._settings.look_seconds))
        while True:
            began = self._runtime.clock()
            await self.write(budget)
            spent = self._runtime.clock() - began
            await self._runtime.sleep(max(0.0, self._settings.look_seconds - spent))

    async def write(self, budget: int) -> int:
        """Write the nodes that need it most, at most `budget`; return how many were tried."""
        now = self._runtime.clock()
        nodes = {node.name: node for node in self._nodes()}
        self._tried = {name: at for name, at in self._tried.items() if name in nodes}
        due = [
            (self._tried.get(node.name, float("-inf")), node, note)
            for node in nodes.values()
            if now - self._tried.get(node.name, float("-inf")) >= self._settings.node_seconds
            and (note := self._due(node)) is not None
        ]
        # Who has waited longest comes first, so that none is starved by others that change often.
        due.sort(key=lambda each: (each[0], each[1].name))
        waiting = iter(due[:budget])

        async def work() -> None:
            for _, node, note in waiting:
                self._tried[node.name] = now
                await self._apply(node, note)

        await asyncio.gather(*(work() for _ in range(self._settings.concurrency)))
        return min(budget, len(due))

    def _due(self, node: TelemetryNode) -> MemoryNote | None:
        """Return what is to be written; None if what is there does."""
        seen = self._telemetry(node.name)
        # The annotations themselves are no news.
        if not seen.cards or seen.memory_used_mib is None or not seen.memory_total_mib:
            return None
        if seen.time is None or any(card.values.memory_used_mib is None for card in seen.cards):
            return None
        used, total = round(seen.memory_used_mib), round(seen.memory_total_mib)
        note = MemoryNote(min(used, total), total, seen.time)
        return note if self._differs(node.note, note) else None

    def _differs(self, old: MemoryNote | None, new: MemoryNote) -> bool:
        if old is None or old.total_mib != new.total_mib:
            return True
        if new.time - old.time >= self._settings.refresh_seconds:
            return True
        return abs(new.used_mib - old.used_mib) > self._settings.threshold * new.total_mib

    async def _apply(self, node: TelemetryNode, note: MemoryNote) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            # With the UID a node that is gone is not made anew.
            "metadata": {"name": node.name, "uid": node.uid, "annotations": _annotations(note)},
        }
        try:
            await self._client.apply(
                Target(NODES, node.name), body, field_manager=_FIELD_MANAGER, force=True
            )
        except (NotFoundError, ConflictError):
            return  # the node is gone or another by now; the watch will say so
        except ApiError as error:
            if (text := f"{type(error).__name__} {error.reason}") not in self._errors:
                self._errors.add(text)
                _LOG.warning("cannot write the memory of node %s: %s", node.name, error)
            return
        self._errors.clear()


def _annotations(note: MemoryNote) -> dict[str, str]:
    stamp = datetime.fromtimestamp(note.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        MEMORY_USED: str(note.used_mib),
        MEMORY_TOTAL: str(note.total_mib),
        UPDATED_AT: stamp,
    }
