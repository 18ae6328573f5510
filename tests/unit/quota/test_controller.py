# SPDX-License-Identifier: Apache-2.0
"""When the quota controller plans, and that it lets others run while it does not."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.cluster import LiveCluster
from reconciler.kube.intents import Intent
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Target
from reconciler.quota.controller import QuotaController
from reconciler.quota.releasing import Releaser
from tests.support.builders import catalog
from tests.support.planning import World, node, tenant
from tests.support.quota_pods import waiting_pod
from tests.support.running import running
from tests.support.waiting import until


class Lease:
    async def declare(self, intents: Sequence[Intent]) -> None:
        pass


class Server:
    """Never answers a write."""

    async def get(self, target: Target) -> Mapping[str, object]:
        return {}

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        await asyncio.Event().wait()
        return {}


class Bench:
    """A controller on a picture that nothing has been listed for; `now` is its clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.world = World([tenant("a", 8, 8)], [node("n1")])
        source: Any = None
        runtime = Runtime(clock=lambda: self.now)
        policies = self.world.state.policies
        self.cluster = LiveCluster(source, lambda: policies, catalog(), runtime)
        self.outstanding = Outstanding(Lease())
        self.controller = QuotaController(self.cluster, self.outstanding, lambda: self.now, runtime)
        self.releaser = Releaser(Server(), self.outstanding, self.controller, lambda: True)


async def test_a_picture_that_is_old_lets_everything_else_run() -> None:
    bench = Bench()
    bench.now += 3600  # out of touch
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(len(turns))
            await asyncio.sleep(0)

    async with running(bench.controller.run(bench.releaser)), running(other()):
        await until(lambda: len(turns) > 5)
        bench.controller.withdrawn(waiting_pod("a"))  # something has changed meanwhile
        before = len(turns)
        await until(lambda: len(turns) > before + 10)


async def test_what_the_lease_has_no_room_for_is_not_charged_and_planned_again() -> None:
    bench = Bench()
    state = bench.cluster.state
    state.put_node(node("n1"))
    for pod in bench.world.wait("a", many=5):
        state.put_pod(pod)
    fitting = bench.outstanding.fitting
    bench.outstanding.fitting = lambda batch: min(2, len(batch))  # type: ignore[method-assign]
    async with running(bench.controller.run(bench.releaser)):
        await until(lambda: len(bench.outstanding) == 2)
        for _ in range(5):
            await asyncio.sleep(0)
        assert state.ledger.used("a", "").milli == 2000
        bench.outstanding.fitting = fitting  # type: ignore[method-assign]
        bench.controller.withdrawn(waiting_pod("other"))
        await until(lambda: len(bench.outstanding) == 5)
        assert state.ledger.used("a", "").milli == 5000
