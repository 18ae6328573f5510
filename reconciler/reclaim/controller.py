# SPDX-License-Identifier: Apache-2.0
"""The reclaim controller: plans on the newest picture what to take back, and has it done.

It runs while its process leads. Who must end is decided in `plan`; how that is carried out, in
`actuate`. What lacks room is what the release planner has just said.
"""

import asyncio
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from policies.model.reclaim import ReclaimPolicy
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.planning.values import Plan
from policies.quota.pods import QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import (
    Command,
    Delete,
    Evict,
    GiveUp,
    ReclaimPlan,
    reserves_of,
)
from policies.quota.reclaim.picture import Exposed, expose, lacks_room
from policies.quota.reclaim.snapshot import Snapshot
from policies.quota.reclaim.torn import PolicyOf, give_up, uids_of
from policies.quota.reclaim.units import KnownUnits
from policies.quota.state import QuotaState
from reconciler.kube.reflector import Runtime
from reconciler.reclaim.actuate import End, ReclaimActuator
from reconciler.reclaim.plan import plan_reclaim

_TICK_SECONDS: Final = 1.0
_REST_TIMES: Final = 3
_KEEP_SECONDS: Final = 15
"""How long room stays kept after the last plan that wanted it."""
_RENEW_SECONDS: Final = 5.0


class Cluster(Protocol):
    """The part of the leader's picture that this needs."""

    @property
    def state(self) -> QuotaState:
        """The quota model's state."""
        ...

    @property
    def is_fresh(self) -> bool:
        """Tell whether every watch is in touch."""
        ...

    def on_pod(self, watcher: Callable[[QuotaPod | None, QuotaPod | None], None]) -> None:
        """Have a watcher told of every pod: the old, then the new."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """What it reads. `released` is the newest plan of releases, `now` the API server's time."""

    cluster: Cluster
    released: Callable[[], Plan | None]
    pdbs: Callable[[], Sequence[PodDisruptionBudget]]
    now: Callable[[], float]
    planned: Callable[[ReclaimPlan, float], None] = lambda _plan, _seconds: None


class ReclaimController:
    """Plans and acts while `run` runs. `last_plan` is for those who explain."""

    def __init__(self, sources: Sources, memory: Memory, runtime: Runtime) -> None:
        self._sources = sources
        self._state = sources.cluster.state
        self._memory = memory
        self._runtime = runtime
        self._actuator: ReclaimActuator | None = None
        self._told: set[str] = set()
        """Pods with a notice, by UID."""
        self._known = KnownUnits()
        self.last_plan: ReclaimPlan | None = None
        sources.cluster.on_pod(self._seen)

    async def run(self, actuator: ReclaimActuator) -> None:
        """Plan and act until cancelled. Raises LeadershipLostError."""
        self._actuator = actuator
        pods = list(self._state.pods())
        self._told.update(pod.uid for pod in pods if pod.notice is not None)
        self._recover(pods)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew())
            while True:
                spent = await self._pass(actuator)
                # A large cluster takes long to look at; this must not take all the time there is.
                await self._runtime.sleep(max(_TICK_SECONDS, _REST_TIMES * spent))

    async def _renew(self) -> None:
        """Have what the last plan keeps stay kept, however long it takes to the next one.

        To carry it out takes as long as the API server does, and what is freed meanwhile is meant
        for somebody.
        """
        while True:
            await self._runtime.sleep(_RENEW_SECONDS)
            if self.last_plan is not None and not self._state.policies.settings.observes:
                until = int(self._sources.now()) + _KEEP_SECONDS
                for tenant, pool in reserves_of(self.last_plan, until):
                    self._state.renew_reserve(tenant, pool, until)

    async def _pass(self, actuator: ReclaimActuator) -> float:
        """Plan and act; return for how long was planned, in seconds."""
        released = self._sources.released()
        if released is None or not self._is_fresh():
            return 0.0
        homeless = any(True for _ in self._state.fit.unplaced())
        lacking = lacks_room(released.waits)
        if not (lacking or homeless or released.take_back or self._told):
            self.last_plan = None
            return 0.0
        began, now = self._runtime.clock(), int(self._sources.now())
        settings = self._state.policies.settings
        remembered = self._memory.remembered(now, settings.budget.per_seconds, self._told)
        pdbs = self._sources.pdbs()
        exposed = expose(self._state, released, pdbs, remembered, now)
        # Beside the loop, which has releases and the Lease to see to.
        snapshot, plan = await asyncio.to_thread(_planned, exposed, self._known)
        self.last_plan = plan
        torn = released.take_back
        self._memory.planned({*(plan.victims or ()), *uids_of(torn)}, self._told, now)
        spent = self._runtime.clock() - began
        self._sources.planned(plan, spent)
        if not settings.observes:
            self._keep(plan, now)
        commands = (*plan.commands, *give_up(snapshot, plan, torn, policy_of(self._state)))
        commands = tuple(self._of_use(commands)) if self._is_fresh() else ()
        await actuator.carry_out(commands, settings.mode)
        return spent

    def _is_fresh(self) -> bool:
        return self._sources.cluster.is_fresh

    def _of_use(self, commands: Iterable[Command]) -> Iterator[Command]:
        """Yield these but for ends whose beneficiary has got room while they were planned."""
        lacking: set[str] | None = None
        for command in commands:
            if isinstance(command, Evict | Delete):
                lacking = self._lacking() if lacking is None else lacking
                if lacking.isdisjoint(command.why.beneficiary.uids):
                    continue
            yield command

    def _lacking(self) -> set[str]:
        queue, intents = self._state.queue, self._state.ledger.intents()
        waiting = (pod.uid for line in queue.tenants.values() for pod in line.pods)
        return {*self._state.fit.unplaced(), *waiting} - intents.keys()

    def _keep(self, plan: ReclaimPlan, now: int) -> None:
        """Keep room for those for whom someone goes, or has gone."""
        for (tenant, pool), reserve in reserves_of(plan, now + _KEEP_SECONDS).items():
            self._state.reserve_for(tenant, pool, reserve)

    def _recover(self, pods: Sequence[QuotaPod]) -> None:
        ledger = self._state.ledger
        owners = {
            pod.uid: ledger.owner(pod.namespace) or (pod.charge.tenant if pod.charge else "")
            for pod in pods
            if pod.notice is not None
        }
        self._memory.recover(pods, owners, int(self._sources.now()))

    def _seen(self, old: QuotaPod | None, new: QuotaPod | None) -> None:
        if new is None:
            if old is not None:
                self._told.discard(old.uid)
                if self._actuator is not None:
                    self._actuator.gone(old.uid)
            return
        (self._told.discard if new.notice is None else self._told.add)(new.uid)
        if self._actuator is not None:
            self._actuator.seen(new)


def _planned(exposed: Exposed, known: KnownUnits) -> tuple[Snapshot, ReclaimPlan]:
    # The collector would look through all that lives again and again, and nobody runs meanwhile.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        snapshot = exposed.developed(known.held)
        return snapshot, plan_reclaim(snapshot, known)
    finally:
        if was_enabled:
            gc.enable()


def policy_of(state: QuotaState) -> PolicyOf:
    """Return what tells the reclaim policy of a tenant by its name."""

    def found(name: str) -> ReclaimPolicy:
        tenant = state.policies.tenants.get(name)
        return state.policies.reclaim_policy_of(tenant.cohort if tenant is not None else None)

    return found


def readmit_after(state: QuotaState) -> Callable[[End], int]:
    """Return what tells how long the source of an ended pod is held back from borrowing."""

    def seconds(command: End) -> int:
        name = command.tenant if isinstance(command, GiveUp) else command.why.giver.tenant
        return policy_of(state)(name).readmit_after_seconds

    return seconds
