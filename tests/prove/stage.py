# SPDX-License-Identifier: Apache-2.0
"""A proof's cluster with everything on it: control plane, two schedulers, replicas, observer.

What happens on it is `load`.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from tests.controlplane import ControlPlane
from tests.prove.connection import connected
from tests.prove.driver import WORKERS, Driver, make_anchors
from tests.prove.fleet import LEASE, Fleet, installed_fleet
from tests.prove.observer import Observer
from tests.prove.room import is_free, waiting_units
from tests.prove.scene import (
    OTHER_SCHEDULER,
    Scale,
    documents,
    make_nodes,
    make_world,
    second_scheduler,
    write_documents,
)
from tests.prove.watching import Observation, observing
from tests.prove.world import World

_REPLICAS: Final = 3
_STUCK_SECONDS: Final = 45.0
"""How long room may be free: a leader that was killed is followed after 15 s and a list."""

_POLL_SECONDS: Final = 0.05
_QUIET_SECONDS: Final = 3.0


class ProofError(Exception):
    """The proof cannot go on, whatever was found so far."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that a scenario needs."""

    control_plane: ControlPlane
    fleet: Fleet
    observation: Observation
    driver: Driver
    policies: Path

    @property
    def observer(self) -> Observer:
        """What has been found."""
        return self.observation.observer

    @property
    def world(self) -> World:
        """The numbers."""
        return self.observer.world

    async def leader(self, after: int = 0, seconds: float = 60.0) -> str:
        """Wait until a replica of ours leads, in a later term than this; return its identity."""
        deadline = time.monotonic() + seconds
        leases = self.observation.leases
        while not (holder := leases.holder) or leases.term <= after:
            if time.monotonic() > deadline:
                last = f"term {leases.term} of {holder!r}"
                raise ProofError(f"nobody leads anew after {seconds:g} s; the last was {last}")
            await asyncio.sleep(_POLL_SECONDS)
        if holder not in self.fleet.replicas:
            raise ProofError(f"a stranger leads: {holder!r}")
        return holder

    async def serve(self, world: World, seconds: float = 30.0) -> None:
        """Write documents that say the same as a world, and wait until the leader serves them."""
        write_documents(self.policies, documents(world))
        deadline = time.monotonic() + seconds
        while not await self._serves(world):
            if time.monotonic() > deadline:
                raise ProofError(f"the documents are not served after {seconds:g} s")
            await asyncio.sleep(_POLL_SECONDS)

    async def _serves(self, world: World) -> bool:
        """Tell whether the leader has mirrored the ceilings, which it does with what it serves."""
        connection = self.driver.connection
        status, listed = await connection.call("GET", "/apis/sluice.dev/v1alpha1/tenants")
        if status != HTTPStatus.OK:
            return False
        found = {t["metadata"]["name"]: t["spec"]["quota"]["gpus"] for t in listed["items"]}
        return all(
            float(found.get(tenant.name, {}).get("ceiling", -1)) == float(tenant.ceiling / 1000)
            for tenant in world.tenants
        )

    async def more_releases(self, count: int, seconds: float = 60.0) -> None:
        """Wait until so many more pods have been released."""
        wanted = len(self.observer.releases) + count
        deadline = time.monotonic() + seconds
        while len(self.observer.releases) < wanted:
            if time.monotonic() > deadline:
                raise ProofError(f"no {count} releases within {seconds:g} s; {self.summary()}")
            await asyncio.sleep(_POLL_SECONDS)

    async def rest(self, seconds: float) -> None:
        """Wait until nothing waits but what has no room, or the time is over."""
        deadline = time.monotonic() + seconds
        seen, since = -1, time.monotonic()
        while self.observer.waiting() and time.monotonic() < deadline:
            if len(self.observer.releases) != seen or self._has_room():
                seen, since = len(self.observer.releases), time.monotonic()
            if time.monotonic() - since > _QUIET_SECONDS:
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _has_room(self) -> bool:
        """Tell whether a pod waits that could be released, or a running one that will end."""
        observer = self.observer
        return any(
            pod.counts and pod.uid in self.driver.ending for pod in observer.pods.values()
        ) or any(
            is_free(observer, tenant, unit)
            for unit in waiting_units(observer)
            if (tenant := observer.tenant(unit[0]))
        )

    def summary(self) -> str:
        """Say in a line where the proof is."""
        waiting, breaches = len(self.observer.waiting()), len(self.observer.breaches)
        return (
            f"made {len(self.driver.created.made)}, released {len(self.observer.releases)}, "
            f"waiting {waiting}, breaches {breaches}, terms {self.observation.leases.terms}"
        )

    def say(self, text: str) -> None:
        """Tell the person who waits."""
        sys.stderr.write(f"{text}: {self.summary()}\n")
        sys.stderr.flush()


@asynccontextmanager
async def set_stage(
    binaries: Mapping[str, Path], directory: Path, scale: Scale, seed: int
) -> AsyncIterator[Stage]:
    """Start everything; all of it ends with the block."""
    world = make_world(scale)
    policies = directory / "policies"
    policies.mkdir()
    write_documents(policies, documents(world))
    async with AsyncExitStack() as stack:
        cluster = directory / "cluster"
        control_plane = await stack.enter_async_context(ControlPlane(binaries, directory=cluster))
        await asyncio.to_thread(_furnish, control_plane, scale, world)
        stack.enter_context(second_scheduler(control_plane))
        fleet = stack.enter_context(
            installed_fleet(control_plane, policies, directory / "sluice", _REPLICAS)
        )
        connection = await stack.enter_async_context(connected(control_plane, WORKERS + 8))
        anchors = await make_anchors(connection, world.by_namespace)
        observation = Observation(connection, Observer(world), _STUCK_SECONDS, LEASE)
        await stack.enter_async_context(observing(observation))
        driver = Driver(connection, anchors, seed, ("default-scheduler", OTHER_SCHEDULER))
        yield Stage(control_plane, fleet, observation, driver, policies)


def _furnish(control_plane: ControlPlane, scale: Scale, world: World) -> None:
    control_plane.create_nodes(make_nodes(scale))
    names = sorted(world.by_namespace)
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    control_plane.kubectl("create", "--filename=-", stdin=listed)
    for name in names:
        arguments = ("--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
        control_plane.kubectl("wait", *arguments)
