# SPDX-License-Identifier: Apache-2.0
"""What runs of a torn gang is told before it is evicted, and keeps running if it is completed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from policies.model.settings import Mode
from policies.quota.pods import Phase, QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import Command, Forewarn, GiveUp, Withdraw
from policies.quota.reclaim.torn import RULE
from policies.quota.state import QuotaState
from reconciler.kube.reflector import Runtime
from reconciler.reclaim.actuate import ReclaimActuator
from reconciler.reclaim.controller import ReclaimController, Sources
from tests.support.planning import World, node, tenant


class Torn:
    """Two of a gang of four run, and the nodes have no room for the rest any more."""

    is_fresh = True

    def __init__(self) -> None:
        self.world = World([tenant("a", 8, 8)], [node("n1", 4)])
        pods = self.world.wait("a", many=4, gang=("g", 4), owner="Job/train", owner_uid="job")
        releases = {r.pod.uid: r for r in self.world.plan().releases}
        for pod in pods[:2]:
            charge = releases[pod.uid].charge
            live = replace(pod, phase=Phase.LIVE, charge=charge, node="n1", version="2")
            self.state.put_pod(live)
        self.state.put_node(node("n1", 2))
        self.world.now += 300
        sources = Sources(self, self.world.plan, tuple, lambda: self.world.now)
        self.controller = ReclaimController(sources, Memory(), Runtime())
        self.done: list[Command] = []

    @property
    def state(self) -> QuotaState:
        return self.world.state

    def on_pod(self, watcher: Callable[[QuotaPod | None, QuotaPod | None], None]) -> None:
        self._watcher = watcher

    def put(self, pod: QuotaPod) -> None:
        self._watcher(self.state.pod(pod.uid), pod)
        self.state.put_pod(pod)

    async def carry_out(self, commands: Sequence[Command], mode: Mode) -> None:
        self.done = list(commands)
        for command in commands:
            if isinstance(command, Forewarn | Withdraw):
                notice = command.notice if isinstance(command, Forewarn) else None
                version = str(int(command.pod.version) + 1)
                self.put(replace(command.pod, notice=notice, version=version))

    async def one_pass(self, seconds: int = 0) -> list[type[Command]]:
        """Let time pass, and return the kinds of what is done then."""
        self.world.now += seconds
        await self.controller._pass(cast("ReclaimActuator", self))
        return [type(command) for command in self.done]

    @property
    def told(self) -> list[QuotaPod]:
        return [pod for pod in self.state.pods() if pod.notice is not None]


@pytest.fixture
def torn() -> Torn:
    return Torn()


async def test_it_is_told_by_which_rule_and_when_and_then_it_goes_together(torn: Torn) -> None:
    assert await torn.one_pass() == [Forewarn, Forewarn]
    found: Any = torn.told[0].notice
    assert (found.beneficiary, found.rule) == ("a/g", RULE)
    assert found.evict_at == torn.world.now + 120
    assert await torn.one_pass(119) == []
    assert await torn.one_pass(1) == [GiveUp, GiveUp]


async def test_nobody_goes_before_the_last_one_was_told(torn: Torn) -> None:
    await torn.one_pass()
    late = replace(torn.told[0], notice=None, version="9")
    torn.put(late)
    assert await torn.one_pass(120) == [Forewarn]
    assert await torn.one_pass(119) == []
    assert await torn.one_pass(1) == [GiveUp, GiveUp]


async def test_its_notices_stand_while_it_is_torn_and_go_when_it_is_complete(torn: Torn) -> None:
    await torn.one_pass()
    for _ in range(6):
        assert await torn.one_pass(15) == []
    assert len(torn.told) == 2

    for pod in list(torn.state.pods()):
        if pod.is_waiting:
            torn.state.remove_pod(pod.uid)
    assert await torn.one_pass(1) == []
    assert await torn.one_pass(10) == [Withdraw, Withdraw]
    assert not torn.told
