# SPDX-License-Identifier: Apache-2.0
"""What its own tenant's quota says of a pod or gang: in which pools it may go, or what holds it.

Ceilings first, then the guarantee; what lies past the guarantee would be borrowed. Whether there
is enough to borrow, and room on nodes, depends on others and must not be here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from policies.admission.charging import amount as gpus_text
from policies.model.tenant import Tenant
from policies.quota.amount import Amount, total
from policies.quota.notice import rfc3339
from policies.quota.planning.book import Book
from policies.quota.planning.options import Option, Options
from policies.quota.planning.values import Hold, Why
from policies.quota.pods import Shape

_NO_CEILING = 1 << 62

WayKey: TypeAlias = tuple[bool, tuple[str, ...]]
"""Whether all of it is owed, and the pool of each piece."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """So many pods alike that are released together."""

    shape: Shape
    reclaimable: bool
    count: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A pool for each piece. `borrows` is by pool what more would be borrowed, where any.

    `owed` tells that all of it stays within the guarantee; `room` is what the ceiling leaves.
    """

    options: tuple[Option, ...]
    borrows: tuple[tuple[str, int], ...]
    room: int

    @property
    def owed(self) -> bool:
        """Tell whether nothing of it would be borrowed."""
        return not self.borrows

    @property
    def key(self) -> WayKey:
        """Return what tells it from other ways of the same unit."""
        return self.owed, tuple(option.pool for option in self.options)

    @property
    def pool(self) -> str:
        """Return the pool of the first piece."""
        return self.options[0].pool


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The ways that the tenant's quota allows, the best first, and what holds the others."""

    ways: tuple[Way, ...]
    holds: tuple[tuple[tuple[Option, ...], Hold], ...]


def is_owed(verdict: Verdict) -> bool:
    """Tell whether there is a way within the guarantee: such ways are the first."""
    return bool(verdict.ways) and verdict.ways[0].owed


def judge(
    pieces: Sequence[Piece], tenant: Tenant, book: Book, options: Options, held_until: int = 0
) -> Verdict:
    """Judge pods that are released together by what their tenant uses.

    A pool where the tenant stays within its guarantee is better, then one with more room, then by
    name. Pools that the tenant has nothing in are no options; a quota that was set to nothing holds
    what has no other. What is held (`held_until`, Unix seconds, is not 0) may not borrow.
    """
    ways, holds = [], []
    choices = tuple(_chosen(pieces, tenant, options)) or _closed(pieces, tenant, options)
    for chosen in choices:
        found = _way(pieces, chosen, tenant, book)
        if isinstance(found, Way):
            if held_until and not found.owed:
                holds.append((chosen, _taken_back(tenant, held_until)))
                continue
            ways.append(found)
        else:
            holds.append((chosen, found))
    if len(ways) > 1:
        ways.sort(key=lambda way: (not way.owed, -way.room, way.pool))
    return Verdict(tuple(ways), tuple(holds))


def _chosen(
    pieces: Sequence[Piece], tenant: Tenant, options: Options
) -> Iterator[tuple[Option, ...]]:
    """Yield a pool for each piece: one for all where that is possible, else each its first."""
    if len(pieces) == 1:
        for option in options.of(pieces[0].shape):
            if tenant.quota_of(option.pool).ceiling_milli != 0:
                yield (option,)
        return
    by_piece = [
        {o.pool: o for o in options.of(p.shape) if tenant.quota_of(o.pool).ceiling_milli != 0}
        for p in pieces
    ]
    common = [pool for pool in by_piece[0] if all(pool in found for found in by_piece)]
    for pool in common:
        yield tuple(found[pool] for found in by_piece)
    if not common and all(by_piece):
        yield tuple(next(iter(found.values())) for found in by_piece)


def _closed(
    pieces: Sequence[Piece], tenant: Tenant, options: Options
) -> tuple[tuple[Option, ...], ...]:
    """Return the first pools that would do but for the tenant's own quota, which is nothing."""
    found = [
        next(
            (o for o in options.of(piece.shape) if o.pool in tenant.pools and o.amount.milli), None
        )
        for piece in pieces
    ]
    chosen = tuple(option for option in found if option is not None)
    return (chosen,) if len(chosen) == len(found) else ()


def _way(
    pieces: Sequence[Piece], chosen: tuple[Option, ...], tenant: Tenant, book: Book
) -> Way | Hold:
    costs = _costs(pieces, chosen)
    whole = costs[0][1] if len(costs) == 1 else total(amount for _, amount, _ in costs)
    if whole.is_nothing:
        return Way(chosen, (), _NO_CEILING)
    held = _over_totals(whole, tenant, book)
    if held is not None:
        return held
    borrows, room = [], _NO_CEILING
    for pool, amount, fixed in costs:
        quota, used = tenant.quota_of(pool), book.used_in(pool)
        new, guarantee = used.with_more(amount.parts), quota.guarantee_milli or 0
        if quota.ceiling_milli is not None:
            if new > quota.ceiling_milli:
                return _past_ceiling(amount, quota.ceiling_milli, tenant, pool)
            room = min(room, quota.ceiling_milli - new)
        if fixed.parts and book.fixed_in(pool).with_more(fixed.parts) > guarantee:
            return _past_fixed(fixed, guarantee, tenant, pool)
        more = max(0, new - guarantee) - max(0, used.milli - guarantee)
        if more > 0:
            borrows.append((pool, more))
    return Way(chosen, tuple(borrows), room)


def _costs(pieces: Sequence[Piece], chosen: tuple[Option, ...]) -> list[tuple[str, Amount, Amount]]:
    """Return by pool what all of it costs, and what of that is never taken back."""
    if len(pieces) == 1 and pieces[0].count == 1:
        amount = chosen[0].amount
        return [(chosen[0].pool, amount, amount if not pieces[0].reclaimable else Amount())]
    parts = [
        (o, o.amount.times(p.count), p.reclaimable) for p, o in zip(pieces, chosen, strict=True)
    ]
    return [
        (
            pool,
            total(amount for o, amount, _ in parts if o.pool == pool),
            total(amount for o, amount, back in parts if o.pool == pool and not back),
        )
        for pool in dict.fromkeys(o.pool for o in chosen)
    ]


def _over_totals(more: Amount, tenant: Tenant, book: Book) -> Hold | None:
    """Tell which ceiling over all pools it would pass, None for none."""
    most = tenant.memory_mib
    if most is not None and more.mib and book.mib + more.mib > most:
        why = Why.NEVER if more.mib > most else Why.CEILING
        return Hold(
            why, f"needs {more.mib} MiB of GPU memory within {tenant.name}'s ceiling of {most} MiB"
        )
    for name, count in more.counts.items():
        most = tenant.resources.get(name)
        if most is not None and book.counts.get(name, 0) + count > most:
            why = Why.NEVER if count > most else Why.CEILING
            return Hold(why, f"needs {count} {name} within {tenant.name}'s ceiling of {most}")
    return None


def _past_ceiling(amount: Amount, ceiling: int, tenant: Tenant, pool: str) -> Hold:
    why = Why.NEVER if amount.milli > ceiling else Why.CEILING
    text = f"needs {gpus_text(amount.milli)} within {tenant.name}'s ceiling of {gpus_text(ceiling)}"
    return Hold(why, text + in_pool(pool))


def _past_fixed(fixed: Amount, guarantee: int, tenant: Tenant, pool: str) -> Hold:
    why = Why.NEVER if fixed.milli > guarantee else Why.FIXED
    text = (
        f"cannot be taken back, so it needs {gpus_text(fixed.milli)} within {tenant.name}'s "
        f"guarantee of {gpus_text(guarantee)}"
    )
    return Hold(why, text + in_pool(pool))


def _taken_back(tenant: Tenant, until: int) -> Hold:
    when = rfc3339(until)
    text = f"one like it was taken back; until {when} it goes only within {tenant.name}'s guarantee"
    return Hold(Why.TAKEN_BACK, text)


def in_pool(pool: str) -> str:
    """Return how a text goes on that speaks of one pool."""
    return f" in pool {pool}" if pool else ""


def first_hold(verdict: Verdict) -> Iterable[Hold]:
    """Yield what holds it, the way that lasts least first."""
    order = (Why.TAKEN_BACK, Why.CEILING, Why.FIXED, Why.NEVER)
    return sorted((hold for _, hold in verdict.holds), key=lambda hold: order.index(hold.why))
