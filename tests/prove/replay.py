# SPDX-License-Identifier: Apache-2.0
"""Plays pods that come and go in simulated time, with releases and reclaim as the leader does them.

Every eviction is held against the laws: whoever gives is over its guarantee and stays there, and
whoever gets is below its own. After each event the ledger must say what the live pods take.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from policies.quota.notice import write_notice
from policies.quota.planning.values import Plan
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import Delete, Evict, Notify, reserves_of
from policies.quota.reclaim.picture import take_picture
from policies.quota.reclaim.snapshot import Disruption
from reconciler.reclaim.plan import plan_reclaim
from tests.prove.findings import Breach, Finding
from tests.prove.owed import OwedWaits
from tests.prove.simulation import START, Simulation

_PER_SECONDS: Final = 600
_REPORT_EVENTS: Final = 1000
_PASSES: Final = 50
_KEEP_SECONDS: Final = 15


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod of a trace: when it comes (seconds), how long it runs, whose it is, what it takes."""

    created: int
    seconds: int
    tenant: str
    resource: str
    count: int


class Replay:
    """A trace on a simulated cluster."""

    def __init__(self, cluster: Simulation, pods: Sequence[TracePod]) -> None:
        self.cluster = cluster
        self.events = self.created = 0
        self.most_used = Fraction(0)
        self.evicted: list[str] = []
        self.wrong: list[Finding] = []
        self.owed = OwedWaits(cluster.observer)
        self._memory = Memory()
        self._order = itertools.count()
        self._due: list[tuple[int, int, TracePod | str]] = []
        """What happens when: a pod comes, the one with this uid ends, or "" for a look."""
        self._runs: dict[str, int] = {}
        """For how long pods run, by uid, until they are placed."""
        for pod in pods:
            self._at(pod.created, pod)

    def findings(self) -> list[Finding]:
        """Return what must not have been."""
        return [*self.cluster.observer.breaches, *self.wrong]

    def run(self, report: Callable[["Replay"], None] = lambda _replay: None) -> None:
        """Play all of it."""
        while self._due:
            at = self._due[0][0]
            self.cluster.pass_time(max(0, START + at - self.cluster.now))
            while self._due and self._due[0][0] == at:
                self._happen(heapq.heappop(self._due)[2])
                self.events += 1
                if self.events % _REPORT_EVENTS == 0:
                    report(self)
            self._act()
            self.owed.look(self.cluster.now)
            self._compare()

    def _at(self, seconds: int, what: TracePod | str) -> None:
        heapq.heappush(self._due, (seconds, next(self._order), what))

    def _happen(self, what: TracePod | str) -> None:
        if isinstance(what, TracePod):
            uid = self.cluster.create(what.tenant, {what.resource: str(what.count)})
            self._runs[uid] = what.seconds
            self.created += 1
        elif what in self.cluster.pods:
            self.cluster.finish(what)

    def _act(self) -> None:
        """Release and take back until nothing more is to be done now."""
        for _ in range(_PASSES):
            planned = self._release()
            if not self._take_back(planned):
                return

    def _release(self) -> Plan:
        cluster = self.cluster
        while (planned := cluster.plan()).releases:
            cluster.send(planned.releases)
            for release in planned.releases:
                cluster.land(release.pod.uid)
        cluster.schedule()
        used = sum(cluster.observer.used.values(), Fraction(0))
        self.most_used = max(self.most_used, used)
        now = cluster.now - START
        for uid in [u for u in self._runs if cluster.pods[u]["spec"].get("nodeName")]:
            self._at(now + self._runs.pop(uid), uid)
        return planned

    def _take_back(self, planned: Plan) -> bool:
        """Plan and carry out what is to be taken back; tell whether anybody ended."""
        cluster = self.cluster
        remembered = self._memory.remembered(cluster.now, _PER_SECONDS, self._told())
        snapshot = take_picture(cluster.state, planned, (), remembered, cluster.now)
        plan = plan_reclaim(snapshot)
        for (tenant, pool), reserve in reserves_of(plan, cluster.now + _KEEP_SECONDS).items():
            cluster.state.reserve_for(tenant, pool, reserve)
        ended = False
        for command in plan.commands:
            if isinstance(command, Notify):
                cluster.notify(command.pod.uid, write_notice(command.notice))
                self._at(command.notice.evict_at - START, "")
            elif isinstance(command, Evict | Delete):
                self._end(command)
                ended = True
        return ended

    def _compare(self) -> None:
        """Hold the leader's ledger against what lives; nothing is under way between events."""
        for tenant, used in self.cluster.observer.used.items():
            if (counted := self.cluster.used_milli(tenant)) != ceil(used):
                text = f"{tenant} uses {float(used):g}, and its ledger says {counted}"
                self.wrong.append(Finding(Breach.MISCOUNTED, text))

    def _told(self) -> list[str]:
        return [p.uid for p in self.cluster.state.pods() if p.notice is not None]

    def _end(self, command: Evict | Delete) -> None:
        observer, pod, why = self.cluster.observer, command.pod, command.why
        giver = self.cluster.world.by_name[why.giver.tenant]
        getter = self.cluster.world.by_name[why.beneficiary.tenant]
        cost = observer.pods[pod.uid].cost
        if observer.used[giver.name] - cost < giver.guarantee:
            self._accuse(f"{pod.name} pushes {giver.name} below its guarantee")
        if observer.used[getter.name] >= getter.guarantee:
            self._accuse(f"{pod.name} goes for {getter.name}, which has its guarantee")
        disruption = Disruption(self.cluster.now, giver.name, pod.node)
        self._memory.ended(pod, disruption, 0)
        self.cluster.evict(pod.uid)
        self._memory.gone(pod.uid)
        self.evicted.append(pod.uid)

    def _accuse(self, text: str) -> None:
        self.wrong.append(Finding(Breach.UNLAWFUL, text))
