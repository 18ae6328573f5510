# SPDX-License-Identifier: Apache-2.0
"""The map of the reconciler: every controller that runs, in one list."""

import asyncio
from collections.abc import Callable

from reconciler.kube.client import Client
from reconciler.kube.reflector import Reflector
from reconciler.quota.release import ReleaseLoop
from reconciler.quota.view import UNSCHEDULED_PODS, gated_pod
from reconciler.runtime.tasks import Activity


async def run_quota(client: Client) -> None:
    """Release every gated pod at once, whoever its tenant: the place of the quota controller."""
    pods = Reflector(client, UNSCHEDULED_PODS, gated_pod)
    loop = ReleaseLoop(client, pods, is_guarded=lambda _namespace: True)
    await _together(pods.run(), loop.run())


async def _together(*activities: Activity) -> None:
    async with asyncio.TaskGroup() as tasks:
        for activity in activities:
            tasks.create_task(activity)


CONTROLLERS: tuple[tuple[str, Callable[[Client], Activity]], ...] = (("quota", run_quota),)


def controllers(client: Client) -> dict[str, Activity]:
    """Return the activities of all controllers by name, for a supervisor to run."""
    return {name: start(client) for name, start in CONTROLLERS}
