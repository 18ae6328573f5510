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
from tests.support.builders import catalog, policy_set
from tests.support.quota_pods import waiting_pod
from tests.support.running import running
from tests.support.waiting import until


class Lease:
    async def declare(self, intents: Sequence[Intent]) -> None:
        pass


class Server:
    async def get(self, target: Target) -> Mapping[str, object]:
        return {}

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        return {}


class Bench:
    """A controller on a picture that nothing has been listed for; `now` is its clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        source: Any = None
        runtime = Runtime(clock=lambda: self.now)
        self.cluster = LiveCluster(source, policy_set, catalog(), runtime)
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
