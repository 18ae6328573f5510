# SPDX-License-Identifier: Apache-2.0
"""What is remembered of each tenant from one plan to the next, so that one change costs little.

Everything here can be computed anew from the state; nothing is decided by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from policies.model.tenant import Tenant
from policies.quota.planning.book import Book, book_of
from policies.quota.planning.options import Options
from policies.quota.planning.outcome import Outcome
from policies.quota.planning.rooms import Need
from policies.quota.planning.units import Unit, units_of
from policies.quota.planning.verdict import judge
from policies.quota.planning.view import View
from policies.quota.queue import TenantQueue


@dataclass(slots=True)
class Known:
    """A tenant's uses, and its waiting pods in order, each with its verdict.

    `needs` and `borrows` are all that the outcome depends on besides: what would have to fit on
    nodes, and by pool what would be borrowed, the least first.
    """

    tenant: Tenant
    version: int
    book: Book
    units: list[Unit]
    needs: tuple[Need, ...] = ()
    borrows: tuple[tuple[str, tuple[int, ...]], ...] = ()
    outcome: Outcome | None = None


def _needs(units: Iterable[Unit]) -> tuple[Need, ...]:
    found: dict[Need, None] = {}
    for unit in units:
        for way in unit.verdict.ways:
            for piece, option in zip(unit.pieces, way.options, strict=True):
                found[option, 0] = found[option, piece.count] = None
        for options, _ in unit.verdict.holds:
            found |= dict.fromkeys((option, 0) for option in options)
    return tuple(found)


def _borrows(units: Iterable[Unit]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    found: dict[str, set[int]] = {}
    for unit in units:
        for way in unit.verdict.ways:
            for pool, milli in way.borrows:
                found.setdefault(pool, set()).add(milli)
    return tuple((pool, tuple(sorted(millis))) for pool, millis in found.items())


class KnownTenants:
    """Known tenants by name, as long as neither they nor policies nor prices change."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._options: Options | None = None

    def refresh(self, view: View) -> None:
        """Forget everything if policies, prices or pools are others, and who waits no more."""
        if self._options is not view.options:
            self._options = view.options
            self._known.clear()
        for tenant in self._known.keys() - view.queue.tenants.keys():
            del self._known[tenant]

    def forget(self, tenants: Iterable[str]) -> None:
        """Know that the usage of tenants has changed."""
        for tenant in tenants:
            self._known.pop(tenant, None)

    def of(self, tenant: Tenant, queue: TenantQueue, view: View) -> Known:
        """Return what is known of a tenant whose pods wait."""
        known = self._known.get(tenant.name)
        if known is not None and known.version == queue.version and known.tenant is tenant:
            return known
        book = known.book if known is not None else book_now(tenant.name, view)
        units = units_of(queue, view.queue)
        for unit in units:
            unit.verdict = judge(unit.pieces, tenant, book, view.options, unit.held_until)
        known = Known(tenant, queue.version, book, units, _needs(units), _borrows(units))
        self._known[tenant.name] = known
        return known


def book_now(tenant: str, view: View) -> Book:
    """Return what a tenant uses now, by the ledger of ceilings."""
    pools = view.ledger.pools(tenant)
    return book_of(
        {pool: view.ledger.used(tenant, pool) for pool in pools},
        {pool: view.ledger.fixed(tenant, pool) for pool in pools},
    )
