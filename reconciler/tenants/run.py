# SPDX-License-Identifier: Apache-2.0
"""Keeps statuses and metrics of tenants true to the leader's picture, while its process leads."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from policies.quota.figures import Standings, TenantFigures
from policies.quota.state import QuotaState
from reconciler.kube.backoff import DEFAULT_BACKOFF, Backoff
from reconciler.kube.reflector import Runtime
from reconciler.kube.served import ServedSettings, ServedWatch, Server
from reconciler.leading import Leading
from reconciler.tenants.actuate import TENANTS, StatusWriter
from reconciler.tenants.metrics import TenantGauges, gpu_seconds
from reconciler.tenants.plan import StatusPlan
from reconciler.tenants.usage import UsageRecorder
from reconciler.tenants.view import Seen, seen

Standing = Mapping[str, TenantFigures]


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

    def on_change(self, waker: Callable[[], None]) -> None:
        """Have a function called whenever anything has changed."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, in seconds: no tenant's status is written twice within `round_seconds`."""

    settle_seconds: float = 0.05
    """What changes at once arrives one by one."""
    round_seconds: float = 1.0
    quiet_seconds: float = 10.0
    """So long nothing needs to change for another look: what is idle changes with time alone."""
    retry: Backoff = DEFAULT_BACKOFF
    served: ServedSettings = field(default_factory=ServedSettings)


_PACE: Final = Pace()
_RUNTIME: Final = Runtime()


class TenantController:
    """Tells how tenants stand while `run` runs; `told` is called with each new look."""

    def __init__(
        self,
        cluster: Cluster,
        writer: StatusWriter,
        now: Callable[[], float],
        told: Callable[[QuotaState, Standing], None],
        pace: Pace = _PACE,
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self._cluster = cluster
        self._writer = writer
        self._now = now
        self._told = told
        self._pace = pace
        self._runtime = runtime
        self._standings = Standings()
        self._plan = StatusPlan()
        self._wake = asyncio.Event()
        self._failures = 0
        cluster.on_change(self._wake.set)

    async def run(self, server: Server) -> None:
        """Watch the objects, where they are served, and keep their statuses, until cancelled."""
        objects = ServedWatch(server, {TENANTS: seen}, self._pace.served)
        objects.subscribe(self._wake.set)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(objects.run(), name="watch tenants")
            while True:
                await self._round(objects)
                await self._wait()

    async def _round(self, objects: ServedWatch[Seen]) -> None:
        self._wake.clear()
        state = self._cluster.state
        if not (self._cluster.is_fresh and state.is_ready):
            return
        now = int(self._now())
        standing = self._standings.look(state, now)
        self._told(state, standing)
        objects_now = self._writer.newest(objects.values())
        due = self._plan.writes(state, standing, objects_now, now)
        failed = await self._writer.carry_out(due)
        self._failures = self._failures + 1 if failed else 0
        if due:
            self._wake.set()  # some may be left for the next round

    async def _wait(self) -> None:
        pause = self._pace.round_seconds
        if self._failures:
            pause += self._pace.retry.seconds(self._failures, self._runtime.uniform)
        await self._runtime.sleep(pause)
        try:
            async with asyncio.timeout(self._pace.quiet_seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        await self._runtime.sleep(self._pace.settle_seconds)


async def run_tenants(leading: Leading) -> None:
    """Show how tenants stand, and meter what they are charged, until cancelled."""
    around, label = leading.surroundings, leading.metrics.tenant_label
    gauges, seconds = TenantGauges(around.metrics, label), gpu_seconds(around.metrics, label)
    controller = TenantController(
        leading.cluster,
        StatusWriter(
            around.client,
            leading.leadership.is_held,
            failed=lambda error: leading.metrics.status_failed(type(error).__name__),
        ),
        leading.now,
        lambda state, standing: gauges.show(state, standing, leading.now()),
        runtime=around.runtime,
    )
    recorder = UsageRecorder(
        leading.cluster.state,
        around.audit,
        lambda: datetime.fromtimestamp(leading.now(), UTC),
        seconds,
        around.runtime,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run(around.client), name="statuses")
            tasks.create_task(recorder.run(), name="usage")
    finally:
        gauges.clear()  # who does not lead does not know
