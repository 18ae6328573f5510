# SPDX-License-Identifier: Apache-2.0
"""A node is annotated once it may take pods that it has refused, and not before or else."""

import asyncio
from collections.abc import Mapping

import pytest

from policies.model.keys import LOAD_FELL
from policies.placement.easing import has_eased
from policies.placement.occupancy import UNKNOWN, Gauge
from reconciler.kube.errors import NotFoundError, UnavailableError
from reconciler.kube.resources import Target
from tests.support.running import running
from tests.support.waiting import until
from tests.unit.extender.building import World, raw_pod, shared
from webhook.extender.taking_over import wake_the_refused
from webhook.extender.waking import Waker
from webhook.extender.wire import Question

_HOT = Gauge(load=900, loads=(900, 900), free_mib=(1_024, 2_048))


class Patches:
    """Takes patches, or fails with what is in `errors`, one each time."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.patched: list[tuple[str, object]] = []

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        if self.errors:
            raise self.errors.pop(0)
        self.patched.append((target.name, body))
        return {}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (_HOT, False),
        (Gauge(load=950, loads=(950, 950), free_mib=(0, 0)), False),
        (Gauge(load=799, loads=(799, 799), free_mib=(1_024, 2_048)), True),
        (Gauge(load=850, loads=(1000, 700), free_mib=(1_024, 2_048)), True),  # one whole card
        (Gauge(load=900, loads=(900, 900), free_mib=(1_024, 3_000)), True),
        (Gauge(load=900, loads=(900, 900), free_mib=(512, 4_096)), True),
        (Gauge(load=900, loads=(900, 900), free_mib=(2_944, 2_944)), False),  # 3,000 are needed
        (Gauge(load=900, loads=(900, 900), free_mib=(9_024, 2_048)), True),
        (Gauge(load=900, loads=(900, 900)), True),  # memory is not known any more
        (Gauge(free_mib=(1_024, 2_048)), True),  # load is not
        (UNKNOWN, True),
    ],
)
def test_a_refusal_may_not_be_made_again_once_less_is_done_or_held_or_known(
    now: Gauge, *, expected: bool
) -> None:
    assert has_eased(_HOT, now, 800, {3_000, 50_000}) is expected


def test_what_was_not_known_cannot_ease() -> None:
    assert not has_eased(UNKNOWN, _HOT, 800)
    assert not has_eased(UNKNOWN, UNKNOWN, 800)


async def test_of_many_needs_the_smallest_are_remembered() -> None:
    client = Patches()
    waker = Waker(client, 800)
    before = Gauge(load=100, loads=(100,), free_mib=(0,))
    for need in range(1_000, 0, -1):
        waker.refused("full", before, need)
    waker.measured("full", Gauge(load=100, loads=(100,), free_mib=(1,)))
    async with running(waker.run()):
        await until(lambda: len(client.patched) == 1)


async def test_only_nodes_that_have_refused_are_annotated_and_once_for_each_easing() -> None:
    client = Patches()
    waker = Waker(client, 800)
    async with running(waker.run()):
        waker.measured("cool", Gauge(load=100))
        waker.refused("hot", _HOT)
        waker.refused("hot", _HOT)
        waker.measured("hot", _HOT)
        await asyncio.sleep(0)
        assert client.patched == []
        waker.measured("hot", Gauge(load=100, loads=(100, 100), free_mib=(1_024, 2_048)))
        waker.measured("hot", Gauge(load=50, loads=(50, 50), free_mib=(1_024, 2_048)))
        await until(lambda: len(client.patched) == 1)
    (name, body) = client.patched[0]
    assert name == "hot"
    assert LOAD_FELL in str(body)


async def test_a_node_that_is_gone_wakes_nobody() -> None:
    client = Patches(NotFoundError("gone", status=404))
    waker = Waker(client, 800)
    waker.refused("gone", _HOT)
    waker.refused("forgotten", _HOT)
    waker.refused("hot", _HOT)
    waker.forget("forgotten")
    for name in ("gone", "forgotten", "hot"):
        waker.measured(name, UNKNOWN)
    async with running(waker.run()):
        await until(lambda: len(client.patched) == 1)
    assert client.patched[0][0] == "hot"


async def test_a_write_that_fails_is_made_again() -> None:
    client = Patches(UnavailableError("down", status=503))
    waker = Waker(client, 800, retry_seconds=0.01)
    waker.refused("hot", _HOT)
    waker.measured("hot", UNKNOWN)
    async with running(waker.run()):
        await until(lambda: len(client.patched) == 1)


def test_a_pod_that_is_refused_for_measured_memory_is_woken_for_too() -> None:
    world = World()
    told: list[tuple[str, int]] = []
    world.answers.refused_for_load = lambda name, why: told.append((name, why.needed_mib))
    world.node(shared("a"))
    world.model.put_gauge("a", Gauge(load=100, loads=(100,), free_mib=(10_000,)))
    assert not world.answers.filter(Question(raw_pod("p", mib=20_000), ("a",))).names
    assert told == [("a", 20_000)]


async def test_a_node_wakes_pods_once_the_memory_is_free_that_one_of_them_needs() -> None:
    client = Patches()
    waker = Waker(client, 800)
    before = Gauge(load=100, loads=(100,), free_mib=(10_000,))
    waker.refused("full", before, 30_000)
    waker.refused("full", before, 20_000)
    async with running(waker.run()):
        waker.measured("full", Gauge(load=100, loads=(100,), free_mib=(19_968,)))
        await asyncio.sleep(0)
        assert client.patched == []
        waker.measured("full", Gauge(load=100, loads=(100,), free_mib=(20_032,)))
        await until(lambda: len(client.patched) == 1)


def test_a_pod_that_is_refused_for_what_others_state_is_not_as_telemetry_does_not_mend_that() -> (
    None
):
    world = World()
    told: list[str] = []
    world.answers.refused_for_load = lambda name, _: told.append(name)
    world.node(shared("a"))
    world.bound(raw_pod("p", mib=70_000), "a")
    world.model.put_gauge("a", Gauge(load=100, loads=(100,), free_mib=(10_000,)))
    assert not world.answers.filter(Question(raw_pod("q", mib=20_000), ("a",))).names
    assert told == []


@pytest.mark.parametrize(("after_seconds", "expected"), [(0.0, 1), (5.0, 1), (5.1, 0), (-1.0, 1)])
async def test_a_pod_that_leaves_soon_after_a_refusal_wakes_who_may_have_asked_too_early(
    after_seconds: float, expected: int
) -> None:
    client = Patches()
    waker = Waker(client, 800)
    waker.left("early", 99.0)
    waker.kept_out(100.0)
    waker.left("late", 100.0 + after_seconds)
    waker.left("late", 100.0 + after_seconds)
    async with running(waker.run()):
        await _turns()
    assert [name for name, _ in client.patched] == ["late"] * expected


async def test_waking_for_a_pod_that_left_is_tried_again_when_it_fails() -> None:
    client = Patches(UnavailableError("down"))
    waker = Waker(client, 800, retry_seconds=0.01)
    waker.kept_out(100.0)
    waker.left("late", 100.0)
    async with running(waker.run()):
        await until(lambda: bool(client.patched))


async def test_that_one_node_is_gone_keeps_nobody_asleep_who_may_go_to_another() -> None:
    client = Patches(NotFoundError("gone", status=404), UnavailableError("down"))
    waker = Waker(client, 800, retry_seconds=0.001)
    waker.kept_out(100.0)
    waker.left("gone", 100.0)
    waker.left("there", 100.0)
    waker.left("there too", 100.0)
    async with running(waker.run()):
        await until(lambda: bool(client.patched))
        await _turns()
    # One change wakes all.
    assert [name for name, _ in client.patched] == ["there"]


async def test_who_leaves_while_a_node_is_written_to_is_woken_for_once_more() -> None:
    class Slow(Patches):
        async def patch_merge(
            self, target: Target, body: Mapping[str, object]
        ) -> Mapping[str, object]:
            if not self.patched:
                waker.wake("same")
            return await super().patch_merge(target, body)

    client = Slow()
    waker = Waker(client, 800)
    waker.wake("same")
    async with running(waker.run()):
        await until(lambda: len(client.patched) == 2)


def test_any_refusal_is_noted_and_a_pass_is_not() -> None:
    world = World()
    world.node(shared("n0", replicas=1))
    noted: list[float] = []
    world.answers.kept_out = noted.append
    question = Question(raw_pod("a"), ("n0",))
    world.answers.filter(question)
    assert noted == []
    world.bound(raw_pod("b"), "n0")
    world.answers.filter(question)
    assert noted == [world.clock()]


async def test_a_write_that_keeps_failing_is_complained_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Patches(*(UnavailableError("down") for _ in range(5)))
    waker = Waker(client, 800, retry_seconds=0.001)
    waker.wake("any")
    async with running(waker.run()):
        await until(lambda: bool(client.patched))
    assert [record.getMessage() for record in caplog.records] == [
        "node any: pods that were refused were not woken: down"
    ]


@pytest.mark.parametrize(("known_after", "woken_after"), [(0, 5.0), (4, 5.0), (7, 7.0), (99, 60.0)])
async def test_who_another_extender_refused_is_woken_once_we_are_reached_and_know_as_much(
    known_after: float, woken_after: float
) -> None:
    passed: list[float] = []
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        passed.append(seconds)

    await wake_the_refused(
        lambda: sum(passed) >= known_after, lambda: woken.append(sum(passed)), sleep
    )
    assert woken == [woken_after]


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
