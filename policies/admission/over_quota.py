# SPDX-License-Identifier: Apache-2.0
"""What a tenant's quota has no room for just now, where it says `whenOverQuota: Deny`.

Held against a snapshot of what is used: it refuses early what would only wait, and may let through
what must wait. That no ceiling is passed is for the gate, not for this.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policies.admission.ceilings import GPUS
from policies.admission.charging import Cost, gpus
from policies.admission.fitting import gib, gib_up
from policies.admission.reach import Reach
from policies.model.decision import Violation
from policies.model.reasons import Reason
from policies.model.tenant import Tenant, WhenOverQuota
from policies.model.usage import TenantUsage


@dataclass(frozen=True, slots=True)
class Left:
    """What is used of a ceiling and what is free, in milli-GPU."""

    used_milli: int
    ceiling_milli: int

    @property
    def free_milli(self) -> int:
        """Return what is free; none where the ceiling was lowered below the use."""
        return max(0, self.ceiling_milli - self.used_milli)


def left_for_one(tenant: Tenant, usage: TenantUsage, reach: Reach) -> Left | None:
    """Return the pool in which most is left for a pod; None where nothing bounds it."""
    found = _lefts(tenant, usage, reach)
    return max(found, key=lambda left: left.free_milli) if found else None


def left_for_all(tenant: Tenant, usage: TenantUsage, reach: Reach) -> Left | None:
    """Return what is left for many pods in all their pools; None where nothing bounds them."""
    found = _lefts(tenant, usage, reach)
    if not found:
        return None
    # What is over in one pool takes nothing from another.
    used = sum(min(left.used_milli, left.ceiling_milli) for left in found)
    return Left(used, sum(left.ceiling_milli for left in found))


def _lefts(tenant: Tenant, usage: TenantUsage, reach: Reach) -> tuple[Left, ...]:
    """Return what is left in each pool; nothing where one has no ceiling."""
    ceilings = {pool: tenant.quota_of(pool).ceiling_milli for pool in reach.pools}
    found = tuple(
        Left(usage.milli_by_pool.get(pool, 0), ceiling)
        for pool, ceiling in ceilings.items()
        if ceiling is not None
    )
    return found if len(found) == len(ceilings) else ()


def over_quota(
    tenant: Tenant, usage: TenantUsage | None, cost: Cost, reach: Reach
) -> Iterator[Violation]:
    """Refuse what the snapshot shows to be over; nothing where usage is not known."""
    if tenant.when_over_quota is not WhenOverQuota.DENY or usage is None:
        return
    for excess in _excesses(tenant, usage, cost, left_for_one(tenant, usage, reach)):
        at_most = f", or ask for at most {excess.free}" if excess.is_any_free else ""
        yield Violation(
            Reason.OVER_CEILING,
            f"exceeded quota: tenant {tenant.name} uses {excess.used} of {excess.ceiling}"
            f"{excess.of}, this pod asks {excess.asked}: free {excess.free}, wait for others to "
            f"end{at_most}",
            passing=True,
        )


@dataclass(frozen=True, slots=True)
class _Excess:
    used: str
    ceiling: str
    asked: str
    free: str
    is_any_free: bool
    of: str = GPUS


_OF_MEMORY: Final = " of GPU memory"


def _excesses(
    tenant: Tenant, usage: TenantUsage, cost: Cost, left: Left | None
) -> Iterator[_Excess]:
    if left is not None and cost.milli > left.free_milli:
        yield _Excess(
            gpus(left.used_milli),
            gpus(left.ceiling_milli),
            gpus(cost.milli),
            gpus(left.free_milli),
            left.free_milli > 0,
        )
    memory, used = tenant.memory_mib, usage.memory_mib
    if memory is not None and used + cost.least_mib > memory:
        free = max(0, memory - used)
        yield _Excess(
            gib_up(used), gib(memory), gib_up(cost.least_mib), gib(free), free > 0, _OF_MEMORY
        )
    for name, count in cost.counts.items():
        ceiling, taken = tenant.resources.get(name), usage.counts.get(name, 0)
        if ceiling is not None and taken + count > ceiling:
            free = max(0, ceiling - taken)
            yield _Excess(str(taken), str(ceiling), str(count), str(free), free > 0, f" {name}")
