# SPDX-License-Identifier: Apache-2.0
"""Pods released a second by Sluice, and by a bare client that sends equal patches.

Both take the gate off pods of one form, through the same webhook, and both are timed by the same
watch, from the first release to the last. Pods of the first tenant wait until its ceiling is
raised, which lets Sluice go at once; those of the second wait for the bare client.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from http import HTTPStatus
from typing import Final

from tests.bench.processes import BenchError
from tests.integration.sluice.running import Running
from tests.prove.connection import Connection
from tests.prove.driver import Driver
from tests.prove.scene import SHARED, documents, write_documents
from tests.prove.seen import CHARGE, GATE, REASON
from tests.prove.watching import Watch
from tests.prove.world import Json, Tenant, World

_WAIT_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05
_QUIET_SECONDS: Final = 3.0
_MERGE: Final = "application/merge-patch+json"
_COPIED: Final = ("nodeSelector", "affinity")


@dataclass(slots=True)
class Seen:
    """The pods of a namespace by name as its watch showed them, and when each lost the gate."""

    pods: dict[str, Json] = field(default_factory=dict)
    released: dict[str, float] = field(default_factory=dict)
    changed_at: float = 0.0

    def listed(self, items: list[Json], version: int) -> None:
        """Take a list."""
        del version
        for item in items:
            self.changed("ADDED", item)

    def changed(self, kind: str, item: Json) -> None:
        """Take an event."""
        self.changed_at = time.perf_counter()
        name = item["metadata"]["name"]
        if kind == "DELETED":
            self.pods.pop(name, None)
            self.released.pop(name, None)
            return
        self.pods[name] = item
        gates = item["spec"].get("schedulingGates", ())
        if name not in self.released and all(gate["name"] != GATE for gate in gates):
            self.released[name] = self.changed_at

    async def until_released(self, names: set[str]) -> None:
        """Wait until these have lost the gate. Raises BenchError."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while not names <= self.released.keys():
            if time.monotonic() > deadline:
                left = len(names - self.released.keys())
                raise BenchError(f"{left} of {len(names)} pods were not released")
            await asyncio.sleep(_POLL_SECONDS)

    async def until_quiet(self) -> None:
        """Wait until nothing has changed for a while: all reasons are written."""
        while time.perf_counter() - self.changed_at < _QUIET_SECONDS:  # noqa: ASYNC110 - a pause
            await asyncio.sleep(_POLL_SECONDS)

    def per_second(self, names: set[str]) -> float:
        """Return how many of these were released a second, from the first to the last."""
        times = sorted(self.released[name] for name in names)
        return (len(times) - 1) / (times[-1] - times[0])


@asynccontextmanager
async def seeing(connection: Connection, tenant: Tenant) -> AsyncIterator[Seen]:
    """Watch a tenant's pods during the block."""
    (namespace,) = tenant.namespaces
    seen = Seen()
    watch = Watch(connection, f"/api/v1/namespaces/{namespace}/pods", seen)
    task = asyncio.create_task(watch.run())
    try:
        while not watch.version:  # noqa: ASYNC110 - the first list
            await asyncio.sleep(_POLL_SECONDS)
        yield seen
    finally:
        task.cancel()


@dataclass(frozen=True, slots=True)
class Bench:
    """What the measurements share. `sluice` is a connection as Sluice's own account."""

    admin: Connection
    sluice: Connection
    driver: Driver
    running: Running
    world: World
    connections: int

    async def hold(self, tenant: Tenant) -> Json:
        """Fill a ceiling of one GPU with pods that stay; return one as Sluice has released it."""
        async with seeing(self.admin, tenant) as seen:
            names = await self.make(tenant, int(1000 / self.world.costs[SHARED]))
            await seen.until_released(names)
            return seen.pods[min(names)]

    async def set_ceilings(self, ceilings: Iterable[tuple[Tenant, Fraction]]) -> None:
        """Have Sluice serve other ceilings; guarantees are the same."""
        by_name = {tenant.name: ceiling for tenant, ceiling in ceilings}
        tenants = tuple(
            replace(t, ceiling=by_name[t.name], guarantee=by_name[t.name])
            if t.name in by_name
            else t
            for t in self.world.tenants
        )
        write_documents(self.running.policies, documents(replace(self.world, tenants=tenants)))
        await asyncio.to_thread(self.running.follow)

    async def make(self, tenant: Tenant, count: int) -> set[str]:
        """Create pods, which wait, and return their names."""
        pods = [self.driver.pod(tenant, None) for _ in range(count)]
        await self.driver.create_all(pods)
        if self.driver.created.refused:
            raise BenchError(f"pods were refused: {self.driver.created.refused}")
        return {pod["metadata"]["name"] for pod in pods}

    async def by_sluice(self, tenant: Tenant, count: int) -> float:
        """Return the pods released a second by Sluice."""
        await self.set_ceilings([(tenant, Fraction(1000))])
        async with seeing(self.admin, tenant) as seen:
            names = await self.make(tenant, count)
            await seen.until_quiet()
            if early := names & seen.released.keys():
                raise BenchError(f"{len(early)} pods were released before their time")
            gpus = 2 + int(count * self.world.costs[SHARED] / 1000)
            await self.set_ceilings([(tenant, Fraction(1000 * gpus))])
            await seen.until_released(names)
            found = seen.per_second(names)
            await self.delete(names)
            return found

    async def by_bare_client(self, tenant: Tenant, count: int, like: Json) -> float:
        """Return the pods released a second by patches alone, equal to the one of `like`."""
        async with seeing(self.admin, tenant) as seen:
            names = await self.make(tenant, count)
            await seen.until_quiet()
            left = iter([seen.pods[name] for name in names])
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self.connections):
                    tasks.create_task(self._patch_all(left, like))
            await seen.until_released(names)
            found = seen.per_second(names)
            await self.delete(names)
            return found

    async def delete(self, names: set[str]) -> None:
        """Delete these pods at once."""
        left = iter(
            [uid for uid, label in self.driver.created.made.items() if _name(label) in names]
        )

        async def work() -> None:
            for uid in left:
                await self.driver.delete(uid, at_once=True)

        await asyncio.gather(*(work() for _ in range(self.connections)))
        for uid in self.driver.created.deleted:
            self.driver.created.made.pop(uid, None)
        self.driver.created.deleted.clear()

    async def _patch_all(self, pods: Iterable[Json], like: Json) -> None:
        for pod in pods:
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            patch = equal_patch(pod, like)
            status, body = await self.sluice.call("PATCH", path, patch, content_type=_MERGE)
            if status != HTTPStatus.OK:
                raise BenchError(f"the bare client was refused: {status} {body.get('message')}")


def equal_patch(pod: Json, like: Json) -> Json:
    """Return the patch that makes of a waiting pod what Sluice has made of another of its form."""
    metadata = {
        "resourceVersion": pod["metadata"]["resourceVersion"],
        "annotations": {CHARGE: like["metadata"]["annotations"][CHARGE], REASON: None},
    }
    spec: Json = {"schedulingGates": None}
    for key in _COPIED:
        if like["spec"].get(key) != pod["spec"].get(key):
            spec[key] = like["spec"][key]
    return {"metadata": metadata, "spec": spec}


def _name(label: str) -> str:
    return label.partition("/")[2]
