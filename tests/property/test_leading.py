# SPDX-License-Identifier: Apache-2.0
"""Electors in simulated time that are frozen, killed, cut off and slowed at random.

Two never hold the Lease by their own clocks, and no write that a past leader had decided on lands
unless every leader since counts it.
"""

import asyncio
import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kube.elector import (
    Elector,
    ElectorSettings,
    Leadership,
)
from reconciler.kube.errors import ApiError, ConflictError
from reconciler.kube.intents import Intent, IntentKind
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import PODS, Target
from tests.support.lease_server import LeaseServer, Network, RemoteClient
from tests.support.simulated import SimulatedProcess, World

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
PODS_HELD = 3


@dataclass(eq=False)
class Stay:
    """One leadership as the test sees it; what it counts are pods that may be charged."""

    number: int
    process: SimulatedProcess
    leadership: Leadership
    counted: dict[str, Intent] = field(default_factory=dict)
    is_working: bool = True


@dataclass
class Fault:
    """What befalls one process, or the network, at some second."""

    second: float
    kind: str
    seconds: float
    victim: int


FAULTS = st.builds(
    Fault,
    second=st.floats(0, 90),
    kind=st.sampled_from(
        ["freeze", "freeze", "freeze", "kill", "stop", "cut", "slow", "lossy", "edit"]
    ),
    seconds=st.floats(0.5, 60),
    victim=st.integers(0, 5),
)


class Cluster:
    """Processes that compete and charge pods, each pod at most once."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.draw = random.Random(seed)  # noqa: S311 - replayable
        self.server = LeaseServer()
        self.network = Network(self.draw)
        self.stays: list[Stay] = []
        self.landed = 0
        self.tasks: dict[SimulatedProcess, asyncio.Task[None]] = {}
        self._names = count()
        self._pods = count()
        self._seen = 0
        world.check = self.check

    # What the cluster does

    def start(self) -> None:
        process = self.world.process(f"process-{next(self._names)}")
        client = RemoteClient(self.world, process, self.server, self.network)
        runtime = Runtime(
            lambda: self.world.now,
            self.draw.uniform,
            wall_clock=lambda: EPOCH + timedelta(seconds=self.world.now),
        )
        settings = ElectorSettings("sluice", "leader", process.name)
        elector = Elector(client, settings, runtime)

        async def lead(leadership: Leadership) -> None:
            await self.work(process, client, leadership)

        self.tasks[process] = self.world.start(process, elector.run(lead))

    async def work(
        self, process: SimulatedProcess, client: RemoteClient, leadership: Leadership
    ) -> None:
        assert not leadership.inherited_unreadable
        stay = Stay(len(self.stays), process, leadership)
        stay.counted = {intent.name: intent for intent in leadership.inherited}
        self.stays.append(stay)
        try:
            while True:
                try:
                    await self.settle(client, stay)
                    await self.charge(client, stay)
                except ApiError:
                    pass
                await asyncio.sleep(self.draw.uniform(0.5, 4))
        finally:
            stay.is_working = False

    async def settle(self, client: RemoteClient, stay: Stay) -> None:
        """See each pod charged, or void the precondition of whoever meant to charge it."""
        for name in list(stay.counted):
            pod: Any = await client.get(target(name))
            if "charged" not in pod:
                if not stay.leadership.is_held():
                    return
                await client.update(target(name), {**pod, "voided": stay.number})
            del stay.counted[name]

    async def charge(self, client: RemoteClient, stay: Stay) -> None:
        names = [f"p{next(self._pods)}" for _ in range(self.draw.randint(1, PODS_HELD))]
        old = [path.rsplit("/", 1)[1] for path, pod in self.server.objects.items() if is_open(pod)]
        batch = [await self.pod(client, name) for name in [*old[:2], *names]]
        batch = [pod for pod in batch if pod["metadata"]["name"] not in stay.counted]
        intents = {pod["metadata"]["name"]: intent_of(pod) for pod in batch if is_open(pod)}
        await stay.leadership.declare([*stay.counted.values(), *intents.values()])
        stay.counted |= intents
        for pod in batch:
            if is_open(pod) and stay.leadership.is_held():
                await self.write(client, stay, pod)

    async def pod(self, client: RemoteClient, name: str) -> Any:
        path = target(name).path
        if path not in self.server.objects:
            body = {"kind": "Pod", "metadata": {"name": name, "namespace": "team"}}
            self.server.create(Target(PODS, namespace="team"), body)
        return await client.get(target(name))

    async def write(self, client: RemoteClient, stay: Stay, pod: Any) -> None:
        name = pod["metadata"]["name"]
        # Between the check and the sending a process may stand still for any time.
        await asyncio.sleep(self.draw.uniform(0, 1))
        with contextlib.suppress(ConflictError):
            await client.update(target(name), {**pod, "charged": stay.number})
        del stay.counted[name]

    # What befalls it

    def befall(self, fault: Fault) -> None:
        running = [process for process, task in self.tasks.items() if not task.done()]
        leading = [stay.process for stay in self.stays if stay.leadership.is_held()]
        # The leader above all: what befalls a candidate matters little.
        process = (leading * 3 + running)[fault.victim % (3 * len(leading) + len(running))]
        if fault.kind == "freeze":
            process.frozen_until = max(process.frozen_until, self.world.now + fault.seconds)
        elif fault.kind == "kill":
            self.world.kill(process)
            del self.tasks[process]
            self.start()
        elif fault.kind == "stop":
            process.call_soon(self.tasks[process].cancel)
            self.start()
        elif fault.kind == "cut":
            self.network.down.add(process.name)
            self.later(fault, lambda: self.network.down.discard(process.name))
        elif fault.kind == "slow":
            self.network.slow, self.network.slow_seconds = 0.2, fault.seconds
            self.later(fault, lambda: setattr(self.network, "slow", 0.0))
        elif fault.kind == "lossy":
            self.network.failing = 0.4
            self.later(fault, lambda: setattr(self.network, "failing", 0.0))
        else:
            for path in [path for path in self.server.objects if "leases" in path]:
                self.server.edit(path, lambda lease: lease["metadata"].update(labels={"a": "b"}))

    def later(self, fault: Fault, act: Any) -> None:
        self.world.at(self.world.now + fault.seconds, act)

    # What must hold

    def check(self) -> None:
        held = [stay for stay in self.stays if stay.leadership.is_held()]
        assert len(held) <= 1, "two hold the Lease"
        for _, item in self.server.writes[self._seen :]:
            if "charged" in item:
                self.landed += 1
                self.check_counted(item)
        self._seen = len(self.server.writes)

    def check_counted(self, pod: Any) -> None:
        for stay in self.stays[pod["charged"] + 1 :]:
            assert pod["metadata"]["name"] in stay.counted, "a past leader's write is not counted"


def target(name: str) -> Target:
    return Target(PODS, name, "team")


def is_open(item: Any) -> bool:
    return item.get("kind") == "Pod" and "charged" not in item


def intent_of(pod: Any) -> Intent:
    metadata = pod["metadata"]
    return Intent(
        IntentKind.RELEASE, "team", metadata["name"], metadata["uid"], metadata["resourceVersion"]
    )


def failures(cluster: Cluster) -> Iterator[BaseException]:
    for task in cluster.tasks.values():
        if task.done() and not task.cancelled():
            error = task.exception()
            if error is not None:
                yield error


@pytest.mark.timeout(300)
@settings(max_examples=settings().max_examples // 2)  # each is minutes of a cluster's life
@given(seed=st.integers(0, 2**32), faults=st.lists(FAULTS, max_size=12))
def test_two_never_lead_and_what_a_past_leader_still_writes_is_counted(
    seed: int, faults: list[Fault]
) -> None:
    with World() as world:
        cluster = Cluster(world, seed)
        for _ in range(3):
            cluster.start()
        for fault in faults:
            world.at(world.now + fault.second, lambda fault=fault: cluster.befall(fault))  # type: ignore[misc]
        world.run(90 + 60)
        world.run(60, lambda: any(stay.leadership.is_held() for stay in cluster.stays))
        assert any(stay.leadership.is_held() for stay in cluster.stays), "no one leads"
        assert cluster.landed
        assert list(failures(cluster)) == []
