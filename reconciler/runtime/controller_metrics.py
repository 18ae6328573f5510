# SPDX-License-Identifier: Apache-2.0
"""What controllers count. Label values are names of tenants and pools, of which there are few."""

from typing import Final

from reconciler.runtime.audit_eviction import EvictionEntry
from reconciler.runtime.metrics import Metrics

_MOST_TENANTS: Final = 500
OTHERS: Final = "others"
"""The label of all tenants beyond the first so many, so that the number of series is bounded."""


class ControllerMetrics:
    """Counts into a process' metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._tenants: set[str] = set()

    def leads(self, is_leading: bool) -> None:
        """State whether this process leads."""
        self._metrics.gauge("sluice_leader").set(is_leading)

    def failed(self) -> None:
        """Count controllers that died of a fault of ours."""
        self._metrics.counter("sluice_controllers_failures_total").inc()

    def planned(self, controller: str, seconds: float) -> None:
        """Count a pass of a controller."""
        histogram = self._metrics.histogram("sluice_plan_duration_seconds")
        histogram.labels(controller=controller).observe(seconds)

    def released(self, tenant: str, pool: str, wait_seconds: float, *, borrowed: bool) -> None:
        """Count a release, and how long its pod had waited."""
        label = self.tenant_label(tenant)
        counter = self._metrics.counter("sluice_pods_released_total")
        counter.labels(tenant=label, pool=pool, borrowed=str(borrowed).lower()).inc()
        self._metrics.histogram("sluice_pod_wait_seconds").labels(tenant=label).observe(
            max(0.0, wait_seconds)
        )

    def release_failed(self, error: str) -> None:
        """Count a refused release by the type of its error."""
        self._metrics.counter("sluice_release_failures_total").labels(error=error).inc()

    def mirror_failed(self, error: str) -> None:
        """Count a document that could not be mirrored, by the type of its error."""
        self._metrics.counter("sluice_mirror_failures_total").labels(error=error).inc()

    def status_failed(self, error: str) -> None:
        """Count a status of a tenant that could not be written, by the type of its error."""
        self._metrics.counter("sluice_status_failures_total").labels(error=error).inc()

    def disturbed(self, entry: EvictionEntry) -> None:
        """Count what was done to a running pod, by its tenant, and what came of it."""
        charge = entry.command.pod.charge
        self._metrics.counter("sluice_disruptions_total").labels(
            tenant=self.tenant_label(charge.tenant) if charge is not None else "",
            action=type(entry.command).__name__,
            outcome=str(entry.outcome),
        ).inc()

    def tenant_label(self, tenant: str) -> str:
        """Return the label of a tenant; that of all the others once there are too many."""
        if tenant in self._tenants or len(self._tenants) < _MOST_TENANTS:
            self._tenants.add(tenant)
            return tenant
        return OTHERS
