# SPDX-License-Identifier: Apache-2.0
"""Sets aside what cannot go, before anything is released: by unit, with what was remembered.

What is held now is held for the whole pass, since quota and room only shrink in it. Whoever is
left may go; in which order, and whether there is enough for all of them, is not decided here.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from policies.model.tenant import Tenant
from policies.quota.gangs import GangProblem, GangState
from policies.quota.ledger import NO_TENANT
from policies.quota.planning.known import Known
from policies.quota.planning.market import Market
from policies.quota.planning.outcome import Depends, Held, Outcome, by_age
from policies.quota.planning.reasons import (
    NO_OWNER,
    hold_of_borrowing,
    hold_of_gang,
    hold_of_nodes,
    hold_of_quota,
)
from policies.quota.planning.rooms import Rooms
from policies.quota.planning.units import Unit
from policies.quota.planning.values import Hold, TakeBack, Wait, Why
from policies.quota.planning.verdict import Verdict, Way
from policies.quota.planning.view import View
from policies.quota.pods import QuotaPod
from policies.quota.queue import age

_LACKS_QUOTA: Final = (Why.CEILING, Why.FIXED)


class Sifter:
    """Looks at every unit once, and at its nodes and lenders as they are before the pass."""

    def __init__(self, view: View, market: Market, rooms: Rooms, now: int) -> None:
        self._view = view
        self._market = market
        self._rooms = rooms
        self._now = now
        self._timeout = view.policies.settings.queue.gang_timeout_seconds

    def sift(self, name: str, tenant: Tenant, known: Known) -> Outcome:
        """Look at everything of a tenant that waits, unless nothing has changed since."""
        depends = (self._rooms.answers(known.needs), self._borrowable(name, known))
        found = known.outcome
        if found is None or found.depends != depends or _is_over(found, self._now):
            found = known.outcome = self._sifted(name, tenant, known, depends)
        return found

    def wait(self, tenant: str, unit: Unit, hold: Hold, found: Outcome) -> None:
        """Note that a unit waits."""
        wait = unit.wait
        if wait is None or wait.hold is not hold:
            wait = unit.wait = Wait(tenant, unit.pods, hold, unit.place)
        found.waits.append(wait)
        if unit.is_torn:
            self._give_up_if_overdue(tenant, unit, hold, found)

    def reachable(self, verdict: Verdict) -> tuple[Way, ...]:
        """Return the ways on which there are nodes that could hold it, were they empty."""
        return tuple(w for w in verdict.ways if all(map(self._rooms.reaches, w.options)))

    def why(self, tenant: Tenant, unit: Unit, verdict: Verdict) -> Hold:
        """Return what holds a unit that has no way: nodes only where quota would let it go."""
        reachable = self.reachable(verdict)
        if any(self.has_quota(tenant.name, way) for way in reachable):
            return hold_of_nodes(unit, verdict, possible=True, tenant=tenant.name)
        if reachable:
            return hold_of_borrowing(unit, reachable, tenant)
        return hold_of_quota(unit, verdict, tenant.name, self._rooms.reaches)

    def has_quota(self, tenant: str, way: Way) -> bool:
        """Tell whether a tenant's cohort may borrow what this way would."""
        return way.owed or all(self._market.room(tenant, p) >= milli for p, milli in way.borrows)

    def _borrowable(self, name: str, known: Known) -> tuple[int, ...]:
        return tuple(
            bisect_right(millis, self._market.room(name, pool)) for pool, millis in known.borrows
        )

    def _sifted(self, name: str, tenant: Tenant, known: Known, depends: Depends) -> Outcome:
        found = Outcome(depends)
        for unit in known.units:
            hold = self._hold_of_gang(unit, found) if unit.gang is not None else None
            if hold is not None:
                self.wait(name, unit, hold, found)
            elif self._may_go(name, unit):
                found.free.append(unit)
            else:
                hold = self.why(tenant, unit, unit.verdict)
                self.wait(name, unit, hold, found)
                way = next(iter(self.reachable(unit.verdict)), None)
                _hold(Held(name, unit, hold, way), found)
        for standing in found.lanes.values():
            standing.sort(key=by_age)
        return found

    def _may_go(self, name: str, unit: Unit) -> bool:
        for way in unit.verdict.ways:
            if self.has_quota(name, way) and self._rooms.has(way, unit.pieces):
                return True
        return False

    def _hold_of_gang(self, unit: Unit, found: Outcome) -> Hold | None:
        gang = unit.gang
        if gang is None:
            return None
        _expire(found, gang.changes_at(self._now, self._timeout))
        report = gang.report(self._now, self._timeout)
        if report.is_problem:
            found.problems.append(GangProblem(gang.key, report.text, tuple(gang.all())))
        if report.state in (GangState.READY, GangState.TORN):
            return None
        return hold_of_gang(unit, report.text)

    def _give_up_if_overdue(self, tenant: str, unit: Unit, hold: Hold, found: Outcome) -> None:
        gang = unit.gang
        if gang is None or not gang.is_overdue(self._now, self._timeout):
            return
        text = f"{len(gang.live)} of gang {gang.key.name} run, and the rest waits: {hold.text}"
        pods = gang.to_take_back()
        if pods:
            found.take_back.append(TakeBack(gang.key, tenant, pods, text))
        if len(pods) < len(gang.live):
            left = tuple(pod for _, pod in sorted(gang.live.items()) if pod not in pods)
            text += "; what of it is bare or exclusive is not taken back"
            found.problems.append(GangProblem(gang.key, text, left))


def waits_without_tenant(view: View, pods: Iterable[QuotaPod]) -> Iterator[Wait]:
    """Yield why pods wait whose namespace has no owner, or several."""
    by_hold: dict[Hold, list[QuotaPod]] = {}
    for pod in sorted(pods, key=age):
        owners = sorted(owner.name for owner in view.owners(pod.namespace))
        hold = NO_OWNER
        if owners:
            text = f"its namespace is claimed by tenants {' and '.join(owners)}"
            hold = Hold(Why.NO_TENANT, text)
        by_hold.setdefault(hold, []).append(pod)
    for hold, found in by_hold.items():
        yield Wait(NO_TENANT, tuple(found), hold, 1)


def _is_over(found: Outcome, now: int) -> bool:
    return found.until is not None and now >= found.until


def _expire(found: Outcome, at: int | None) -> None:
    if at is not None:
        found.until = at if found.until is None else min(found.until, at)


def _hold(held: Held, found: Outcome) -> None:
    found.held.append(held)
    if held.way is not None:
        lane = ("owed" if held.way.owed else "borrowed", held.way.pool)
        found.lanes.setdefault(lane, []).append(held)
    if held.hold.why in _LACKS_QUOTA:
        found.lacking_quota.append(held)
