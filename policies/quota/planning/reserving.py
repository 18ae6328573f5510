# SPDX-License-Identifier: Apache-2.0
"""Who of those that are held keeps what it lacks from those after it in the order.

Only what has waited for long: in each pool the oldest that lacks room or something to borrow, and
of each tenant the first that its own quota holds; and whom something is taken back for, up to that
much. Without this, small pods could keep a large gang waiting for ever.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policies.quota.planning.outcome import Held, Outcomes
from policies.quota.planning.values import Why
from policies.quota.planning.view import View

_LACKS_QUOTA: Final = (Why.CEILING, Why.FIXED)


@dataclass(frozen=True, slots=True)
class Reserving:
    """A unit that is held, and how many releases of it are kept room for."""

    held: Held
    count: int = 1


def choose(outcomes: Outcomes, view: View, now: int) -> tuple[Reserving, ...]:
    """Return who keeps room."""
    aged_at = now - view.policies.settings.queue.reserve_after_seconds
    chosen = {id(r.held): r for r in (*_oldest(outcomes, aged_at), *_first(outcomes, aged_at))}
    for reserving in _repaid(outcomes, view):
        chosen[id(reserving.held)] = reserving
    return tuple(chosen.values())


def _oldest(outcomes: Outcomes, aged_at: int) -> Iterator[Reserving]:
    oldest: dict[str, Held] = {}
    for outcome in outcomes.values():
        for pool, held in outcome.oldest.items():
            if pool not in oldest or held.unit.order[2] < oldest[pool].unit.order[2]:
                oldest[pool] = held
    for held in oldest.values():
        if held.unit.created_at <= aged_at:
            yield Reserving(held)


def _first(outcomes: Outcomes, aged_at: int) -> Iterator[Reserving]:
    """Yield who keeps quota of its own tenant, where others of that could go."""
    for outcome in outcomes.values():
        for held in outcome.held if outcome.free else ():
            if held.hold.why in _LACKS_QUOTA and held.unit.created_at <= aged_at:
                yield Reserving(held)
                break


def _repaid(outcomes: Outcomes, view: View) -> Iterator[Reserving]:
    """Yield for whom something is taken back: what is owed to it there, in its order."""
    for (tenant, pool), reserve in view.reserves.items():
        left = reserve.milli
        outcome = outcomes.get(tenant)
        for held in outcome.held if outcome is not None else ():
            if held.way is None or held.way.pool != pool or left <= 0:
                continue
            pairs = zip(held.way.options, held.unit.pieces, strict=True)
            milli = max(1, sum(option.amount.milli * piece.count for option, piece in pairs))
            most = 1 if held.unit.gang is not None else len(held.unit.pods)
            count = min(most, -(-left // milli))
            left -= count * milli
            yield Reserving(held, count)
