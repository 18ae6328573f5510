# SPDX-License-Identifier: Apache-2.0
"""What runs while this process leads: one picture of the cluster, and every controller on it.

The picture is begun after the Lease was taken, and nothing is decided before it is whole and
counts what a past leader may still have under way.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from policies.quota.planning.values import Plan
from policies.telemetry.views import NodeTelemetry
from reconciler.cluster import LiveCluster
from reconciler.kube.client import Client
from reconciler.kube.elector import Leadership
from reconciler.kube.events import Recorder
from reconciler.kube.outstanding import Outstanding
from reconciler.quota.inheriting import Inheritance
from reconciler.quota.pod_groups import PodGroupWatch
from reconciler.reclaim.budgets import BudgetWatch
from reconciler.runtime.collecting import let_go_soon, spared
from reconciler.runtime.controller_metrics import ControllerMetrics
from reconciler.runtime.surroundings import Surroundings
from reconciler.runtime.tasks import Activity
from reconciler.tenants.inheriting import inherit_idleness


@dataclass(slots=True)
class Newest:
    """What one controller finds out and others read: the newest plan of releases, and telemetry.

    `telemetry` gives what is known of a node's cards; None where nobody samples. `preferences`
    names the nodes that a pod should prefer; None where the scheduler is told by an extender.
    """

    plan: Plan | None = None
    telemetry: Callable[[str], NodeTelemetry] | None = None
    preferences: Callable[[Mapping[str, object]], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class Leading:
    """What a controller is started with. `now` is the API server's time in Unix seconds."""

    surroundings: Surroundings
    leadership: Leadership
    cluster: LiveCluster
    outstanding: Outstanding
    budgets: BudgetWatch
    events: Recorder
    metrics: ControllerMetrics
    now: Callable[[], float]
    newest: Newest = field(default_factory=Newest)


Controller = tuple[str, Callable[[Leading], Activity]]


async def lead(
    surroundings: Surroundings,
    controllers: tuple[Controller, ...],
    metrics: ControllerMetrics,
    leadership: Leadership,
    first: tuple[Controller, ...] = (),
) -> None:
    """Run the controllers until cancelled. Raises LeadershipLostError, and faults of our own.

    Those of `first` do not wait for the picture, which may need what they do.
    """
    try:
        await _lead(surroundings, controllers, metrics, leadership, first)
    finally:
        let_go_soon()


async def _lead(
    surroundings: Surroundings,
    controllers: tuple[Controller, ...],
    metrics: ControllerMetrics,
    leadership: Leadership,
    first: tuple[Controller, ...],
) -> None:
    leading = _begin(surroundings, metrics, leadership)
    cluster, outstanding = leading.cluster, leading.outstanding
    inheritance = Inheritance(
        surroundings.client,
        cluster,
        cluster.state,
        outstanding,
        leadership.identity,
        surroundings.runtime,
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cluster.run(), name="picture of the cluster")
        tasks.create_task(leading.budgets.run(), name="disruption budgets")
        tasks.create_task(_pod_groups(leading).run(), name="pod groups")
        tasks.create_task(leading.events.run(), name="events")
        for name, start in first:
            tasks.create_task(start(leading), name=name)
        async with spared():
            await cluster.wait_synced()
            await leading.budgets.synced.wait()
            await inherit_idleness(surroundings.client, cluster.state)
        inheritance.count()
        await inheritance.settle_uncounted()
        if leadership.inherited_unreadable:
            await inheritance.void_everything(cluster.state.pods())
        tasks.create_task(inheritance.settle(), name="inheritance")
        for name, start in controllers:
            tasks.create_task(start(leading), name=name)


def _pod_groups(leading: Leading) -> PodGroupWatch:
    return PodGroupWatch(leading.surroundings.client, leading.cluster.state.set_pod_group)


def _begin(
    surroundings: Surroundings, metrics: ControllerMetrics, leadership: Leadership
) -> Leading:
    client, runtime = surroundings.client, surroundings.runtime
    cluster = LiveCluster(client, surroundings.documents.current, surroundings.catalog, runtime)
    budgets = BudgetWatch(client, cluster.state.set_pdbs, runtime)
    # By budgets it is told what may be taken back, and so what may borrow.
    cluster.depends_on(budgets.seconds_since_contact)
    return Leading(
        surroundings=surroundings,
        leadership=leadership,
        cluster=cluster,
        outstanding=Outstanding(leadership, leadership.inherited),
        budgets=budgets,
        events=Recorder(client, runtime=runtime),
        metrics=metrics,
        now=_clock(client),
    )


def _clock(client: Client) -> Callable[[], float]:
    def now() -> float:
        time = client.server_time()
        if time is None:
            raise LookupError("the API server has not answered yet")
        return time

    return now
