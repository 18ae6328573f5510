# SPDX-License-Identifier: Apache-2.0
"""The order between tenants.

What completes a torn gang goes first, then what is owed, then what is borrowed; within these by the
tenant's priority, then who has least of its fair share, then who has waited longest, then by name.
Priorities of pods never cross tenants.
"""

from enum import IntEnum
from typing import TypeAlias

from policies.model.tenant import Tenant
from policies.quota.planning.market import Market
from policies.quota.planning.verdict import Way

Rank: TypeAlias = tuple[int, int, int, int, str]
"""Kind, tenant's priority (highest first), saturation, age, tenant's name."""


class Kind(IntEnum):
    """What a release would be, the first to go first."""

    TORN = 0
    OWED = 1
    BORROWED = 2


class Ranking:
    """Ranks the next unit of each tenant."""

    def __init__(self, market: Market) -> None:
        self._market = market

    def rank(
        self, tenant: Tenant, way: Way | None, more_milli: int | None, created_at: int
    ) -> Rank:
        """Return the rank of a unit that would go this way, after so much else of its tenant.

        None leaves out who has how much of its fair share, which is costly to know.
        """
        kind, saturation = Kind.OWED, 0
        if way is not None:
            kind = Kind.OWED if way.owed else Kind.BORROWED
            if more_milli is not None:
                saturation = self._market.saturation(tenant.name, way.pool, more_milli)
        return kind, -tenant.priority, saturation, created_at, tenant.name
