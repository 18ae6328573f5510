# SPDX-License-Identifier: Apache-2.0
"""Asks a source again and again, each class of nodes as often as it needs, and fills a store.

A source that fails is asked less and less often; meanwhile what is known grows old by itself.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from policies.telemetry.classes import SamplingClass
from policies.telemetry.samples import Sample
from reconciler.kube.backoff import Backoff
from reconciler.kube.reflector import Runtime
from reconciler.telemetry.nodes import TelemetryNode
from reconciler.telemetry.source import Source, SourceError
from reconciler.telemetry.store import TelemetryStore

_LOG: Final = logging.getLogger(__name__)
_RUNTIME: Final = Runtime()
_CAP_SECONDS: Final = 60.0
_IDLE_SECONDS: Final = 1.0
"""How soon nodes are looked for again where a class has none."""
_EXPIRE_SECONDS: Final = 1.0


class Sampler:
    """Runs one source for one store. `nodes` are those that are known now."""

    def __init__(
        self,
        source: Source,
        store: TelemetryStore,
        nodes: Callable[[], Iterable[TelemetryNode]],
        classes: tuple[SamplingClass, ...],
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self.looks: Counter[str] = Counter()
        """How often the source was asked, by `Success`, `Partial` and `Failure`, for metrics."""
        self.malformed = 0
        """How much could not be understood."""
        self._source = source
        self._store = store
        self._nodes = nodes
        self._classes = classes
        self._runtime = runtime
        self._said: dict[str, str] = {}

    async def run(self) -> None:
        """Sample until cancelled; raises only what is a fault of our own."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._expire(), name="telemetry growing old")
            if not self._source.is_by_node:
                tasks.create_task(self._poll(None), name="telemetry of all nodes")
                return
            for each in self._classes:
                tasks.create_task(self._poll(each), name=f"telemetry of {each.name} nodes")

    async def _poll(self, sampling: SamplingClass | None) -> None:
        failures = 0
        while True:
            began = self._runtime.clock()
            names, interval = self._wanted(sampling)
            pause = 0.0
            if names:
                wait = await self.look(names, sampling.name if sampling else "")
                failures = 0 if wait is None else failures + 1
                if wait is not None:
                    backoff = Backoff(interval, max(_CAP_SECONDS, interval))
                    pause = max(wait, backoff.seconds(failures, self._runtime.uniform))
            spent = self._runtime.clock() - began
            await self._runtime.sleep(max(pause, interval - spent, 0.0))

    def _wanted(self, sampling: SamplingClass | None) -> tuple[frozenset[str], float]:
        """Return whom to ask for, and how often; by the most frequent class if not by one."""
        nodes = [node for node in self._nodes() if sampling in {None, node.sampling}]
        intervals = [node.sampling.interval_seconds for node in nodes]
        return frozenset(node.name for node in nodes), min(intervals, default=_IDLE_SECONDS)

    async def look(self, names: frozenset[str], sampling: str = "") -> float | None:
        """Ask once; return None if it went well, else how long the source wants to be left."""
        tally = _Tally()

        def take(samples: Iterable[Sample]) -> None:
            self._store.put(tally.of_nodes(samples, names))

        try:
            report = await self._source.read(names, take)
        except SourceError as error:
            self.looks["Failure"] += 1
            self._say(sampling, str(error))
            return error.retry_after_seconds or 0.0
        finally:
            self._store.publish()
        problems = (*report.problems, *tally.problems())
        self.looks["Partial" if problems else "Success"] += 1
        self.malformed += report.malformed
        self._say(sampling, "; ".join(problems))
        return None

    def _say(self, sampling: str, problem: str) -> None:
        """Log what is wrong when it begins, changes and ends, not at each look."""
        if problem == self._said.get(sampling, ""):
            return
        self._said[sampling] = problem
        what = f"{self._source.name}{f' ({sampling} nodes)' if sampling else ''}"
        if problem:
            _LOG.warning("telemetry from %s: %s", what, problem)
        else:
            _LOG.info("telemetry from %s is whole again", what)

    async def _expire(self) -> None:
        while True:
            self._store.expire()
            await self._runtime.sleep(_EXPIRE_SECONDS)


class _Tally:
    """Tells samples of the nodes asked for from others: of another class, or another cluster."""

    def __init__(self) -> None:
        self._kept = 0
        self._stranger = ""

    def of_nodes(self, samples: Iterable[Sample], names: frozenset[str]) -> Iterator[Sample]:
        """Yield the samples that are of these nodes."""
        for sample in samples:
            if sample.subject.node in names:
                self._kept += 1
                yield sample
            else:
                self._stranger = min(self._stranger or sample.subject.node, sample.subject.node)

    def problems(self) -> tuple[str, ...]:
        """Say so if all that came is of strangers: then labels name nodes otherwise than we do."""
        if self._kept or not self._stranger:
            return ()
        return (f"every sample is of a node that is not known here, such as {self._stranger!r}",)
