# SPDX-License-Identifier: Apache-2.0
"""How long a tenant waits for its guarantee while others have borrowed every device.

It must be back within the notice, the victims' grace and ten seconds more; where disruption
budgets never allow an eviction, within the time that they are given as well.
"""

import asyncio
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from tests.prove.driver import DriverError
from tests.prove.scene import (
    NOTICE_SECONDS,
    PDB_SECONDS,
    SHARED,
    resource_of,
)
from tests.prove.seen import NOTICE
from tests.prove.stage import ProofError, Stage
from tests.prove.world import Json, Tenant

_GRACE_SECONDS: Final = 3
_ALLOWANCE_SECONDS: Final = 10.0
_FOLLOWED_SECONDS: Final = 20.0
"""A Lease that has run out, and the list that its next holder begins with."""

_GIVE_UP_SECONDS: Final = 60.0
_FILL_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05
_NEVER: Final = 10_000
_SCHEDULER: Final = "default-scheduler"
"""The only one here: two that race may put more on a node than it has."""

_DELETE: Final = "pod-delete.stage.kwok.x-k8s.io/delay"


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """One case: how long it took, and how long it may take."""

    case: str
    seconds: float
    bound_seconds: float

    @property
    def is_late(self) -> bool:
        """Tell whether it took too long."""
        return self.seconds > self.bound_seconds


@dataclass(frozen=True, slots=True)
class Case:
    """What the borrowers have: how long they take, how many of each a budget lets go at once."""

    name: str
    grace_seconds: int = 0
    budget_allows: int | None = None
    is_frozen: bool = False
    """The leader stands still from its first notices on, until all is back."""

    @property
    def bound_seconds(self) -> float:
        """Return within how long the guarantee must be back."""
        budget = PDB_SECONDS if self.budget_allows == 0 else 0
        lease = _FOLLOWED_SECONDS if self.is_frozen else 0
        return NOTICE_SECONDS + self.grace_seconds + budget + lease + _ALLOWANCE_SECONDS


CASES: Final = (
    Case("victims that end at once"),
    Case("victims that take their grace", _GRACE_SECONDS),
    Case("budgets that allow one at a time", _GRACE_SECONDS, budget_allows=1),
    Case("budgets that never allow", _GRACE_SECONDS, budget_allows=0),
    Case("a leader that freezes meanwhile", _GRACE_SECONDS, is_frozen=True),
)


async def reclaim(stage: Stage, case: Case) -> Reclaimed:
    """Have all devices borrowed, and one tenant ask for its guarantee."""
    borrowers, owner = _parties(stage)
    made = await _borrow(stage, borrowers, case)
    if case.budget_allows is not None:
        for tenant in borrowers:
            await _protect(stage, tenant, made, case)
    cost = stage.world.cost({resource_of(owner): 1})
    count = int(owner.guarantee / cost)
    pods = [stage.driver.pod(owner, None, schedulerName=_SCHEDULER) for _ in range(count)]
    begun = time.monotonic()
    await stage.driver.create_all(pods)
    names = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods}
    frozen = await _freeze(stage) if case.is_frozen else ""
    seconds = await _released(stage, names, begun, case)
    if frozen:
        stage.fleet.thaw(frozen)
    for uid in (*made, *(u for u, label in stage.driver.created.made.items() if label in names)):
        await stage.driver.delete(uid, at_once=True)
    for tenant in borrowers:
        await _unprotect(stage, tenant)
    await stage.rest(_FILL_SECONDS)
    return Reclaimed(case.name, round(seconds, 2), case.bound_seconds)


def _parties(stage: Stage) -> tuple[list[Tenant], Tenant]:
    """Return tenants that together can take every share there is, and one more."""
    sharing = [t for t in stage.world.tenants if resource_of(t) == SHARED]
    left = stage.world.cost({SHARED: stage.world.devices[SHARED]})
    borrowers = []
    while left > 0:
        borrowers.append(sharing.pop())
        left -= borrowers[-1].ceiling
    return borrowers, sharing.pop()


async def _borrow(stage: Stage, tenants: list[Tenant], case: Case) -> list[str]:
    """Fill all devices with pods that do not end; return their uids."""
    before = set(stage.driver.created.made)
    pods = []
    for number in range(stage.world.devices[SHARED]):
        annotations = {_DELETE: f"{case.grace_seconds}s"} if case.grace_seconds else {}
        pods.append(
            stage.driver.pod(
                tenants[number % len(tenants)],
                None,
                annotations=annotations,
                labels={"proof": "borrowed"},
                schedulerName=_SCHEDULER,
                terminationGracePeriodSeconds=max(1, case.grace_seconds),
            )
        )
    await stage.driver.create_all(pods)
    deadline = time.monotonic() + _FILL_SECONDS
    while not _are_running(stage, before):
        if time.monotonic() > deadline:
            raise ProofError(f"not everything was borrowed: {stage.summary()}")
        await asyncio.sleep(_POLL_SECONDS)
    return [uid for uid in stage.driver.created.made if uid not in before]


def _are_running(stage: Stage, before: set[str]) -> bool:
    made = stage.driver.created.made
    return all(
        uid in before or (uid in stage.observer.pods and stage.observer.pods[uid].is_running)
        for uid in made
    )


async def _freeze(stage: Stage) -> str:
    """Have the leader stand still once it has told a pod that it will go; return who that is."""
    leader = await stage.leader()
    deadline = time.monotonic() + _FILL_SECONDS
    while not any(NOTICE in pod.annotations for pod in stage.observer.pods.values()):
        if time.monotonic() > deadline:
            raise ProofError(f"nobody was told to go: {stage.summary()}")
        await asyncio.sleep(_POLL_SECONDS)
    stage.fleet.freeze(leader)
    return leader


async def _released(stage: Stage, names: set[str], begun: float, case: Case) -> float:
    """Wait until all of these are released; return for how long that was."""
    deadline = begun + case.bound_seconds + _GIVE_UP_SECONDS
    while True:
        done = {r.label: r.at for r in stage.observer.releases.values() if r.label in names}
        if len(done) == len(names):
            return max(done.values()) - begun
        if time.monotonic() > deadline:
            return time.monotonic() - begun
        await asyncio.sleep(_POLL_SECONDS)


async def _protect(stage: Stage, tenant: Tenant, made: list[str], case: Case) -> None:
    """Make a budget for the tenant's pods."""
    (namespace,) = tenant.namespaces
    count = sum(1 for uid in made if stage.observer.pods[uid].namespace == namespace)
    least = count - case.budget_allows if case.budget_allows else _NEVER
    budget: Json = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "proof"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"proof": "borrowed"}}},
    }
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    status, body = await stage.driver.connection.call("POST", path, budget)
    if status != HTTPStatus.CREATED:
        raise DriverError(f"no budget in {namespace}: {status} {body}")


async def _unprotect(stage: Stage, tenant: Tenant) -> None:
    (namespace,) = tenant.namespaces
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/proof"
    await stage.driver.connection.call("DELETE", path)
