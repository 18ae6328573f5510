# SPDX-License-Identifier: Apache-2.0
"""Releases and reclaim in simulated time: owners come back, and victims are made again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from policies.quota.pdb import PodDisruptionBudget
from policies.quota.pods import Phase, QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import (
    Delete,
    Evict,
    Notify,
    ReclaimPlan,
    Withdraw,
    reserves_of,
)
from policies.quota.reclaim.picture import take_picture
from policies.quota.reclaim.snapshot import Disruption, Snapshot
from reconciler.reclaim.plan import plan_reclaim
from tests.support.planning import World


@dataclass
class Cycle:
    """A world, and what reclaim did in it. Whoever is evicted takes its grace, then waits anew."""

    world: World
    grace_seconds: int = 10
    pdbs: Sequence[PodDisruptionBudget] = ()
    memory: Memory = field(init=False)
    evicted: list[tuple[int, QuotaPod]] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    last: ReclaimPlan = field(default_factory=ReclaimPlan)
    _again: int = 0

    def __post_init__(self) -> None:
        self.memory = Memory(self.world.state.hold_back)

    def step(self, seconds: int = 5) -> None:
        """Release, bind, plan what to take back, do it, and let time pass."""
        world, state = self.world, self.world.state
        self._let_end()
        released = world.act()
        self._bind()
        per_seconds = state.policies.settings.budget.per_seconds
        told = [pod.uid for pod in state.pods() if pod.notice is not None]
        remembered = self.memory.remembered(world.now, per_seconds, told)
        snapshot = take_picture(state, released, self.pdbs, remembered, world.now)
        self.last = plan_reclaim(snapshot)
        self.memory.planned(self.last.victims or {}, told, world.now)
        self.snapshots.append(snapshot)
        for (tenant, pool), reserve in reserves_of(self.last, world.now + 15).items():
            state.reserve_for(tenant, pool, reserve)
        for command in self.last.commands:
            match command:
                case Notify():
                    state.put_pod(replace(command.pod, notice=command.notice))
                case Withdraw():
                    state.put_pod(replace(command.pod, notice=None))
                case Evict() | Delete():
                    self._evict(command.pod, command.why.giver.tenant)
        world.now += seconds
        state.tick(world.now)

    def run(self, steps: int, seconds: int = 5) -> None:
        """Take so many steps."""
        for _ in range(steps):
            self.step(seconds)

    def live(self, namespace: str) -> list[QuotaPod]:
        """Return the pods of a tenant that run and are to live."""
        return [
            pod
            for pod in self.world.state.pods()
            if (pod.namespace, pod.phase, pod.deleted_at) == (namespace, Phase.LIVE, None)
        ]

    def _evict(self, pod: QuotaPod, tenant: str) -> None:
        now = self.world.now
        self.memory.ended(pod, Disruption(now, tenant, pod.node), 60)
        self.evicted.append((now, pod))
        self.world.state.put_pod(replace(pod, deleted_at=now + self.grace_seconds))

    def _let_end(self) -> None:
        for pod in list(self.world.state.pods()):
            if pod.deleted_at is not None and pod.deleted_at <= self.world.now:
                self.world.end(pod)
                self.memory.gone(pod.uid)
                self._make_again(pod)

    def _make_again(self, pod: QuotaPod) -> None:
        """Have its controller make such a pod again, as a Deployment's would."""
        self._again += 1
        again = replace(
            pod,
            name=f"{pod.name}-{self._again}",
            uid=f"{pod.uid}-{self._again}",
            created_at=self.world.now,
            phase=Phase.WAITING,
            node="",
            deleted_at=None,
            charge=None,
            notice=None,
        )
        self.world.state.put_pod(again)

    def _bind(self) -> None:
        """Have the scheduler put released pods where there is room."""
        state = self.world.state
        for pod in list(state.pods()):
            if pod.phase is Phase.LIVE and not pod.node:
                node = state.fit.node_of(pod.uid)
                if node is not None:
                    self.world.bind(pod, node)
