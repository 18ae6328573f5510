# SPDX-License-Identifier: Apache-2.0
"""Sets aside what cannot go, before anything is released: by unit, with what was remembered.

What is held now is held for the whole pass, since quota and room only shrink in it. Whoever is
left may go; in which order, and whether there is enough for all of them, is not decided here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from policies.model.tenant import Tenant
from policies.quota.gangs import GangProblem, GangState
from policies.quota.ledger import NO_TENANT
from policies.quota.planning.known import Known, KnownTenants
from policies.quota.planning.market import Market
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


@dataclass(frozen=True, slots=True)
class Held:
    """A unit that cannot go, and why."""

    tenant: str
    unit: Unit
    hold: Hold


@dataclass(slots=True)
class Sifted:
    """What was found: `free` by tenant in order, and all that is told of the others."""

    known: dict[str, Known] = field(default_factory=dict)
    free: dict[str, list[Unit]] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    problems: list[GangProblem] = field(default_factory=list)
    take_back: list[TakeBack] = field(default_factory=list)


class Sifter:
    """Looks at every unit once, and at its nodes and lenders as they are before the pass."""

    def __init__(self, view: View, market: Market, rooms: Rooms, now: int) -> None:
        self._view = view
        self._market = market
        self._rooms = rooms
        self._now = now
        self._timeout = view.policies.settings.queue.gang_timeout_seconds
        self.found = Sifted()

    def sift(self, remembered: KnownTenants) -> Sifted:
        """Look at everything that waits."""
        queues = self._view.queue.tenants
        for name in sorted(queues):
            tenant = self._view.policies.tenants.get(name)
            if tenant is None:
                self._wait_for_owner(sorted(queues[name].pods, key=age))
            else:
                known = remembered.of(tenant, queues[name], self._view)
                self.found.known[name] = known
                self._sift_tenant(name, tenant, known)
        return self.found

    def wait(self, tenant: str, unit: Unit, hold: Hold, taken: int = 0) -> None:
        """Note that a unit waits, but for its first pods, which were released."""
        wait = unit.wait
        if taken:
            wait = Wait(tenant, unit.pods[taken:], hold, unit.place)
        elif wait is None or wait.hold is not hold or wait.place != unit.place:
            wait = unit.wait = Wait(tenant, unit.pods, hold, unit.place)
        self.found.waits.append(wait)
        if unit.is_torn:
            self._give_up_if_overdue(tenant, unit, hold)

    def why(self, tenant: Tenant, unit: Unit, verdict: Verdict) -> Hold:
        """Return what holds a unit that has no way: nodes only where quota would let it go."""
        reachable = tuple(w for w in verdict.ways if all(map(self._rooms.reaches, w.options)))
        if any(self.has_quota(tenant.name, way) for way in reachable):
            return hold_of_nodes(unit, verdict, possible=True, tenant=tenant.name)
        if reachable:
            return hold_of_borrowing(unit, reachable, tenant)
        return hold_of_quota(unit, verdict, tenant.name, self._rooms.reaches)

    def has_quota(self, tenant: str, way: Way) -> bool:
        """Tell whether a tenant's cohort may borrow what this way would."""
        return way.owed or all(self._market.room(tenant, p) >= milli for p, milli in way.borrows)

    def _sift_tenant(self, name: str, tenant: Tenant, known: Known) -> None:
        for unit in known.units:
            hold = self._hold_of_gang(unit) if unit.gang is not None else None
            if hold is not None:
                self.wait(name, unit, hold)
            elif self._may_go(name, unit):
                self.found.free.setdefault(name, []).append(unit)
            else:
                hold = self.why(tenant, unit, unit.verdict)
                self.wait(name, unit, hold)
                self.found.held.append(Held(name, unit, hold))

    def _may_go(self, name: str, unit: Unit) -> bool:
        for way in unit.verdict.ways:
            if self.has_quota(name, way) and self._rooms.has(way, unit.pieces):
                return True
        return False

    def _hold_of_gang(self, unit: Unit) -> Hold | None:
        gang = unit.gang
        if gang is None:
            return None
        report = gang.report(self._now, self._timeout)
        if report.is_problem:
            self.found.problems.append(GangProblem(gang.key, report.text, tuple(gang.all())))
        if report.state in (GangState.READY, GangState.TORN):
            return None
        return hold_of_gang(unit, report.text)

    def _wait_for_owner(self, pods: Iterable[QuotaPod]) -> None:
        by_hold: dict[Hold, list[QuotaPod]] = {}
        for pod in pods:
            owners = sorted(owner.name for owner in self._view.owners(pod.namespace))
            hold = NO_OWNER
            if owners:
                text = f"its namespace is claimed by tenants {' and '.join(owners)}"
                hold = Hold(Why.NO_TENANT, text)
            by_hold.setdefault(hold, []).append(pod)
        for hold, found in by_hold.items():
            self.found.waits.append(Wait(NO_TENANT, tuple(found), hold, 1))

    def _give_up_if_overdue(self, tenant: str, unit: Unit, hold: Hold) -> None:
        gang = unit.gang
        if gang is None or not gang.is_overdue(self._now, self._timeout):
            return
        text = f"{len(gang.live)} of gang {gang.key.name} run, and the rest waits: {hold.text}"
        pods = gang.to_take_back()
        if pods:
            self.found.take_back.append(TakeBack(gang.key, tenant, pods, text))
        if len(pods) < len(gang.live):
            left = tuple(pod for _, pod in sorted(gang.live.items()) if pod not in pods)
            text += "; what of it is bare or exclusive is not taken back"
            self.found.problems.append(GangProblem(gang.key, text, left))
