# SPDX-License-Identifier: Apache-2.0
"""What telemetry tells gets into the model a few nodes at a time, and out when nobody tells."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from policies.placement.occupancy import UNKNOWN, Gauge
from policies.telemetry.load import DEFAULT_WEIGHTS
from policies.telemetry.views import NodeTelemetry
from tests.unit.extender.building import World, shared
from webhook.extender.gauges import Gauges

_NAMES = tuple(f"n{number}" for number in range(40))
_TURNS = 100


class Annotated:
    """Tells of every node that half of its only card's memory is used."""

    def __init__(self) -> None:
        self.used_mib = 1024.0

    def node(self, name: str) -> NodeTelemetry:
        return NodeTelemetry(name, memory_used_mib=self.used_mib, memory_total_mib=4096.0)


class Noted:
    """Notes the gauges that it is told of."""

    def __init__(self) -> None:
        self.measured_of: list[str] = []

    def measured(self, node: str, gauge: Gauge) -> None:
        assert gauge != UNKNOWN
        self.measured_of.append(node)


class Fed:
    """A world whose nodes are fed by annotations that can change."""

    def __init__(self) -> None:
        self.world, self.told, self.waking = World(), Annotated(), Noted()
        self.gauges = Gauges(self.world.model, self.told, self.waking, DEFAULT_WEIGHTS)
        for name in _NAMES:
            self.gauges.put_node(self.world.node(shared(name)))

    def free_mib(self, name: str) -> tuple[int, ...]:
        here = self.world.model.occupancy(name)
        assert here is not None
        return here.gauge.free_mib

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.gauges.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _until_taken(gauges: Gauges) -> int:
    """Return how many turns others had until everything was taken up."""
    for turn in range(_TURNS):
        if not gauges.waiting:
            return turn
        await asyncio.sleep(0)
    pytest.fail(f"{len(gauges.waiting)} nodes wait still")


def test_a_node_is_gauged_as_soon_as_it_is_known() -> None:
    assert Fed().free_mib("n0") == (3072,)


async def test_others_have_turns_while_many_nodes_are_taken_up() -> None:
    fed = Fed()
    fed.told.used_mib = 2048.0
    async with fed.running():
        fed.gauges.measured(_NAMES)
        assert await _until_taken(fed.gauges) >= len(_NAMES) // 4
        assert {fed.free_mib(name) for name in _NAMES} == {(2048,)}
    assert fed.waking.measured_of[-len(_NAMES) :] == list(_NAMES)


async def test_a_node_that_is_gone_is_not_taken_up() -> None:
    fed = Fed()
    fed.waking.measured_of.clear()
    async with fed.running():
        fed.gauges.measured(["n0", "n1", "stranger"])
        fed.gauges.remove_node("n0")
        await _until_taken(fed.gauges)
    assert fed.waking.measured_of == ["n1"]


async def test_nothing_is_known_once_nobody_tells_any_more() -> None:
    fed = Fed()
    async with fed.running():
        await asyncio.sleep(0)
    assert {fed.free_mib(name) for name in _NAMES} == {()}
