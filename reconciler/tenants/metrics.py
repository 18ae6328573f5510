# SPDX-License-Identifier: Apache-2.0
"""Tells metrics how tenants stand. Which metrics there are is said in metric_specs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from policies.quota.capacity import guarantees_by_pool, overcommitted_pools
from policies.quota.figures import PoolFigures, TenantFigures
from policies.quota.metering import Key
from policies.quota.oddities import Odd
from policies.quota.state import QuotaState
from reconciler.runtime.gauges import Series, ShownGauges
from reconciler.runtime.metrics import Metrics

_POOL: Final[Mapping[str, Callable[[PoolFigures], int | None]]] = {
    "sluice_tenant_guarantee_gpus": lambda pool: pool.guarantee_milli,
    "sluice_tenant_ceiling_gpus": lambda pool: pool.ceiling_milli,
    "sluice_tenant_used_gpus": lambda pool: pool.used_milli,
    "sluice_tenant_borrowed_gpus": lambda pool: pool.borrowed_milli,
    "sluice_tenant_lent_gpus": lambda pool: pool.lent_milli,
    "sluice_tenant_owed_gpus": lambda pool: pool.owed_milli,
}
_OLDEST: Final = "sluice_tenant_oldest_wait_seconds"
_MILLI: Final = 1000
_MILLION: Final = 1_000_000


class TenantGauges:
    """Shows tenants and pools as they are, and none that are gone.

    `label` bounds the number of tenants: several may have one, and then it stands for their sum.
    """

    def __init__(self, metrics: Metrics, label: Callable[[str], str]) -> None:
        self._gauges = ShownGauges(metrics)
        self._label = label

    def show(self, state: QuotaState, standing: Mapping[str, TenantFigures], now: float) -> None:
        """Show how tenants stand at `now` (Unix seconds)."""
        series: dict[Series, float] = {}
        self._of_pools(standing.values(), series)
        self._of_waiting(standing.values(), now, series)
        _of_odd(standing.values(), series)
        _of_overcommitted(state, series)
        self._gauges.show(series)

    def clear(self) -> None:
        """Show nothing."""
        self._gauges.show({})

    def _of_pools(self, standing: Iterable[TenantFigures], series: dict[Series, float]) -> None:
        for tenant in standing:
            label = self._label(tenant.name)
            for pool in tenant.pools:
                for name, milli_of in _POOL.items():
                    milli = milli_of(pool)
                    if milli is not None:
                        key = name, (label, pool.pool)
                        series[key] = series.get(key, 0) + milli / _MILLI

    def _of_waiting(
        self, standing: Iterable[TenantFigures], now: float, series: dict[Series, float]
    ) -> None:
        for tenant in standing:
            labels = (self._label(tenant.name),)
            pending, oldest = ("sluice_tenant_pending_pods", labels), (_OLDEST, labels)
            wait = 0.0 if tenant.oldest_at is None else max(0.0, now - tenant.oldest_at)
            series[pending] = series.get(pending, 0) + tenant.pending
            series[oldest] = max(series.get(oldest, 0.0), wait)


def _of_odd(standing: Iterable[TenantFigures], series: dict[Series, float]) -> None:
    counts: Counter[Odd] = Counter({kind: 0 for kind in Odd if kind is not Odd.OVER_CEILING})
    for tenant in standing:
        counts.update(tenant.odd)
    for kind, count in counts.items():
        series["sluice_odd_pods", (str(kind),)] = count


def _of_overcommitted(state: QuotaState, series: dict[Series, float]) -> None:
    too_much = {
        each.pool: each.guaranteed_milli - each.capacity_milli
        for each in overcommitted_pools(state.policies, state.capacities())
    }
    for pool in guarantees_by_pool(state.policies):
        series["sluice_overcommitted_gpus", (pool,)] = too_much.get(pool, 0) / _MILLI


def gpu_seconds(metrics: Metrics, label: Callable[[str], str]) -> Callable[[Key, int], None]:
    """Return what counts millionths of GPU-seconds."""
    counter = metrics.counter("sluice_gpu_seconds_total")

    def count(key: Key, micro: int) -> None:
        labelled = counter.labels(tenant=label(key.tenant), pool=key.pool, mode=key.mode)
        labelled.inc(micro / _MILLION)

    return count
