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
from reconciler.runtime.metrics import Metrics

_POOL: Final[Mapping[str, Callable[[PoolFigures], int | None]]] = {
    "sluice_tenant_guarantee_gpus": lambda pool: pool.guarantee_milli,
    "sluice_tenant_ceiling_gpus": lambda pool: pool.ceiling_milli,
    "sluice_tenant_used_gpus": lambda pool: pool.used_milli,
    "sluice_tenant_borrowed_gpus": lambda pool: pool.borrowed_milli,
    "sluice_tenant_lent_gpus": lambda pool: pool.lent_milli,
    "sluice_tenant_owed_gpus": lambda pool: pool.owed_milli,
}
_OTHERS: Final = (
    "sluice_tenant_pending_pods",
    "sluice_tenant_oldest_wait_seconds",
    "sluice_odd_pods",
    "sluice_overcommitted_gpus",
)
_MILLI: Final = 1000
_MILLION: Final = 1_000_000


class TenantGauges:
    """Shows everything anew each time: tenants and pools that are gone have no series.

    `label` bounds the number of tenants: several may have one, and then it stands for their sum.
    """

    def __init__(self, metrics: Metrics, label: Callable[[str], str]) -> None:
        self._metrics = metrics
        self._label = label

    def show(self, state: QuotaState, standing: Mapping[str, TenantFigures], now: float) -> None:
        """Show how tenants stand at `now` (Unix seconds)."""
        self.clear()
        for name, milli_of in _POOL.items():
            for (tenant, pool), milli in self._summed(standing.values(), milli_of).items():
                self._metrics.gauge(name).labels(tenant=tenant, pool=pool).set(milli / _MILLI)
        self._show_waiting(standing.values(), now)
        self._show_odd(standing.values())
        self._show_overcommitted(state)

    def clear(self) -> None:
        """Show nothing."""
        for name in (*_POOL, *_OTHERS):
            self._metrics.gauge(name).clear()

    def _summed(
        self, standing: Iterable[TenantFigures], milli_of: Callable[[PoolFigures], int | None]
    ) -> Mapping[tuple[str, str], int]:
        found: Counter[tuple[str, str]] = Counter()
        for tenant in standing:
            label = self._label(tenant.name)
            for pool in tenant.pools:
                milli = milli_of(pool)
                if milli is not None:
                    found[label, pool.pool] += milli
        return found

    def _show_waiting(self, standing: Iterable[TenantFigures], now: float) -> None:
        pending: Counter[str] = Counter()
        oldest: dict[str, float] = {}
        for tenant in standing:
            label = self._label(tenant.name)
            wait = 0.0 if tenant.oldest_at is None else max(0.0, now - tenant.oldest_at)
            pending[label] += tenant.pending
            oldest[label] = max(wait, oldest.get(label, 0.0))
        for label, seconds in oldest.items():
            waiting = self._metrics.gauge("sluice_tenant_pending_pods").labels(tenant=label)
            waiting.set(pending[label])
            self._metrics.gauge("sluice_tenant_oldest_wait_seconds").labels(tenant=label).set(
                seconds
            )

    def _show_odd(self, standing: Iterable[TenantFigures]) -> None:
        counts: Counter[Odd] = Counter({kind: 0 for kind in Odd if kind is not Odd.OVER_CEILING})
        for tenant in standing:
            counts.update(tenant.odd)
        for kind, count in counts.items():
            self._metrics.gauge("sluice_odd_pods").labels(kind=str(kind)).set(count)

    def _show_overcommitted(self, state: QuotaState) -> None:
        too_much = {
            each.pool: each.guaranteed_milli - each.capacity_milli
            for each in overcommitted_pools(state.policies, state.capacities())
        }
        for pool in guarantees_by_pool(state.policies):
            gauge = self._metrics.gauge("sluice_overcommitted_gpus").labels(pool=pool)
            gauge.set(too_much.get(pool, 0) / _MILLI)


def gpu_seconds(metrics: Metrics, label: Callable[[str], str]) -> Callable[[Key, int], None]:
    """Return what counts millionths of GPU-seconds."""
    counter = metrics.counter("sluice_gpu_seconds_total")

    def count(key: Key, micro: int) -> None:
        labelled = counter.labels(tenant=label(key.tenant), pool=key.pool, mode=key.mode)
        labelled.inc(micro / _MILLION)

    return count
