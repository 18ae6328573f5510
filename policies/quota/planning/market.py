# SPDX-License-Identifier: Apache-2.0
"""Who stands how in each pool while a plan is made: what may be borrowed, and fair shares.

Whether work may be borrowed goes by the ledger of ceilings, which counts what is being deleted:
else long grace periods would be a way around it. The order goes by entitlement, which does not.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from policies.model.tenant import Tenant
from policies.quota.borrowing import ALONE, Balance, Standing, cohort_of, lendable
from policies.quota.fairshare import Claim, fair_shares
from policies.quota.planning.view import View

_MILLION = 1_000_000
_ENDLESS = 1 << 62


class Market:
    """The pools of one plan. `room` shrinks as the plan lends."""

    def __init__(self, view: View, now: int) -> None:
        self._view = view
        self._tenants = view.policies.tenants
        self._capacities = view.capacities()
        self._cohorts = {name: cohort_of(tenant) for name, tenant in self._tenants.items()}
        self._now = now
        self._balances = {pool: self._balance(pool, now) for pool in view.options.pools}
        self._shares: dict[str, Mapping[str, int]] = {}

    def cohort(self, tenant: str) -> str:
        """Return the cohort of a tenant."""
        return self._cohorts.get(tenant, f"{ALONE}{tenant}")

    def room(self, tenant: str, pool: str) -> int:
        """Return how much more a tenant's cohort may borrow in a pool."""
        room = self._balances[pool].room_of(self.cohort(tenant))
        return _ENDLESS if room is None else room

    def borrow(self, tenant: str, pool: str, milli: int) -> None:
        """Count so much more as borrowed."""
        self._balances[pool].borrow(self.cohort(tenant), milli)

    def saturation(self, tenant: str, pool: str, more_milli: int) -> int:
        """Return what a tenant is entitled to and this, in millionths of its fair share."""
        used = self._view.ledger.entitled(tenant, pool).milli + more_milli
        share = self.shares(pool).get(tenant, 0)
        if share <= 0:
            return _ENDLESS if used > 0 else 0
        return used * _MILLION // share

    def shares(self, pool: str) -> Mapping[str, int]:
        """Return every tenant's fair share of a pool in milli-GPU.

        Cohorts share what is outside of all guarantees by weight; tenants share what their cohort
        has: its guarantees, and that.
        """
        found = self._shares.get(pool)
        if found is None:
            found = self._shares[pool] = self._computed(pool)
        return found

    def spare(self, pool: str) -> int | None:
        """Return what lies outside of all guarantees, None where nothing bounds it."""
        if self._view.options.is_open(pool):
            return None
        guarantees = sum(t.quota_of(pool).guarantee_milli or 0 for t in self._tenants.values())
        return max(0, self._capacities.get(pool, 0) - guarantees)

    def standings(self, pool: str, now: int) -> Iterable[Standing]:
        """Yield how every tenant stands in a pool, those included that are no more."""
        ledger = self._view.ledger
        for name, tenant in self._tenants.items():
            guarantee = tenant.quota_of(pool).guarantee_milli or 0
            used = ledger.used(name, pool).milli
            if guarantee or used:
                lends = self._lendable(tenant, pool, guarantee, now) if guarantee else 0
                yield Standing(name, self._cohorts[name], guarantee, used, lends, tenant.priority)
        for name in ledger.tenants():
            if name not in self._tenants:
                yield Standing(name, f"{ALONE}{name}", 0, ledger.used(name, pool).milli, 0)

    def _balance(self, pool: str, now: int) -> Balance:
        return Balance(self.spare(pool), self.standings(pool, now))

    def _lendable(self, tenant: Tenant, pool: str, guarantee: int, now: int) -> int:
        if not tenant.lending.enabled:
            return 0
        return lendable(guarantee, self._view.history(tenant, pool).peak(now), enabled=True)

    @cached_property
    def _claims(self) -> Mapping[str, Mapping[str, list[Claim]]]:
        """Every tenant's claim, by pool and cohort."""
        found: dict[str, dict[str, list[Claim]]] = {}
        for name, tenant in self._tenants.items():
            demand = self._view.demand(tenant)
            for pool in tenant.pools.keys() | demand.keys():
                claim = self._claim(tenant, pool, demand.get(pool, 0))
                found.setdefault(pool, {}).setdefault(self._cohorts[name], []).append(claim)
        return found

    def _claim(self, tenant: Tenant, pool: str, demand_milli: int) -> Claim:
        """Return what a tenant asks for, or keeps of its guarantee although it does not ask.

        What is lent of a guarantee is its cohort's to share; what is not lent is nobody else's.
        """
        quota = tenant.quota_of(pool)
        guarantee = quota.guarantee_milli or 0
        lent = self._lendable(tenant, pool, guarantee, self._now) if guarantee > demand_milli else 0
        kept = max(demand_milli, guarantee - lent)
        weight = tenant.weight if demand_milli else 0
        return Claim(tenant.name, kept, guarantee, quota.ceiling_milli, weight)

    def _computed(self, pool: str) -> Mapping[str, int]:
        cohorts = self._claims.get(pool, {})
        guaranteed = {
            cohort: sum(claim.guarantee_milli for claim in claims)
            for cohort, claims in cohorts.items()
        }
        past = [
            Claim(
                cohort,
                max(0, sum(claim.demand_milli for claim in claims) - guaranteed[cohort]),
                weight=sum(claim.weight for claim in claims),
            )
            for cohort, claims in cohorts.items()
        ]
        spare = self.spare(pool)
        more = fair_shares(sum(c.request_milli for c in past) if spare is None else spare, past)
        shares: dict[str, int] = {}
        for cohort, claims in cohorts.items():
            shares |= fair_shares(guaranteed[cohort] + more[cohort], claims)
        return shares
