# SPDX-License-Identifier: Apache-2.0
"""One pass over what waits: who goes now, in which order, and who keeps room for later.

What does not fit is passed over by what does, but for the room that is kept. What is held once is
held for the whole pass.
"""

from collections.abc import Mapping
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain

from policies.model.keys import HOSTNAME_LABEL
from policies.model.labels import Expression, Operator
from policies.quota.charge import ChargeRecord
from policies.quota.planning.known import Known, KnownTenants
from policies.quota.planning.lines import Line, Turn
from policies.quota.planning.market import Market
from policies.quota.planning.options import Option
from policies.quota.planning.outcome import Outcome, Outcomes
from policies.quota.planning.ranking import Kind, Rank, Ranking
from policies.quota.planning.reasons import hold_of_kept_quota, hold_of_kept_room
from policies.quota.planning.reserving import Reserving, choose
from policies.quota.planning.rooms import Rooms
from policies.quota.planning.sifting import Sifter, waits_without_tenant
from policies.quota.planning.units import Unit
from policies.quota.planning.values import Hold, KeptRoom, Plan, Release, Wait
from policies.quota.planning.verdict import Verdict, Way, is_owed
from policies.quota.planning.view import View
from policies.quota.pods import QuotaPod
from policies.quota.pools import Pins


class Pass:
    """A plan in the making, within a trial of the nodes."""

    def __init__(self, view: View, now: int, limit: int) -> None:
        self._view = view
        self._now = now
        self._limit = limit
        self._market = Market(view, now)
        self._rooms = Rooms(view.fit)
        self._ranking = Ranking(self._market)
        self._sifter = Sifter(view, self._market, self._rooms, now)
        self._releases: list[Release] = []
        self._waits: list[Wait] = []
        self._known: dict[str, Known] = {}
        self._lines: dict[str, Line] = {}
        self._keepers: dict[str, str] = {}
        """For whom something is kept in a pool, be it room on nodes or what may be borrowed."""
        self._anyone_free = False
        self._rest = Outcome(((), ()))
        """What is found of those that were free to go, and do not."""

    def run(self, remembered: KnownTenants) -> Plan:
        """Plan."""
        outcomes = self._sift(remembered)
        keeping = choose(outcomes, self._view, self._now)
        for reserving in keeping:
            self._line(reserving.tenant).add_keeper(reserving)
            if reserving.is_repaid:
                self._keep_repaid(reserving)
        self._anyone_free = any(outcome.free for outcome in outcomes.values())
        if self._limit > 0:
            units = {id(reserving.unit) for reserving in keeping}
            for name, outcome in outcomes.items():
                for unit in outcome.free:
                    if id(unit) not in units:
                        self._line(name).add(unit)
            self._go()
        found = (*outcomes.values(), self._rest)
        return Plan(
            tuple(self._releases),
            tuple(chain.from_iterable(outcome.take_back for outcome in found)),
            (*self._waits, *chain.from_iterable(outcome.waits for outcome in found)),
            tuple(chain.from_iterable(outcome.problems for outcome in found)),
            tuple({**self._kept_before(), **self._rooms.kept}.values()),
        )

    def _keep_repaid(self, reserving: Reserving) -> None:
        """Keep what is taken back from everybody, whoever has his turn before."""
        turn = Turn(reserving.unit)
        for way in filter(None, reserving.ways):
            places = [(pod.uid, option) for pod, option, _ in turn.members(way)]
            self._rooms.keep(places, reserving.nodes, owed=True, is_repaid=True)
            turn.taken += 1

    def _kept_before(self) -> Mapping[str, KeptRoom]:
        """Return what stays kept for those that had no turn in this pass, for its limit."""
        return {
            pod.uid: KeptRoom(pod.uid, turn.nodes[pod.uid], option.fit, turn.way.owed)
            for line in self._lines.values()
            for _, _, turn in line.heap
            if turn.keeps and turn.way is not None
            for pod, option, _ in turn.members(turn.way)
            if pod.uid in turn.nodes
        }

    def _sift(self, remembered: KnownTenants) -> Outcomes:
        queues, outcomes = self._view.queue.tenants, {}
        for name in sorted(queues):
            tenant = self._view.policies.tenants.get(name)
            if tenant is None:
                self._waits.extend(waits_without_tenant(self._view, queues[name].pods))
            else:
                known = self._known[name] = remembered.of(tenant, queues[name], self._view)
                outcomes[name] = self._sifter.sift(name, tenant, known)
        return outcomes

    def _line(self, name: str) -> Line:
        line = self._lines.get(name)
        if line is None:
            known = self._known[name]
            line = self._lines[name] = Line(known, known.book)
        return line

    def _go(self) -> None:
        ranks: list[Rank] = []
        for name in self._lines:
            self._enter(name, ranks)
        while ranks and len(self._releases) < self._limit:
            name = heappop(ranks)[-1]
            self._turn(name, self._lines[name])
            self._enter(name, ranks)

    def _enter(self, name: str, ranks: list[Rank]) -> None:
        """Rank a tenant by the first in its line that may go, on the way it would; others wait."""
        line = self._lines[name]
        while line.heap:
            turn = line.heap[0][2]
            verdict = line.judge(turn.unit, self._view.options)
            line.way = next((w for w in verdict.ways if self._is_open(name, turn, w)), None)
            if line.way is not None or turn.keeps:
                line.verdict = verdict
                heappush(ranks, self._rank(line, turn, line.way))
                return
            self._leave(name, line, verdict)

    def _is_open(self, name: str, turn: Turn, way: Way) -> bool:
        """Tell whether the head of a line may still go this way."""
        has_room = way.key not in turn.full and self._rooms.has(way, turn.unit.pieces)
        return has_room and self._sifter.has_quota(name, way)

    def _rank(self, line: Line, turn: Turn, way: Way | None) -> Rank:
        way = way or turn.way
        # Where nobody can go, it does not matter much who keeps room first.
        more = line.milli.get(way.pool, 0) if way is not None and self._anyone_free else None
        created_at = turn.unit.pods[turn.taken].created_at
        rank = self._ranking.rank(line.known.tenant, way, more, created_at)
        return (Kind.TORN, *rank[1:]) if turn.unit.is_torn else rank

    def _turn(self, name: str, line: Line) -> None:
        """Release the head of a line on its way, or know that it must find another, or none.

        On another it has another rank: the shares of its pool decide, not of one that is full.
        """
        turn, verdict = line.heap[0][2], line.verdict
        if verdict is None:
            raise AssertionError("a head without a verdict has a turn")
        if line.way is None:
            self._keep(name, line, turn, verdict)
        elif not self._release(name, line, turn, line.way):
            turn.full.add(line.way.key)

    def _release(self, name: str, line: Line, turn: Turn, way: Way) -> bool:
        if not self._sifter.has_quota(name, way):
            return False
        members = turn.members(way)
        if len(members) > self._limit - len(self._releases) and self._releases:
            # A gang goes at once if it can: with the next plan, whose first it will be.
            self._limit = len(self._releases)
            return True
        places = [(pod.uid, option) for pod, option, _ in members]
        needs_room = not way.owed and self._is_repaid(name, way)
        if not self._rooms.place(places, owed=way.owed, needs_room=needs_room):
            return False
        borrowing = {pool for pool, _ in way.borrows}
        for pod, option, back in members[: self._limit - len(self._releases)]:
            charge = self._charge(name, pod, option, back, option.pool in borrowing)
            node = self._view.fit.node_of(pod.uid) or ""
            self._releases.append(Release(pod, charge, self._pins(option, way, node), node))
        line.count(members)
        self._borrow(name, way)
        turn.ways = turn.ways[1:]
        line.advance()
        return True

    def _is_repaid(self, name: str, way: Way) -> bool:
        """Tell whether room is being taken back for another tenant in a pool of this way.

        What borrows there and has no room would be the scheduler's to give that room to.
        """
        pools = {option.pool for option in way.options}
        reserves = self._view.reserves.items()
        return any(pool in pools and t != name and r.milli > 0 for (t, pool), r in reserves)

    def _pins(self, option: Option, way: Way, node: str) -> Pins:
        """Return what keeps a pod in its pool, and off the room that is kept for others."""
        shunned = self._rooms.shunned(option, node, owed=way.owed)
        if not shunned:
            return option.pins
        nodes = self._view.nodes
        hosts = tuple(nodes[name].labels.get(HOSTNAME_LABEL, name) for name in shunned)
        kept_off = Expression(HOSTNAME_LABEL, Operator.NOT_IN, hosts)
        return replace(option.pins, expressions=(*option.pins.expressions, kept_off))

    def _charge(
        self, name: str, pod: QuotaPod, option: Option, reclaimable: bool, borrowed: bool
    ) -> ChargeRecord:
        return ChargeRecord(
            tenant=name,
            pool=option.pool,
            amount=option.amount,
            generation=self._view.policies.generation,
            at=self._now,
            exclusive=pod.shape.exclusive,
            reclaimable=reclaimable,
            borrowed=borrowed,
        )

    def _borrow(self, name: str, way: Way) -> None:
        """Count what would be borrowed as borrowed."""
        for pool, milli in way.borrows:
            self._market.borrow(name, pool, milli)

    def _keep(self, name: str, line: Line, turn: Turn, verdict: Verdict) -> None:
        """Count the head as released, so that those after it leave it what it lacks."""
        who = _described(name, turn.unit)
        if turn.way is not None:
            way = turn.way
            members = turn.members(way)
            if turn.is_free:
                hold = self._hold(line, turn.unit, verdict)
                pods = tuple(pod for pod, _, _ in members)
                self._waits.append(Wait(name, pods, hold, turn.unit.place + turn.taken))
            places = [(pod.uid, option) for pod, option, _ in members]
            nodes = self._rooms.keep(places, turn.nodes, owed=way.owed)
            if not turn.taken:
                self._view.turns.kept(turn.unit.pods[0].uid, nodes)
            for option in way.options:
                self._keepers.setdefault(option.pool, who)
        elif verdict.holds:
            way = Way(verdict.holds[0][0], (), 0)
            members = turn.members(way)
        else:
            members, way = [], Way((), (), 0)
        line.keeper = line.keeper or who
        line.count(members, borrows=not way.owed)
        self._borrow(name, way)
        turn.ways = turn.ways[1:]
        line.advance()
        if line.heap and line.heap[0][2] is turn and not (turn.keeps or turn.is_free):
            # The rest of it waits with it, as was noted before.
            heappop(line.heap)

    def _leave(self, name: str, line: Line, verdict: Verdict) -> None:
        """Let the head wait."""
        _, _, turn = heappop(line.heap)
        if not turn.is_free:
            return  # as was noted before
        unit, hold = turn.unit, self._hold(line, turn.unit, verdict)
        if turn.taken:
            self._waits.append(Wait(name, unit.pods[turn.taken :], hold, unit.place))
        else:
            self._sifter.wait(name, unit, hold, self._rest)

    def _hold(self, line: Line, unit: Unit, verdict: Verdict) -> Hold:
        """Return what holds the head, which was free to go before the pass."""
        found = self._held_by_another(line, unit, verdict)
        return found or self._sifter.why(line.known.tenant, unit, verdict)

    def _held_by_another(self, line: Line, unit: Unit, verdict: Verdict) -> Hold | None:
        if line.keeper and (not verdict.ways or is_owed(unit.verdict) > is_owed(verdict)):
            return hold_of_kept_quota(unit, line.keeper)
        keeper = next((k for w in verdict.ways if (k := self._keepers.get(w.pool))), "")
        return hold_of_kept_room(unit, keeper) if keeper else None


def _described(tenant: str, unit: Unit) -> str:
    if unit.gang is not None:
        return f"gang {unit.gang.key.name} of {tenant}"
    return f"pod {unit.pods[0].namespace}/{unit.pods[0].name}"
