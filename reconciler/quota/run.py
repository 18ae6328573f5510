# SPDX-License-Identifier: Apache-2.0
"""Puts the quota controller together and runs it."""

import asyncio

from policies.quota.planning.values import Plan
from reconciler.leading import Leading
from reconciler.quota.controller import Hooks, QuotaController
from reconciler.quota.moved import MoveTeller
from reconciler.quota.reasons import ReasonWriter
from reconciler.quota.releasing import Releaser, ReleaseSettings
from reconciler.quota.told import Teller


async def run_quota(leading: Leading) -> None:
    """Release pods and tell the others why they wait, until cancelled."""
    around, metrics, teller = leading.surroundings, leading.metrics, Teller(leading.events)

    def planned(plan: Plan, seconds: float) -> None:
        leading.newest.plan = plan
        metrics.planned("quota", seconds)
        teller.tell(plan, around.runtime.clock())

    leading.cluster.on_move(MoveTeller(leading.events).tell)
    hooks = Hooks(
        released=lambda pod, charge: metrics.released(
            charge.tenant, charge.pool, leading.now() - pod.created_at, borrowed=charge.borrowed
        ),
        failed=lambda _pod, error: metrics.release_failed(type(error).__name__),
        parked=teller.tell_refused,
        planned=planned,
    )
    controller = QuotaController(
        leading.cluster, leading.outstanding, leading.now, around.runtime, hooks
    )
    releaser = Releaser(
        around.client,
        leading.outstanding,
        controller,
        leading.leadership.is_held,
        ReleaseSettings(
            identity=leading.leadership.identity,
            term=lambda: leading.leadership.term,
            prefer=lambda: leading.newest.preferences,
        ),
        around.runtime,
    )
    reasons = ReasonWriter(around.client, leading.cluster, leading.outstanding, around.runtime)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(controller.run(releaser), name="releases")
        tasks.create_task(reasons.run(controller.waits), name="reasons")
