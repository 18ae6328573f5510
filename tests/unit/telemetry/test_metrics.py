# SPDX-License-Identifier: Apache-2.0
"""What telemetry tells metrics: looks, what became of samples, and of how many nodes it knows."""

from collections.abc import Set as AbstractSet

from policies.telemetry.classes import TRAINING
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample, Subject
from reconciler.runtime.metrics import Metrics
from reconciler.telemetry.metrics import TelemetryMetrics
from reconciler.telemetry.nodes import TelemetryNode
from reconciler.telemetry.sampler import Sampler
from reconciler.telemetry.source import Report, Take
from reconciler.telemetry.store import TelemetryStore
from tests.support.telemetry import LIMITS, Clock

_NODES = [TelemetryNode(name, "", TRAINING) for name in ("a", "b")]


class _Source:
    name = "scrape"
    is_by_node = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def read(self, nodes: AbstractSet[str], take: Take) -> Report:
        for name in sorted(nodes):
            for value in (0.5, float("nan")):
                subject = Subject(name, f"GPU-{name}", 0)
                take([Sample(Quantity.UTILISATION, subject, value, self._clock.now)])
        return Report(malformed=1)


async def test_counts_grow_by_what_came_and_nodes_go_stale() -> None:
    clock, metrics = Clock(), Metrics()
    store = TelemetryStore(lambda _: LIMITS, clock=clock)
    sampler = Sampler(_Source(clock), store, lambda: _NODES, (TRAINING,))
    shown = TelemetryMetrics(metrics)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    await sampler.look(frozenset({"a", "b"}))
    shown.show("scrape", sampler, store)
    clock.now += 20
    await sampler.look(frozenset({"a"}))
    clock.now += 20
    shown.show("scrape", sampler, store)
    shown.show("scrape", sampler, store)
    assert value("sluice_telemetry_looks_total", source="scrape", result="Success") == 2
    assert value("sluice_telemetry_samples_total", outcome="Taken") == 3
    assert value("sluice_telemetry_samples_total", outcome="NotAMeasurement") == 3
    assert value("sluice_telemetry_samples_total", outcome="Malformed") == 2
    assert value("sluice_telemetry_nodes", state="Fresh") == 1
    assert value("sluice_telemetry_nodes", state="Stale") == 1
