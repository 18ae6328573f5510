# SPDX-License-Identifier: Apache-2.0
"""Tenants: who owns namespaces and quota."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from policies.model.labels import LabelSelector

DEFAULT_POOL = ""
"""The pool of the nodes that are in no pool; `quota.gpus` counts it."""

DEFAULT_IDLE_SECONDS = 30 * 60


class WhenOverQuota(StrEnum):
    """What happens to a pod that its tenant's quota has no room for now."""

    QUEUE = "Queue"
    DENY = "Deny"


@dataclass(frozen=True, slots=True)
class Quota:
    """Milli-GPU in one pool; None where nothing is set: no guarantee, no ceiling."""

    guarantee_milli: int | None = None
    ceiling_milli: int | None = None


@dataclass(frozen=True, slots=True)
class Lending:
    """Whether and when a guarantee that stands idle may be lent."""

    enabled: bool = True
    idle_after_seconds: int = DEFAULT_IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class Tenant:
    """Kind `Tenant`.

    `pools` holds the quota of each pool that the document names; `DEFAULT_POOL` is `quota.gpus`.
    `memory_mib` and `resources` are ceilings over all pools (MiB; devices by resource name).
    `weight` and `priority` stand between tenants. `cel` is the value of the `tenant` variable.
    """

    name: str
    namespaces: frozenset[str]
    selector: LabelSelector | None
    pools: Mapping[str, Quota] = field(default_factory=dict)
    memory_mib: int | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    profiles: tuple[str, ...] | None = None
    cohort: str | None = None
    priority: int = 0
    weight: int = 1
    lending: Lending = field(default_factory=Lending)
    min_runtime_seconds: int = 0
    when_over_quota: WhenOverQuota = WhenOverQuota.QUEUE
    labels: Mapping[str, str] = field(default_factory=dict)
    cel: Mapping[str, object] = field(default_factory=dict)

    @property
    def guarantee_milli(self) -> int | None:
        """Return the guarantee in the default pool."""
        return self.quota_of(DEFAULT_POOL).guarantee_milli

    @property
    def ceiling_milli(self) -> int | None:
        """Return the ceiling in the default pool."""
        return self.quota_of(DEFAULT_POOL).ceiling_milli

    @property
    def most_ceiling_milli(self) -> int | None:
        """Return the highest ceiling among its pools: what one pod can have at most."""
        ceilings = self._ceilings()
        return None if ceilings is None else max(ceilings)

    @property
    def total_ceiling_milli(self) -> int | None:
        """Return the ceilings of its pools together: what all its pods can have at most."""
        ceilings = self._ceilings()
        return None if ceilings is None else sum(ceilings)

    @property
    def most_guarantee_milli(self) -> int:
        """Return the highest guarantee among its pools; what is left out guarantees nothing."""
        return max((quota.guarantee_milli or 0 for quota in self.pools.values()), default=0)

    def _ceilings(self) -> tuple[int, ...] | None:
        """Return the ceilings of its pools, None where one of them has none."""
        ceilings = [quota.ceiling_milli for quota in self.pools.values()]
        known = tuple(ceiling for ceiling in ceilings if ceiling is not None)
        is_bounded = DEFAULT_POOL in self.pools and len(known) == len(ceilings)
        return known if is_bounded else None

    def quota_of(self, pool: str) -> Quota:
        """Return the quota in a pool.

        A tenant with quotas has nothing in a named pool that they leave out; without any quota,
        and in the default pool without `quota.gpus`, nothing bounds it.
        """
        found = self.pools.get(pool)
        if found is not None:
            return found
        return _NOTHING if self.pools and pool != DEFAULT_POOL else _UNBOUNDED

    def may_use(self, profile: str) -> bool:
        """Tell whether the tenant's list of profiles (shell patterns) allows this one."""
        return self.profiles is None or any(fnmatchcase(profile, glob) for glob in self.profiles)


_UNBOUNDED = Quota()
_NOTHING = Quota(0, 0)
