# SPDX-License-Identifier: Apache-2.0
"""What every tenant uses while a plan is made, and the law that nobody falls below a guarantee.

What the plan takes from one and gives to another is counted at once. Rooms on nodes are not here.
"""

from collections.abc import Iterable, Mapping

from policies.quota.amount import NOTHING, Amount
from policies.quota.reclaim.snapshot import Entitlement, EntitlementKey, Group

_MILLION = 1_000_000
_WITHOUT_SHARE = 10**15
"""The saturation of a tenant that has a share of nothing, and uses something."""


class Books:
    """Accounts as they would be. `going` are amounts of pods that are about to be deleted."""

    def __init__(
        self,
        entitlements: Mapping[EntitlementKey, Entitlement],
        going: Iterable[tuple[EntitlementKey, Amount]],
    ) -> None:
        self.entitlements = entitlements
        self._used = {key: entitlement.used for key, entitlement in entitlements.items()}
        self._fixed = {key: entitlement.fixed for key, entitlement in entitlements.items()}
        self._saturations: dict[EntitlementKey, int] = {}
        """What is known of them until what is used changes."""
        for key, amount in going:
            self._used[key] = self.used(key).minus(amount)

    def used(self, key: EntitlementKey) -> Amount:
        """Return what a tenant would use in a pool."""
        return self._used.get(key, NOTHING)

    def add(self, key: EntitlementKey, amount: Amount) -> None:
        """Count something as used."""
        self._saturations.pop(key, None)
        self._used[key] = self.used(key).plus(amount)

    def remove(self, key: EntitlementKey, amount: Amount) -> None:
        """Count something as given back."""
        self._saturations.pop(key, None)
        self._used[key] = self.used(key).minus(amount)

    def borrows(self, key: EntitlementKey) -> bool:
        """Tell whether a tenant is over its guarantee in a pool."""
        entitlement = self.entitlements.get(key)
        return entitlement is not None and self.used(key).milli > entitlement.guarantee_milli

    def can_spare(self, key: EntitlementKey, amount: Amount) -> bool:
        """Tell whether a tenant stays at its guarantee, or over it, without this."""
        entitlement = self.entitlements.get(key)
        return (
            entitlement is not None
            and self.used(key).minus(amount).milli >= entitlement.guarantee_milli
        )

    def saturation(self, key: EntitlementKey) -> int:
        """Return what a tenant uses in millionths of its fair share, or else of its guarantee."""
        found = self._saturations.get(key)
        if found is None:
            entitlement = self.entitlements[key]
            fair = entitlement.fair_milli
            share = entitlement.guarantee_milli if fair is None else fair
            found = self.used(key).milli * _MILLION // share if share else _WITHOUT_SHARE
            self._saturations[key] = found
        return found

    def is_owed(self, group: Group) -> bool:
        """Tell whether a group would stay within its tenant's guarantee in every pool.

        What can never be taken back must fit beside what else cannot.
        """
        for pool, amount in group.amounts().items():
            key = (group.tenant, pool)
            entitlement = self.entitlements.get(key)
            if entitlement is None:
                return False
            guarantee = entitlement.guarantee_milli
            if self.used(key).plus(amount).milli > guarantee:
                return False
            if not group.reclaimable and self._fixed[key].plus(amount).milli > guarantee:
                return False
        return True

    def grant(self, group: Group) -> None:
        """Count a group as released."""
        for pool, amount in group.amounts().items():
            self.add((group.tenant, pool), amount)
            if not group.reclaimable:
                key = (group.tenant, pool)
                self._fixed[key] = self._fixed.get(key, NOTHING).plus(amount)
