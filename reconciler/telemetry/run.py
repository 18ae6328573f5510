# SPDX-License-Identifier: Apache-2.0
"""Puts telemetry together: nodes, a source, the sampler, the store, and the annotations' writer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from policies.telemetry.freshness import Freshness
from reconciler.kube.client import Client
from reconciler.kube.reflector import Reflector, Runtime
from reconciler.kube.resources import NODES, Selection
from reconciler.kube.store import Change, Key
from reconciler.runtime.metrics import Metrics
from reconciler.telemetry.annotations import Annotations, Writer
from reconciler.telemetry.config import TelemetryConfig
from reconciler.telemetry.endpoints import Endpoints
from reconciler.telemetry.http import Http
from reconciler.telemetry.kinds import SourceKind
from reconciler.telemetry.metrics import TelemetryMetrics
from reconciler.telemetry.nodes import TelemetryNode, node_view
from reconciler.telemetry.prometheus import Prometheus
from reconciler.telemetry.sampler import Sampler
from reconciler.telemetry.scrape import Scrape
from reconciler.telemetry.source import Source
from reconciler.telemetry.store import TelemetryStore

_RUNTIME: Final = Runtime()
_SHOW_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Started:
    source: Source
    endpoints: Endpoints | None = None


class Telemetry:
    """One process's telemetry. `store` answers at once, with nothing until `run` runs.

    Several may `run` it at a time, as who leads and who is the active extender: it samples once.
    """

    def __init__(
        self,
        client: Client,
        config: TelemetryConfig,
        runtime: Runtime = _RUNTIME,
        metrics: Metrics | None = None,
    ) -> None:
        self.config = config
        self._client = client
        self._runtime = runtime
        self._metrics = metrics
        self._nodes: Reflector[TelemetryNode] = Reflector(
            client, Selection(NODES), node_view(config.classes), runtime=runtime
        )
        self._limits = {each: each.freshness(config.skew_seconds) for each in config.classes}
        # Of a node that is not known yet only what must be stale is taken for so.
        self._widest = max(self._limits.values(), key=lambda limits: limits.max_age_seconds)
        self.store = TelemetryStore(
            self._freshness,
            config.smoothing,
            config.whole_nodes,
            lambda: runtime.wall_clock().timestamp(),
            self._board_mib,
        )
        self.sampler: Sampler | None = None
        """The one that runs, for metrics; None where there is no source."""
        self._sampling: asyncio.Task[None] | None = None
        self._users = 0
        self._nodes.subscribe(self._node_changed)

    async def run(self, *, writes: bool = True) -> None:
        """Sample until cancelled; `writes` the annotations too, which only one process should.

        Raises what is a fault of our own, to all who run it.
        """
        self._users += 1
        try:
            async with asyncio.TaskGroup() as tasks:
                if writes and self.config.writes_annotations:
                    tasks.create_task(self._write(), name="memory of nodes")
                # Whoever stops must not stop it for the others.
                await asyncio.shield(self._begun())
        finally:
            self._users -= 1
            await self._end_unused()

    def _begun(self) -> "asyncio.Task[None]":
        if self._sampling is None or self._sampling.done():
            self._sampling = asyncio.create_task(self._sample(), name="telemetry")
        return self._sampling

    async def _end_unused(self) -> None:
        task = self._sampling
        if self._users or task is None:
            return
        self._sampling = None
        task.cancel()
        # A fault of its own was raised to those who ran it.
        await asyncio.wait({task})

    async def _sample(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._nodes.run(), name="nodes of telemetry")
            await self._nodes.synced.wait()
            async with _started(self.config, self._client, self._nodes.values) as started:
                if started is None:
                    return
                if started.endpoints is not None:
                    tasks.create_task(started.endpoints.run(), name="exporters")
                    await started.endpoints.wait_synced()
                self.sampler = Sampler(
                    started.source,
                    self.store,
                    self._nodes.values,
                    self.config.classes,
                    self._runtime,
                )
                tasks.create_task(self._show(started.source.name, self.sampler), name="metrics")
                await self.sampler.run()

    async def _show(self, source: str, sampler: Sampler) -> None:
        shown = None if self._metrics is None else TelemetryMetrics(self._metrics)
        while shown is not None:
            shown.show(source, sampler, self.store)
            await self._runtime.sleep(_SHOW_SECONDS)

    async def _write(self) -> None:
        writer = Writer(
            self._client, self._nodes.values, self.store.node, self.config.writer, self._runtime
        )
        await self._nodes.synced.wait()
        await writer.run()

    def _freshness(self, node: str) -> Freshness:
        known = self._nodes.get(Key("", node))
        return self._widest if known is None else self._limits[known.sampling]

    def _board_mib(self, node: str) -> int | None:
        known = self._nodes.get(Key("", node))
        return None if known is None else known.board_mib

    def _node_changed(self, change: Change[TelemetryNode]) -> None:
        if change.new is None:
            self.store.forget(change.key.name)


@asynccontextmanager
async def _started(
    config: TelemetryConfig, client: Client, nodes: Callable[[], Iterable[TelemetryNode]]
) -> AsyncIterator[_Started | None]:
    async with AsyncExitStack() as stack:
        if config.source is SourceKind.PROMETHEUS and config.prometheus is not None:
            settings = config.prometheus
            http = await stack.enter_async_context(Http(settings.access, settings.limits))
            yield _Started(Prometheus(settings, http))
        elif config.source is SourceKind.SCRAPE:
            limits = config.scrape.limits
            http = await stack.enter_async_context(Http(config.scrape_access, limits))
            endpoints = Endpoints(client, config.pods)
            yield _Started(Scrape(endpoints, http, config.scrape), endpoints)
        elif config.source is SourceKind.ANNOTATIONS:
            yield _Started(Annotations(nodes))
        else:
            yield None
