# SPDX-License-Identifier: Apache-2.0
"""Counts what the extender is asked. What metrics there are is said in reconciler.runtime."""

from collections.abc import Sized

from reconciler.runtime.metrics import Metrics


class ExtenderCounts:
    """The extender's part of a process's metrics. `assumed` are the pods that are assumed now."""

    def __init__(self, metrics: Metrics, assumed: Sized) -> None:
        self._metrics = metrics
        self._duration = metrics.histogram("sluice_extender_duration_seconds")
        self._failures = metrics.counter("sluice_extender_failures_total")
        self._active = metrics.gauge("sluice_extender_active")
        metrics.gauge("sluice_extender_assumed_pods").set_function(lambda: len(assumed))

    def extender_asked(self, verb: str, seconds: float) -> None:
        """Count an answered question."""
        self._duration.labels(verb).observe(seconds)

    def extender_failed(self, verb: str) -> None:
        """Count a question that was answered neutrally for a fault of our own."""
        self._failures.labels(verb).inc()

    def is_active(self, active: bool) -> None:
        """State whether this process is the one that answers."""
        self._active.set(active)

    def call_refused(self, status: int) -> None:
        """Count a call that was no question."""
        self._metrics.call_refused(status)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return what /metrics answers, and its content type."""
        return self._metrics.exposition(accept)
