# SPDX-License-Identifier: Apache-2.0
"""Pods whose release is refused wait on, are counted, say so, and are tried again."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from policies.quota.pods import QuotaPod
from reconciler.cluster import LiveCluster
from reconciler.kube.errors import ApiError, ForbiddenError, PastTermError
from reconciler.kube.intents import Intent
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import Target
from reconciler.quota.controller import Hooks, QuotaController
from reconciler.quota.parking import Parked, text_of
from reconciler.quota.releasing import Releaser
from tests.support.builders import catalog
from tests.support.planning import World, node, tenant
from tests.support.quota_pods import waiting_pod
from tests.support.running import running
from tests.support.waiting import until

REFUSAL = ForbiddenError("no\nsuch  luck", status=403)


class Lease:
    async def declare(self, intents: Sequence[Intent]) -> None:
        pass


class Server:
    """Refuses every release."""

    def __init__(self) -> None:
        self.error: ApiError = REFUSAL
        self.tries = 0

    async def get(self, target: Target) -> Mapping[str, object]:
        return {}

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        self.tries += 1
        raise self.error


class Bench:
    """One pod that waits, a server that refuses it, and a back-off that a test ends."""

    def __init__(self) -> None:
        self.world = World([tenant("a", 8, 8)])
        source: Any = None
        runtime = Runtime(clock=lambda: 1000.0, uniform=lambda _low, high: high)
        policies = self.world.state.policies
        self.cluster = LiveCluster(source, lambda: policies, catalog(), runtime)
        self.cluster.refresh_policies()
        self.state = self.cluster.state
        self.told: list[str] = []
        self.controller = QuotaController(
            self.cluster,
            Outstanding(Lease()),
            lambda: 1000.0,
            runtime,
            Hooks(parked=lambda _pod, text: self.told.append(text)),
        )
        self.server = Server()
        self.releaser = Releaser(
            self.server, Outstanding(Lease()), self.controller, lambda: True, runtime=runtime
        )
        self.state.put_node(node("n1"))
        (self.pod,) = self.world.wait("a")

    def put(self, pod: QuotaPod) -> None:
        """Have the watch show a pod."""
        self.cluster._put(None, pod)

    def says(self) -> list[str]:
        return [text for _pod, text in self.controller.waits()]

    @property
    def is_planned_for(self) -> bool:
        return bool(self.state.queue.tenants)


async def _parked(bench: Bench) -> None:
    """Have the pod put aside for a minute."""
    bench.put(bench.pod)
    bench.controller._releaser = bench.releaser
    bench.controller.refused(bench.pod, bench.server.error, 60.0)


async def test_a_pod_whose_release_is_refused_counts_as_waiting_and_says_by_whom() -> None:
    bench = Bench()
    await _parked(bench)

    assert not bench.is_planned_for
    assert bench.state.ledger.waiting("a").count == 1
    assert bench.says() == ["Refused: no such luck"]
    assert bench.told == ["Refused: no such luck"]


async def test_it_is_tried_again_when_its_back_off_is_over() -> None:
    bench = Bench()
    async with running(bench.controller.run(bench.releaser)):
        bench.put(bench.pod)
        await until(lambda: bench.server.tries >= 3)
    assert bench.state.ledger.waiting("a").count == 1


async def test_what_it_says_of_itself_does_not_end_its_back_off() -> None:
    bench = Bench()
    await _parked(bench)
    told = replace(bench.pod, version="2", reason="Refused: no such luck")

    for _ in range(2):  # the answer to the write, and then the watch
        bench.put(told)
        assert not bench.is_planned_for
    assert [pod.version for pod, _ in bench.controller.waits()] == ["2"]

    bench.put(replace(told, version="3"))
    assert bench.is_planned_for
    assert not bench.says()


async def test_a_pod_that_is_gone_says_nothing_more() -> None:
    bench = Bench()
    await _parked(bench)

    bench.cluster._tell(bench.pod, None)
    bench.state.remove_pod(bench.pod.uid)

    assert not bench.says()
    assert bench.state.ledger.waiting("a").count == 0
    bench.put(bench.pod)
    assert bench.is_planned_for


async def test_of_a_term_that_is_over_a_pod_says_nothing() -> None:
    bench = Bench()
    bench.server.error = PastTermError("term 3 is over", status=403)
    await _parked(bench)

    assert not bench.says()
    assert not bench.told


async def test_a_refusal_that_may_be_a_restart_is_not_told() -> None:
    bench = Bench()
    bench.put(bench.pod)
    bench.controller.refused(bench.pod, REFUSAL, 0.2)

    assert not bench.told
    await asyncio.sleep(0)


def test_a_reason_is_one_line_of_bounded_length() -> None:
    assert text_of(ForbiddenError("a\x00\n\u202eb" + "x" * 9999)).startswith("Refused: a bxxx")
    assert len(text_of(ForbiddenError("x" * 9999))) == 300
    assert text_of(ForbiddenError("")) == "Refused: ForbiddenError"


@pytest.mark.parametrize(
    ("change", "is_only_told"),
    [
        ({"version": "2", "reason": "Refused: x"}, True),
        ({}, True),
        ({"version": "2"}, False),
        ({"version": "2", "reason": "Refused: x", "priority": 5}, False),
    ],
)
def test_another_reason_alone_is_our_own_doing(
    change: Mapping[str, Any], is_only_told: bool
) -> None:
    pod = waiting_pod("a")
    assert Parked(pod, "").is_only_told(replace(pod, **change)) is is_only_told
