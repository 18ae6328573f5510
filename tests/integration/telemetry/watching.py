# SPDX-License-Identifier: Apache-2.0
"""A sampler at work on a Prometheus, and what it knows. What is scraped is the test's matter."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from policies.telemetry.classes import SamplingClass
from policies.telemetry.freshness import Freshness
from policies.telemetry.views import Values
from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.http import Http, HttpLimits
from reconciler.telemetry.nodes import TelemetryNode
from reconciler.telemetry.prometheus import Prometheus, PrometheusSettings
from reconciler.telemetry.sampler import Sampler
from reconciler.telemetry.store import TelemetryStore
from tests.support.running import running

LIMITS = Freshness(4.0, 1.0)
_FAST = SamplingClass("fast", 0.5, 4.0)


@dataclass(frozen=True, slots=True)
class Watched:
    """What a sampler at work knows."""

    store: TelemetryStore
    sampler: Sampler
    look: Callable[[], Awaitable[float | None]]

    def values(self, node: str = "node-a") -> Values:
        """Return those of a node's first card, empty ones where none is known."""
        cards = self.store.node(node).cards
        return cards[0].values if cards else Values()

    def is_complete(self) -> bool:
        """Tell whether every metric has come: each is asked for by itself."""
        values = self.values()
        told = (values.utilisation, values.memory_total_mib, values.temperature_celsius)
        more = (values.xid, values.sm_occupancy, values.power_watts)
        return all(value is not None for value in (*told, *more))

    def busy(self, node: str = "node-a") -> float | None:
        """Return the utilisation of a node's first card."""
        utilisation = self.values(node).utilisation
        return None if utilisation is None else utilisation.value


@asynccontextmanager
async def watching(
    url: str, *nodes: str, access: HttpAccess | None = None
) -> AsyncIterator[Watched]:
    """Sample a Prometheus for nodes, `node-a` by default, while the context lasts."""
    known = [TelemetryNode(name, "", _FAST) for name in nodes or ("node-a",)]
    store = TelemetryStore(lambda _: LIMITS)
    limits = HttpLimits(seconds=2.0)
    settings = PrometheusSettings(url, access or HttpAccess(), range_seconds=10.0, limits=limits)
    names = frozenset(node.name for node in known)
    async with Http(settings.access, settings.limits) as http:
        sampler = Sampler(Prometheus(settings, http), store, lambda: known, (_FAST,))
        async with running(sampler.run()):
            yield Watched(store, sampler, lambda: sampler.look(names))
