# SPDX-License-Identifier: Apache-2.0
"""The idle histories of all tenants, in each pool where they have something to lend."""

from collections.abc import Callable, Iterable, Mapping

from policies.model.tenant import Tenant
from policies.quota.idle import IdleHistory, read_idle_history


class Histories:
    """By tenant and pool. One that is kept for another time than the tenant says begins anew."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], IdleHistory] = {}
        self._inherited: dict[tuple[str, str], object] = {}

    def of(self, tenant: Tenant, pool: str) -> IdleHistory:
        """Return what a tenant used and asked for in a pool; one that was inherited goes on."""
        idle_after, key = tenant.lending.idle_after_seconds, (tenant.name, pool)
        found = self._known.get(key)
        if found is None or found.idle_after_seconds != idle_after:
            found = read_idle_history(self._inherited.pop(key, None), idle_after)
            self._known[key] = found
        return found

    def inherit(self, tenant: str, pool: str, plain: object) -> None:
        """Go on with what a past leader wrote down."""
        self._inherited[tenant, pool] = plain
        self._known.pop((tenant, pool), None)

    def plain_of(self, tenant: Tenant) -> Mapping[str, object]:
        """Return a tenant's histories as JSON values by pool, for the next leader."""
        return {pool: self.of(tenant, pool).to_plain() for pool in _lending_pools(tenant)}

    def observe(
        self, now: int, tenants: Iterable[Tenant], wanted: Callable[[Tenant, str], int]
    ) -> None:
        """Take note of what each tenant uses or asks for where it has something to lend."""
        for tenant in tenants:
            for pool in _lending_pools(tenant):
                self.of(tenant, pool).observe(now, wanted(tenant, pool))


def _lending_pools(tenant: Tenant) -> Iterable[str]:
    if not tenant.lending.enabled:
        return ()
    return [pool for pool, quota in tenant.pools.items() if quota.guarantee_milli]
