# SPDX-License-Identifier: Apache-2.0
"""What is kept for tenants for whom something is taken back, until it was released for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from policies.quota.charge import ChargeRecord

_Key: TypeAlias = tuple[str, str]
"""A tenant's name and a pool's."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """What is kept in a pool for one tenant, in milli-GPU, and until when (Unix seconds).

    `nodes` says by UID of the pods that it is for on which nodes they have room, or will have.
    """

    milli: int
    until: int
    nodes: Mapping[str, str] = field(default_factory=dict)


class Reserves:
    """Reserves by tenant and pool."""

    def __init__(self) -> None:
        self._reserves: dict[_Key, Reserve] = {}

    @property
    def all(self) -> Mapping[_Key, Reserve]:
        """Return them."""
        return self._reserves

    def put(self, tenant: str, pool: str, reserve: Reserve) -> None:
        """Keep this from now on, in the place of what was kept before."""
        self._reserves[tenant, pool] = reserve

    def renew(self, tenant: str, pool: str, until: int) -> None:
        """Keep until then what is still kept, as far as it is not spent."""
        reserve = self._reserves.get((tenant, pool))
        if reserve is not None and reserve.until < until:
            self._reserves[tenant, pool] = replace(reserve, until=until)

    def spend(self, charge: ChargeRecord) -> None:
        """Count a release for a tenant."""
        key = (charge.tenant, charge.pool)
        reserve = self._reserves.get(key)
        if reserve is not None:
            self._reserves[key] = replace(reserve, milli=reserve.milli - charge.amount.milli)

    def expire(self, now: int) -> None:
        """Keep no more what has had its time, or is spent."""
        if self._reserves:
            self._reserves = {
                k: r for k, r in self._reserves.items() if r.until > now and r.milli > 0
            }
