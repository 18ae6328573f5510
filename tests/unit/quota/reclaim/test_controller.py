# SPDX-License-Identifier: Apache-2.0
"""A pass of the controller: what is planned beside the loop is carried out only if it is of use."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from policies.model.settings import Mode
from policies.quota.planning.values import Plan
from policies.quota.pods import Notice, QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import Command, ReclaimPlan
from policies.quota.state import QuotaState
from reconciler.kube.reflector import Runtime
from reconciler.reclaim.actuate import ReclaimActuator
from reconciler.reclaim.controller import ReclaimController, Sources
from tests.support.planning import World, lending_at_once, node, tenant


@dataclass
class Lead:
    """A cluster in which a borrower has all and an owner waits, and who acts on it."""

    world: World
    is_fresh: bool = True
    while_planning: Callable[[], None] = lambda: None
    done: list[Command] = field(default_factory=list)

    @property
    def state(self) -> QuotaState:
        return self.world.state

    def on_pod(self, watcher: Callable[[QuotaPod | None, QuotaPod | None], None]) -> None:
        """Nothing changes behind its back here."""

    async def carry_out(self, commands: Sequence[Command], mode: Mode) -> None:
        self.done += commands

    async def one_pass(self) -> list[str]:
        """Return the kinds of what is done."""
        await self.controller(Runtime())._pass(cast("ReclaimActuator", self))
        return [type(command).__name__ for command in self.done]

    def controller(self, runtime: Runtime) -> ReclaimController:
        released: Plan = self.world.plan()
        sources = Sources(
            cluster=self,
            released=lambda: released,
            pdbs=tuple,
            now=lambda: self.world.now,
            planned=self._planned,
        )
        return ReclaimController(sources, Memory(), runtime)

    def _planned(self, _plan: ReclaimPlan, _seconds: float) -> None:
        self.while_planning()


def lead(*, told: bool) -> Lead:
    lending = {"cohort": "c", "lending": lending_at_once()}
    made = World([tenant("owner", 1, 1, **lending), tenant("borrower", 0, 1, **lending)])
    made.state.put_node(node("n1", 1))
    made.idle()
    (pod,) = made.run("borrower")
    bound = made.bind(pod, "n1")
    if told:
        notice = Notice("owner/w", "ReclaimPolicy/defaults", made.now, made.now)
        made.state.put_pod(replace(bound, notice=notice))
    made.wait("owner")
    return Lead(made)


def waiting(found: Lead) -> QuotaPod:
    (pod,) = (pod for pod in found.state.pods() if pod.is_waiting)
    return pod


async def test_a_pod_is_told_and_then_it_goes() -> None:
    assert await lead(told=False).one_pass() == ["Notify"]
    assert await lead(told=True).one_pass() == ["Evict"]


async def test_nobody_goes_for_one_that_left_while_it_was_planned() -> None:
    found = lead(told=True)
    found.while_planning = lambda: found.world.end(waiting(found))
    assert await found.one_pass() == []


async def test_nobody_goes_for_one_that_is_being_released_already() -> None:
    found = lead(told=True)
    found.world.state.put_node(node("n2", 1))
    release = found.world.plan().releases[0]
    found.world.state.remove_node("n2")
    found.while_planning = lambda: found.state.charge_intent(release.pod.uid, release.charge)
    assert await found.one_pass() == []


async def test_nothing_is_done_on_a_picture_that_has_become_stale() -> None:
    found = lead(told=True)

    def lose() -> None:
        found.is_fresh = False

    found.while_planning = lose
    assert await found.one_pass() == []


class Slow:
    """Time that passes as fast as it can, and an API server that never answers."""

    def __init__(self, found: Lead) -> None:
        self._found = found
        self.is_asked = asyncio.Event()
        self._sought = (0, asyncio.Event())

    async def pass_time(self, seconds: int) -> None:
        """Return once so much time has passed."""
        reached = asyncio.Event()
        self._sought = (self._found.world.now + seconds, reached)
        await reached.wait()

    async def carry_out(self, commands: Sequence[Command], mode: Mode) -> None:
        self.is_asked.set()
        await asyncio.Event().wait()

    async def sleep(self, seconds: float) -> None:
        await self.is_asked.wait()
        self._found.world.now += int(seconds)
        self._found.state.tick(self._found.world.now)
        sought, reached = self._sought
        if self._found.world.now >= sought:
            reached.set()
        await asyncio.sleep(0)


async def test_room_stays_kept_while_the_api_server_takes_long_to_answer() -> None:
    found = lead(told=True)
    slow = Slow(found)
    controller = found.controller(Runtime(sleep=slow.sleep))
    running = asyncio.create_task(controller.run(cast("ReclaimActuator", slow)))
    await slow.pass_time(120)
    assert found.state.reserves["owner", ""].milli == 1000
    controller.last_plan = None  # as if nobody were owed anything any more
    await slow.pass_time(20)
    assert not found.state.reserves
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
