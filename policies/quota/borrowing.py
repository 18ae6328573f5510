# SPDX-License-Identifier: Apache-2.0
"""What of a pool is lent and to whom it may be: guarantees that stand idle, inside a cohort.

Capacity outside of all guarantees is lent first, to any cohort; then what tenants of the cohort
leave idle. A borrower owes its cohort, not one lender: who lends is only told, pro rata. Integer
milli-GPU. Ceilings, nodes and order must not be here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from policies.model.tenant import Tenant
from policies.quota.fairshare import Claim, fair_shares

ALONE: Final = "tenant:"
"""Begins the cohort of a tenant that names none; a cohort's own name has no colon."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tenant stands in one pool. `priority` is that between tenants."""

    tenant: str
    cohort: str
    guarantee_milli: int
    used_milli: int
    lendable_milli: int
    priority: int = 0

    @property
    def borrowed_milli(self) -> int:
        """Return what it uses past its guarantee."""
        return max(0, self.used_milli - self.guarantee_milli)

    @property
    def idle_milli(self) -> int:
        """Return what it does not use of its guarantee, whether it may be lent or not."""
        return max(0, self.guarantee_milli - self.used_milli)


def cohort_of(tenant: Tenant) -> str:
    """Return the cohort of a tenant; one without is a cohort of its own."""
    return tenant.cohort if tenant.cohort is not None else f"{ALONE}{tenant.name}"


def lendable(guarantee_milli: int, peak_milli: int | None, *, enabled: bool) -> int:
    """Return what may be lent of a guarantee.

    That is what lies above the peak of use and demand; nothing while the peak is not known.
    """
    if not enabled or peak_milli is None:
        return 0
    return max(0, guarantee_milli - peak_milli)


class Balance:
    """What is borrowed and may be lent in one pool.

    `spare_milli` is what lies outside of all guarantees; None where there is no bound to it. The
    law: the sum over cohorts of what they borrow past what they may lend is at most the spare.
    """

    __slots__ = ("_borrowed", "_excess", "_lendable", "spare_milli")

    def __init__(self, spare_milli: int | None, standings: Iterable[Standing] = ()) -> None:
        self.spare_milli = spare_milli
        self._borrowed: dict[str, int] = {}
        self._lendable: dict[str, int] = {}
        for each in standings:
            cohort = each.cohort
            self._borrowed[cohort] = self._borrowed.get(cohort, 0) + each.borrowed_milli
            self._lendable[cohort] = self._lendable.get(cohort, 0) + each.lendable_milli
        self._excess = sum(map(self.excess_of, self._borrowed))

    def room_of(self, cohort: str) -> int | None:
        """Return how much more a cohort may borrow, None for any amount.

        Below zero if more is borrowed than may be: a lender has come back, or lost nodes.
        """
        if self.spare_milli is None:
            return None
        free = self.spare_milli - self._excess
        if free < 0:
            return free
        return free + max(0, self._lendable.get(cohort, 0) - self._borrowed.get(cohort, 0))

    def admits(self, cohort: str, more_milli: int) -> bool:
        """Tell whether the cohort may borrow so much more."""
        room = self.room_of(cohort)
        return more_milli <= 0 or room is None or more_milli <= room

    def borrow(self, cohort: str, more_milli: int) -> None:
        """Count so much more as borrowed."""
        self._excess -= self.excess_of(cohort)
        self._borrowed[cohort] = self._borrowed.get(cohort, 0) + more_milli
        self._excess += self.excess_of(cohort)

    def excess_of(self, cohort: str) -> int:
        """Return what a cohort borrows past what it may lend: that is from outside of it."""
        return max(0, self._borrowed.get(cohort, 0) - self._lendable.get(cohort, 0))


def lent(spare_milli: int | None, standings: Iterable[Standing]) -> Mapping[str, int]:
    """Return what each tenant lends, in milli-GPU: told pro rata, since nobody owes one lender.

    What is borrowed comes out of the spare first, as far as that reaches, then out of what may be
    lent in the cohort, then out of what else stands idle there.
    """
    by_cohort: dict[str, list[Standing]] = {}
    for standing in standings:
        by_cohort.setdefault(standing.cohort, []).append(standing)
    borrowed = {c: sum(s.borrowed_milli for s in all_) for c, all_ in by_cohort.items()}
    may_lend = {c: sum(s.lendable_milli for s in all_) for c, all_ in by_cohort.items()}
    from_spare = fair_shares(
        sum(borrowed.values()) if spare_milli is None else spare_milli,
        (
            Claim(c, milli, guarantee_milli=max(0, milli - may_lend[c]), weight=milli)
            for c, milli in borrowed.items()
        ),
    )
    found: dict[str, int] = {}
    for cohort, all_ in by_cohort.items():
        found |= _parted(borrowed[cohort] - from_spare[cohort], all_)
    return found


def _parted(milli: int, lenders: Iterable[Standing]) -> Mapping[str, int]:
    lenders = tuple(lenders)
    if milli <= sum(min(s.lendable_milli, s.idle_milli) for s in lenders):
        claims = (
            Claim(s.tenant, min(s.lendable_milli, s.idle_milli), weight=s.lendable_milli)
            for s in lenders
        )
    else:
        claims = (
            Claim(s.tenant, s.idle_milli, guarantee_milli=s.lendable_milli, weight=s.idle_milli)
            for s in lenders
        )
    return fair_shares(milli, claims)


def giving_back(standings: Iterable[Standing]) -> tuple[Standing, ...]:
    """Return those that borrow, in the order in which they give back.

    The lowest priority first; among equals who borrows most beside its guarantee, then by name.
    """
    return tuple(
        sorted(
            (standing for standing in standings if standing.borrowed_milli),
            key=lambda s: (s.priority, -_excess_ratio(s), s.tenant),
        )
    )


def _excess_ratio(standing: Standing) -> int:
    """Return what is borrowed in thousandths of the guarantee; past all bounds without one."""
    return standing.borrowed_milli * 1000 // max(1, standing.guarantee_milli)
