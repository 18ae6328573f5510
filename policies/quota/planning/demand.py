# SPDX-License-Identifier: Apache-2.0
"""What tenants use and wait for by pool. A pod that may go into several counts in each of them."""

from collections.abc import Iterable, Mapping

from policies.model.tenant import Tenant
from policies.quota.ledger import Ledger
from policies.quota.planning.options import Options
from policies.quota.pods import Shape
from policies.quota.queue import Queue, TenantQueue


class Demand:
    """Remembers each tenant's, as long as what waits, usage and options stay the same."""

    def __init__(self) -> None:
        self._options: Options | None = None
        self._known: dict[str, tuple[int, Mapping[str, int]]] = {}

    def forget(self, tenants: Iterable[str]) -> None:
        """Know that the usage of tenants has changed."""
        for tenant in tenants:
            self._known.pop(tenant, None)

    def of(
        self, tenant: Tenant, queue: Queue, options: Options, ledger: Ledger
    ) -> Mapping[str, int]:
        """Return milli-GPU by pool: what counts for the tenant, and what it waits for."""
        if options is not self._options:
            self._options = options
            self._known.clear()
        line = queue.tenants.get(tenant.name)
        version = 0 if line is None else line.version
        known = self._known.get(tenant.name)
        if known is not None and known[0] == version:
            return known[1]
        waiting = {} if line is None else _summed(tenant, line, options)
        found = {
            pool: ledger.entitled(tenant.name, pool).milli + waiting.get(pool, 0)
            for pool in (*ledger.pools(tenant.name), *waiting)
        }
        self._known[tenant.name] = version, found
        return found


def _summed(tenant: Tenant, queue: TenantQueue, options: Options) -> Mapping[str, int]:
    counts: list[tuple[Shape, int]] = [(group.shape, len(group)) for group in queue.groups]
    counts += [(pod.shape, 1) for gang in queue.gangs.values() for pod in gang.waiting.values()]
    found: dict[str, int] = {}
    for shape, count in counts:
        for option in options.of(shape):
            if tenant.quota_of(option.pool).ceiling_milli != 0:
                milli = option.amount.milli * count
                found[option.pool] = found.get(option.pool, 0) + milli
    return found
