# SPDX-License-Identifier: Apache-2.0
"""Who of those that are held keeps what it lacks from those after it in the order.

Only what has waited for long: in each pool the oldest that lacks room or something to borrow, and
of each tenant the first that its own quota holds; and whom something is taken back for, up to that
much. Without this, small pods could keep a large gang waiting for ever.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from policies.quota.planning.sifting import Held
from policies.quota.planning.units import Unit
from policies.quota.planning.values import Why
from policies.quota.planning.view import View

_LACKS_ROOM: Final = (Why.BORROWING, Why.NO_ROOM)
_LACKS_QUOTA: Final = (Why.CEILING, Why.FIXED)


@dataclass(frozen=True, slots=True)
class Reserving:
    """A unit, and how many releases of it are kept room for."""

    tenant: str
    unit: Unit
    count: int = 1


def choose(held: Iterable[Held], view: View, now: int) -> tuple[Reserving, ...]:
    """Return who keeps room."""
    held = tuple(held)
    aged_at = now - view.policies.settings.queue.reserve_after_seconds
    aged = [each for each in held if each.unit.created_at <= aged_at]
    chosen = {id(r.unit): r for r in (*_oldest(aged), *_first(aged))}
    for reserving in _repaid(held, view):
        chosen[id(reserving.unit)] = reserving
    return tuple(chosen.values())


def _oldest(held: Iterable[Held]) -> Iterator[Reserving]:
    oldest: dict[str, Held] = {}
    for each in held:
        if each.hold.why in _LACKS_ROOM:
            pool = each.unit.verdict.ways[0].pool
            if pool not in oldest or each.unit.order[2] < oldest[pool].unit.order[2]:
                oldest[pool] = each
    yield from (Reserving(each.tenant, each.unit) for each in oldest.values())


def _first(held: Iterable[Held]) -> Iterator[Reserving]:
    seen: set[str] = set()
    for each in held:
        if each.hold.why in _LACKS_QUOTA and each.tenant not in seen:
            seen.add(each.tenant)
            yield Reserving(each.tenant, each.unit)


def _repaid(held: Iterable[Held], view: View) -> Iterator[Reserving]:
    """Yield for whom something is taken back: what is owed to it there, in its order."""
    left = {key: reserve.milli for key, reserve in view.reserves.items()}
    for each in held if left else ():
        if each.hold.why not in _LACKS_ROOM:
            continue
        way = each.unit.verdict.ways[0]
        key = (each.tenant, way.pool)
        if left.get(key, 0) <= 0:
            continue
        milli = sum(
            o.amount.milli * p.count for o, p in zip(way.options, each.unit.pieces, strict=True)
        )
        most = 1 if each.unit.gang is not None else len(each.unit.pods)
        count = min(most, -(-left[key] // max(1, milli)))
        left[key] -= count * milli
        yield Reserving(each.tenant, each.unit, count)
