# SPDX-License-Identifier: Apache-2.0
"""What a pass of the release planner costs, by itself: no API server, no writes.

1,213 nodes, 50,000 running and 10,000 waiting pods of 200 tenants in 20 cohorts; quota is short,
nodes are nearly full, a tenth of what waits is in gangs. `python -m tests.bench.planner` ends with
one line of JSON; times are in milliseconds.
"""

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any, Final

from policies.cluster.constraints import Constraints
from policies.cluster.nodes import Node
from policies.cluster.shape import FitShape
from policies.model.tenant import Lending, Tenant
from policies.pod.view import ContainerKind
from policies.quota.planning.plan import plan
from policies.quota.planning.values import Plan
from policies.quota.pods import Ask, Gang, Phase, QuotaPod, Shape
from tests.bench.machine import describe_machine
from tests.support.builders import GPU, SHARED
from tests.support.planning import START, World, base, tenant

NODES: Final = 1213
RUNNING: Final = 50_000
WAITING: Final = 10_000
TENANTS: Final = 200
SHAPES: Final = 60
_COHORTS: Final = 20
_ROUNDS: Final = 30
_GANG: Final = 8
_SHAPES_EACH: Final = 8
"""Of how many shapes a tenant's pods are."""
_GPU_PODS: Final = 20_000
"""So many of the running pods have GPUs, as far as there is room; the others are on all nodes."""
_REPLICAS: Final = 4
_SLICED: Final = 613
"""Nodes whose GPUs are cut into time slices; the others have whole ones."""


def main() -> int:
    """Measure, print the line, return the exit code."""
    sys.stdout.write(json.dumps(measure()) + "\n")
    return 0


def measure(scale: int = 1, rounds: int = _ROUNDS) -> dict[str, Any]:
    """Return the figures of a cluster that is so many times smaller."""
    bench = Bench(random.Random(7), scale)  # noqa: S311 - the same cluster in every run
    build_seconds, _ = _timed(bench.build)
    gc.collect()
    gc.freeze()
    first_seconds, first = _timed(lambda: plan(bench.world.state, START, 500))
    released = bench.settle()
    steady = plan(bench.world.state, START + 5, 500)
    figures = {
        "bench": "planner",
        "nodes": NODES // scale,
        "running": RUNNING // scale,
        "waiting": sum(len(wait.pods) for wait in steady.waits),
        "groups": len(steady.waits),
        "tenants": TENANTS,
        "build_seconds": round(build_seconds, 2),
        "first_pass_ms": round(1000 * first_seconds, 1),
        "first_pass_releases": len(first.releases),
        "released_until_nothing_goes": released,
        "whole_pass_ms": _milliseconds(bench.whole_pass, lambda: None, rounds),
    }
    for name, change in bench.changes().items():
        figures[f"pass_after_{name}_ms"] = _milliseconds(bench.one_pass, change, rounds)
    return {**figures, **describe_machine()}


class Bench:
    """The cluster, and what happens in it."""

    def __init__(self, chance: random.Random, scale: int) -> None:
        self._chance = chance
        self._scale = scale
        self._numbers = count()
        self._now = START + 10
        self._shapes = [self._shape(number) for number in range(SHAPES)]
        self._plain = Shape(FitShape.of({"cpu": 100, "pods": 1}, Constraints()))
        self._tenants = [self._tenant(number) for number in range(TENANTS)]
        self._used = {
            each.name: chance.sample(self._shapes, _SHAPES_EACH) for each in self._tenants
        }
        self._nodes = [self._node(number) for number in range(NODES // scale)]
        self.world = World(self._tenants, self._nodes)
        self._bound: list[QuotaPod] = []
        self.kinds: dict[str, int] = {}

    def build(self) -> None:
        """Fill the nodes, and let the others wait."""
        state, running = self.world.state, RUNNING // self._scale
        most = _GPU_PODS // self._scale
        for _ in range(running):
            pod = self._pod(Phase.LIVE)
            place = state.fit.assume(pod.uid, pod.shape.fit) if len(self._bound) < most else None
            if place is None:
                pod = replace(pod, shape=self._plain, namespace="system")
                place = self._nodes[next(self._numbers) % len(self._nodes)].name
            else:
                self._bound.append(replace(pod, node=place))
            state.put_pod(replace(pod, node=place))
        for number in range(WAITING // self._scale):
            if number % (10 * _GANG) == 0:
                self._wait_gang()
            elif number % 10:
                self._wait_one()
        self.world.idle(1800)

    def settle(self) -> int:
        """Release until nothing goes any more, and return how many went."""
        released = 0
        self.world.now = START + 5
        while found := self.world.act().releases:
            released += len(found)
            for release in found:
                self.world.state.put_pod(replace(self.world.pod(release.pod.uid)))
        return released

    def one_pass(self) -> Plan:
        """Plan a second later."""
        self._now += 1
        return plan(self.world.state, self._now, 500)

    def whole_pass(self) -> Plan:
        """Plan with nothing remembered of any tenant."""
        self.world.state.known.forget(self.world.tenants)
        return self.one_pass()

    def changes(self) -> dict[str, Callable[[], None]]:
        """Return single changes by name."""
        return {
            "a_pod_came": self._wait_one,
            "a_pod_ended": self._end_one,
            "a_release": self._release_one,
            "a_node_changed": self._change_node,
            "nothing": lambda: None,
        }

    def _wait_one(self) -> None:
        pod = self._pod(Phase.WAITING)
        self.world.state.put_pod(pod)

    def _wait_gang(self) -> None:
        first = self._pod(Phase.WAITING)
        gang = Gang(f"gang-{next(self._numbers)}", _GANG)
        for member in range(_GANG):
            self.world.state.put_pod(
                replace(
                    first, gang=gang, name=f"{first.name}-{member}", uid=f"{first.uid}-{member}"
                )
            )

    def _end_one(self) -> None:
        self.world.state.remove_pod(self._bound.pop().uid)

    def _release_one(self) -> None:
        self._end_one()
        for release in plan(self.world.state, self._now, 1).releases:
            self.world.state.charge_intent(release.pod.uid, release.charge, release.node)

    def _change_node(self) -> None:
        node = self._chance.choice(self._nodes)
        cpu = node.allocatable["cpu"] - self._chance.randrange(1, 1000)
        self.world.state.put_node(replace(node, allocatable={**node.allocatable, "cpu": cpu}))

    def _pod(self, phase: Phase) -> QuotaPod:
        number = next(self._numbers)
        owner = self._chance.choice(self._tenants).name
        return QuotaPod(
            namespace=owner,
            name=f"pod-{number}",
            uid=f"uid-{number}",
            version="1",
            created_at=START - self._chance.randrange(7200),
            phase=phase,
            shape=self._chance.choice(self._used[owner]),
            priority=self._chance.choice((0, 0, 10)),
            owner="Job/x",
        )

    def _tenant(self, number: int) -> Tenant:
        ceiling = self._chance.choice((40, 80, 160))
        return tenant(
            f"tenant-{number}",
            self._chance.choice((16, 32, 48)),
            ceiling,
            cohort=f"cohort-{number % _COHORTS}",
            priority=self._chance.choice((0, 0, 50, 100)),
            weight=self._chance.choice((1, 1, 2)),
            lending=Lending(enabled=number % 7 != 0),
        )

    def _node(self, number: int) -> Node:
        labels = {"kubernetes.io/hostname": f"node-{number}", "zone": f"z{number % 3}"}
        offered = {"cpu": 96_000, "memory": 2**40, "pods": 256}
        if number < _SLICED // self._scale:
            labels |= base().profiles["slice-4"].placement.node_selector
            labels |= {"nvidia.com/gpu.replicas": str(_REPLICAS)}
            return Node(f"node-{number}", labels, (), {**offered, SHARED: 8 * _REPLICAS})
        return Node(f"node-{number}", labels, (), {**offered, GPU: 8})

    def _shape(self, number: int) -> Shape:
        selector = dict(base().profiles["slice-4"].placement.node_selector)
        wanted = {"cpu": 500 * (1 + number % 7), "memory": 2**30 * (1 + number % 5), "pods": 1}
        zone = (("zone", f"z{number % 3}"),) if number % 4 == 0 else ()
        if number % 2:
            constraints = Constraints(tuple(sorted((*selector.items(), *zone))))
            asks, gpus = (Ask(ContainerKind.APP, {SHARED: 1}, "slice-4"),), {SHARED: 1}
        else:
            constraints = Constraints(zone)
            gpus = {GPU: (1, 1, 2, 4, 8)[number % 5]}
            asks = (Ask(ContainerKind.APP, gpus),)
        return Shape(
            FitShape.of({**wanted, **gpus}, constraints),
            asks,
            gpus,
            profiles=("slice-4",) if number % 2 else (),
            claimed=True,
            exclusive=number % 10 == 0,
        )


def _milliseconds(
    work: Callable[[], Plan], change: Callable[[], None], rounds: int
) -> dict[str, float]:
    """Return wall-clock figures, and the processor's time, which neighbours disturb less."""
    taken, busy = [], []
    for _ in range(rounds):
        change()
        began, busy_before = time.perf_counter(), time.process_time()
        work()
        taken.append(1000 * (time.perf_counter() - began))
        busy.append(1000 * (time.process_time() - busy_before))
    return {
        "p50": round(statistics.median(taken), 2),
        "max": round(max(taken), 2),
        "cpu_p50": round(statistics.median(busy), 2),
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    sys.exit(main())
