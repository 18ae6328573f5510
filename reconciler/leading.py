# SPDX-License-Identifier: Apache-2.0
"""What runs while this process leads: one picture of the cluster, and every controller on it.

The picture is begun after the Lease was taken, and nothing is decided before it is whole and
counts what a past leader may still have under way.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.cluster import LiveCluster
from reconciler.kube.client import Client
from reconciler.kube.elector import Leadership
from reconciler.kube.outstanding import Outstanding
from reconciler.quota.inheriting import Inheritance
from reconciler.runtime.controller_metrics import ControllerMetrics
from reconciler.runtime.surroundings import Surroundings
from reconciler.runtime.tasks import Activity


@dataclass(frozen=True, slots=True)
class Leading:
    """What a controller is started with. `now` is the API server's time in Unix seconds."""

    surroundings: Surroundings
    leadership: Leadership
    cluster: LiveCluster
    outstanding: Outstanding
    metrics: ControllerMetrics
    now: Callable[[], float]


Controller = tuple[str, Callable[[Leading], Activity]]


async def lead(
    surroundings: Surroundings,
    controllers: tuple[Controller, ...],
    metrics: ControllerMetrics,
    leadership: Leadership,
) -> None:
    """Run the controllers until cancelled. Raises LeadershipLostError, and faults of our own."""
    runtime, client = surroundings.runtime, surroundings.client
    cluster = LiveCluster(client, surroundings.policies, surroundings.catalog, runtime)
    outstanding = Outstanding(leadership, leadership.inherited)
    leading = Leading(surroundings, leadership, cluster, outstanding, metrics, _clock(client))
    inheritance = Inheritance(
        client, cluster, cluster.state, outstanding, leadership.identity, runtime
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cluster.run(), name="picture of the cluster")
        await cluster.wait_synced()
        inheritance.count()
        if leadership.inherited_unreadable:
            await inheritance.void_everything(cluster.state.pods())
        tasks.create_task(inheritance.settle(), name="inheritance")
        for name, start in controllers:
            tasks.create_task(start(leading), name=name)


def _clock(client: Client) -> Callable[[], float]:
    def now() -> float:
        time = client.server_time()
        if time is None:
            raise LookupError("the API server has not answered yet")
        return time

    return now
