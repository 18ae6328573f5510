# SPDX-License-Identifier: Apache-2.0
"""Puts the reclaim controller together and runs it."""

from collections.abc import Callable
from dataclasses import dataclass

from policies.quota.planning.values import Plan
from policies.quota.reclaim.memory import Memory
from reconciler.leading import Leading
from reconciler.reclaim.actuate import Duties, ReclaimActuator
from reconciler.reclaim.budgets import BudgetWatch
from reconciler.reclaim.controller import ReclaimController, Sources, readmit_after
from reconciler.reclaim.witness import ReclaimWitness, Recorder
from reconciler.runtime.audit_eviction import EvictionEntry


@dataclass(frozen=True, slots=True)
class ReclaimParts:
    """What reclaim shares with other controllers, and where its outcomes are counted."""

    released: Callable[[], Plan | None]
    """The newest plan of releases."""
    budgets: BudgetWatch
    recorder: Recorder
    counted: Callable[[EvictionEntry], None] = lambda _entry: None


async def run_reclaim(leading: Leading, parts: ReclaimParts) -> None:
    """Take back what is lent when its owner waits for it, until cancelled.

    The watch of budgets must run beside this. Raises LeadershipLostError.
    """
    around, memory = leading.surroundings, Memory(leading.cluster.state.hold_back)
    sources = Sources(
        cluster=leading.cluster,
        released=parts.released,
        pdbs=parts.budgets.all,
        now=leading.now,
        planned=lambda _plan, seconds: leading.metrics.planned("reclaim", seconds),
    )
    duties = Duties(
        calls=around.client,
        intents=leading.outstanding,
        witness=ReclaimWitness(parts.recorder, around.audit, parts.counted),
        memory=memory,
        is_held=leading.leadership.is_held,
        absorb=leading.cluster.absorb,
        now=leading.now,
    )
    controller = ReclaimController(sources, memory, around.runtime)
    await parts.budgets.synced.wait()
    await controller.run(ReclaimActuator(duties, readmit_after(leading.cluster.state)))
