# SPDX-License-Identifier: Apache-2.0
"""What is done to Sluice under load: each scenario leaves the cluster for the next.

They only make things happen; what is found is the observer's. Between them churn goes on: pods
end after a moment, and new ones come.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from tests.prove.driver import Driver
from tests.prove.reclaims import CASES, Reclaimed, reclaim
from tests.prove.scene import resource_of
from tests.prove.stage import Stage
from tests.prove.world import Json, Tenant

_WAITING: Final = 100
"""Pods that churn keeps waiting."""

_SECONDS: Final = (1.0, 5.0)
"""How long pods of the churn run."""

_LEASE_SECONDS: Final = 15.0
_SETTLE_SECONDS: Final = 3.0
"""How long a release may still be on its way that was planned before the ceilings fell."""

_GANG_SIZE: Final = 2
_HOUR: Final = 3600.0
_YEAR: Final = 365 * 24 * 3600
_DELETE: Final = "pod-delete.stage.kwok.x-k8s.io/delay"
_APISERVER: Final = "kube-apiserver"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of everything."""

    pods: int = 2000
    kills: int = 30
    restarts: int = 2
    freezes: int = 3
    freeze_seconds: float = 60.0
    """How long a leader stands still at least."""
    requotes: int = 1
    gang_share: float = 0.1
    """Of what churn makes."""

    cases: int = 5
    """Ways of borrowing that guarantees are taken back from."""
    seed: int = 1


class Load:
    """The scenarios, in order, on one stage."""

    def __init__(self, stage: Stage, extent: Extent) -> None:
        self.stage = stage
        self.extent = extent
        self.kills = 0
        self.reclaims: list[Reclaimed] = []
        self._random = random.Random(extent.seed)  # noqa: S311 - a proof must be repeatable

    @property
    def scenarios(self) -> tuple[tuple[str, Callable[[], Awaitable[None]]], ...]:
        """Their names and what they do."""
        return (
            ("many pods at once, three webhooks, two schedulers", self.burst),
            ("churn", self.endure),
            ("pods that take a year to end", self.take_a_year),
            ("guarantees that are borrowed", self.reclaim),
            ("tenants at their ceilings", self.fill),
        )

    async def endure(self) -> None:
        """Let everything happen that may happen to Sluice while pods come and go."""
        async with self.churning():
            for happening in (self.kill, self.restart, self.move_clock, self.freeze, self.requote):
                await happening()
        await self.drain()

    async def reclaim(self) -> None:
        """Have every device borrowed, and a guarantee asked for, in each way."""
        for case in CASES[: self.extent.cases]:
            found = await reclaim(self.stage, case)
            self.reclaims.append(found)
            self.stage.say(f"{found.case}: back after {found.seconds} of {found.bound_seconds} s")
        await self.drain()

    async def burst(self) -> None:
        """Create pods of all tenants as fast as the API server takes them."""
        stage = self.stage
        pods = stage.driver.pods(stage.world.tenants, self.extent.pods, _SECONDS)
        await stage.driver.create_all(pods)
        await self.drain()

    async def kill(self) -> None:
        """Kill whoever leads, at any point of its work."""
        stage = self.stage
        for _ in range(self.extent.kills):
            leader, term = await stage.leader(), stage.observation.leases.term
            await stage.more_releases(1 + self._random.randrange(40))
            await asyncio.sleep(self._random.uniform(0.0, 0.3))
            await asyncio.to_thread(stage.fleet.kill, leader)
            self.kills += 1
            await asyncio.to_thread(stage.fleet.start, leader)
            await stage.leader(after=term)
            await stage.more_releases(1)
            stage.say(f"killed {leader} ({self.kills} of {self.extent.kills})")

    async def restart(self) -> None:
        """Kill the API server and start it again."""
        components = self.stage.control_plane.components
        for _ in range(self.extent.restarts):
            await self.stage.more_releases(30)
            await asyncio.to_thread(components.kill_component, _APISERVER)
            await asyncio.to_thread(components.start_component, _APISERVER)
            await self.stage.more_releases(30, 120.0)
            self.stage.say("the API server is back")

    async def move_clock(self) -> None:
        """Move the wall clock of all replicas an hour ahead, two back, and to the true time."""
        for seconds in (_HOUR, -_HOUR, 0.0):
            self.stage.fleet.clock.move(seconds)
            await self.stage.more_releases(60)
            self.stage.say(f"the clock is {seconds:+.0f} s off")

    async def freeze(self) -> None:
        """Have a leader stand still until another leads, and go on."""
        stage = self.stage
        for _ in range(self.extent.freezes):
            leader, term = await stage.leader(), stage.observation.leases.term
            await stage.more_releases(1 + self._random.randrange(40))
            await asyncio.sleep(self._random.uniform(0.0, 0.1))
            stage.fleet.freeze(leader)
            frozen_at = time.monotonic()
            await stage.leader(after=term)
            await stage.more_releases(20)
            left = self.extent.freeze_seconds - (time.monotonic() - frozen_at)
            await asyncio.sleep(max(left, self._random.uniform(0.0, _LEASE_SECONDS / 3)))
            stage.fleet.thaw(leader)
            await stage.more_releases(40)
            stage.say(f"froze and woke {leader}")

    async def requote(self) -> None:
        """Lower every ceiling under load, and raise it again."""
        for _ in range(self.extent.requotes):
            await self._requote()

    async def _requote(self) -> None:
        stage, world = self.stage, self.stage.world
        lowered = replace(
            world, tenants=tuple(replace(t, ceiling=t.ceiling * 2 / 3) for t in world.tenants)
        )
        await stage.serve(lowered)
        await asyncio.sleep(_SETTLE_SECONDS)
        stage.observer.follow(lowered)
        await stage.more_releases(60)
        stage.say("the ceilings are lower")
        stage.observer.follow(world)
        await stage.serve(world)
        await stage.more_releases(60)
        stage.say("the ceilings are what they were")

    async def take_a_year(self) -> None:
        """Delete pods with a grace of a year, make new ones, and end half of the old at last."""
        stage = self.stage
        tenant = stage.world.tenants[1]
        old = await self._fill_with_years(tenant)
        await stage.rest(60.0)
        for uid in old:
            await stage.driver.delete(uid)
        new = await self._fill_with_years(tenant)
        await stage.rest(60.0)
        stage.say("made again beside pods that take a year")
        for uid in old[::2]:
            await stage.driver.delete(uid, at_once=True)
        await stage.rest(60.0)
        for uid in (*old, *new):
            await stage.driver.delete(uid, at_once=True)
        await self.drain()

    async def fill(self) -> None:
        """Fill a third of the tenants beyond their ceilings with work that does not end."""
        stage = self.stage
        for tenant in stage.world.tenants[::3]:
            cost = stage.world.cost({resource_of(tenant): 1})
            count = int(tenant.ceiling / cost) + 3
            await stage.driver.create_all(stage.driver.pod(tenant, None) for _ in range(count))
        await self.drain()

    async def drain(self) -> None:
        """Wait until all has come to rest, and hold the watch against a list."""
        self.stage.fleet.check()
        self.stage.control_plane.components.check()
        await self.stage.rest(300.0)
        await self.stage.observation.compare()

    @asynccontextmanager
    async def churning(self) -> AsyncIterator[None]:
        """Keep pods of all tenants waiting during the block."""
        driver, tenants = self.stage.driver, self.stage.world.tenants

        async with driver.churn(
            self.stage.observer, lambda: self._churned(driver, tenants), _WAITING
        ):
            yield

    def _churned(self, driver: Driver, tenants: tuple[Tenant, ...]) -> list[Json]:
        tenant, seconds = self._random.choice(tenants), self._random.uniform(*_SECONDS)
        if self._random.random() < self.extent.gang_share:
            return driver.gang(tenant, _GANG_SIZE, seconds)
        return [driver.pod(tenant, seconds)]

    async def _fill_with_years(self, tenant: Tenant) -> list[str]:
        """Create as much as the guarantee holds, of which each takes a year to end."""
        cost = self.stage.world.cost({resource_of(tenant): 1})
        made = []
        for _ in range(int(tenant.guarantee / cost)):
            annotations = {_DELETE: f"{_YEAR}s"}
            pod = self.stage.driver.pod(
                tenant, None, terminationGracePeriodSeconds=_YEAR, annotations=annotations
            )
            made.append(await self.stage.driver.create(pod))
        return [uid for uid in made if uid]
