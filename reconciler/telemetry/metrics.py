# SPDX-License-Identifier: Apache-2.0
"""Tells metrics how telemetry does. Which metrics there are is said in metric_specs."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from reconciler.runtime.metrics import Metrics
from reconciler.telemetry.sampler import Sampler
from reconciler.telemetry.store import TelemetryStore

_RESULTS: Final = ("Success", "Partial", "Failure")


class TelemetryMetrics:
    """Shows counts that others keep; each call adds what came since the one before."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._shown: Counter[tuple[str, str]] = Counter()

    def show(self, source: str, sampler: Sampler, store: TelemetryStore) -> None:
        """Show a source's looks, what became of samples, and how many nodes are known of."""
        # All of them from the start: a rate does not see the step with which a series begins.
        looks = {result: sampler.looks[result] for result in _RESULTS}
        self._add("sluice_telemetry_looks_total", "result", looks, source=source)
        self._add("sluice_telemetry_samples_total", "outcome", store.outcomes)
        self._add("sluice_telemetry_samples_total", "outcome", {"Malformed": sampler.malformed})
        fresh, stale = store.freshness()
        gauge = self._metrics.gauge("sluice_telemetry_nodes")
        gauge.labels(state="Fresh").set(fresh)
        gauge.labels(state="Stale").set(stale)

    def _add(self, name: str, label: str, counts: Mapping[str, int], **labels: str) -> None:
        counter = self._metrics.counter(name)
        for value, count in counts.items():
            counter.labels(**labels, **{label: str(value)}).inc(count - self._shown[name, value])
            self._shown[name, value] = count
