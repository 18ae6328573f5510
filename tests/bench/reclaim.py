# SPDX-License-Identifier: Apache-2.0
"""What a pass of reclaim costs, by itself: no API server, no writes.

1,213 nodes full of 48,500 running pods of 200 tenants in 20 cohorts, half of whom borrow, and 500
pods and gangs that are owed to the others; a victim in three knows already. A pass runs in the
event loop, where releases and the Lease wait for it. `python -m tests.bench.reclaim` ends with one
line of JSON; times are in milliseconds.
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

from policies.cluster.nodes import Node
from policies.model.tenant import Tenant
from policies.quota.amount import Amount
from policies.quota.charge import ChargeRecord
from policies.quota.planning.values import Plan
from policies.quota.pods import Gang, Notice, Phase, QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import ReclaimPlan
from policies.quota.reclaim.picture import expose
from policies.quota.reclaim.snapshot import Disruption
from policies.quota.reclaim.units import KnownUnits
from reconciler.reclaim.plan import plan_reclaim
from tests.bench.machine import describe_machine
from tests.support.builders import GPU
from tests.support.planning import START, World, lending_at_once, shape, tenant

NODES: Final = 1213
EACH: Final = 40
"""Devices of a node, one for each pod on it."""
TENANTS: Final = 200
OWED: Final = 500
GUARANTEES: Final = (100, 300)
"""Of who borrows and of who is owed, in GPUs."""
_COHORTS: Final = 20
_ROUNDS: Final = 20
_GANG: Final = 8


def main() -> int:
    """Measure, print the line, return the exit code."""
    sys.stdout.write(json.dumps(measure()) + "\n")
    return 0


def measure() -> dict[str, Any]:
    """Return the figures."""
    bench = Bench(random.Random(7))  # noqa: S311 - the same cluster in every run
    bench.build()
    gc.collect()
    gc.freeze()
    first_seconds, first = _timed(bench.one_pass)
    bench.tell(first)
    found = bench.one_pass()
    victims, beneficiaries = found.victims or {}, found.reservations
    figures: dict[str, Any] = {
        "bench": "reclaim",
        "nodes": NODES,
        "running": len(bench.running),
        "owed": OWED,
        "victims": len(victims),
        "beneficiaries": len(beneficiaries),
        "first_pass_ms": round(1000 * first_seconds, 1),
    }
    for name, change in bench.changes().items():
        figures[f"pass_after_{name}_ms"] = _milliseconds(bench, change)
    return {**figures, **describe_machine()}


class Bench:
    """The cluster, and what happens in it."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._numbers = count()
        self._tenants = [self._tenant(number) for number in range(TENANTS)]
        self._nodes = [
            Node(f"node-{n}", {}, (), {GPU: EACH, "cpu": 96_000, "pods": 256}) for n in range(NODES)
        ]
        self.world = World(self._tenants, self._nodes)
        self.running: list[QuotaPod] = []
        self._told: list[str] = []
        self._planned = Plan()
        self._memory = Memory(self.world.state.hold_back)
        self._known = KnownUnits()
        self.held_ms: list[float] = []
        self.held_busy_ms: list[float] = []
        """How long each pass has held the loop, and in the processor's own time."""

    def build(self) -> None:
        """Fill every node with work that is borrowed, and let the others wait."""
        for node in self._nodes:
            for _ in range(EACH):
                self._run(node.name)
        for number in range(OWED):
            self._wait(gang=number % 10 == 0)
        self.world.now += 10_000
        self.release()

    def one_pass(self) -> ReclaimPlan:
        """Plan what to take back; what holds the loop is noted, and the rest runs beside it."""
        state, now = self.world.state, self.world.now
        began, busy_before = time.perf_counter(), time.process_time()
        remembered = self._memory.remembered(now, 600, self._told)
        exposed = expose(state, self._planned, (), remembered, now)
        self.held_ms.append(1000 * (time.perf_counter() - began))
        self.held_busy_ms.append(1000 * (time.process_time() - busy_before))
        gc.disable()
        try:
            return plan_reclaim(exposed.developed(self._known.held), self._known)
        finally:
            gc.enable()

    def release(self) -> None:
        """Have the release planner say who lacks room, a second later."""
        self.world.now += 1
        self._planned = self.world.act()

    def tell(self, planned: ReclaimPlan) -> None:
        """Let a third of those who are to go have their notice already."""
        state, now = self.world.state, self.world.now
        for uid in sorted(planned.victims or {})[::3]:
            notice = Notice("owner/w", "ReclaimPolicy/defaults", now, now + 120)
            state.put_pod(replace(self.world.pod(uid), notice=notice))
            self._told.append(uid)

    def changes(self) -> dict[str, Callable[[], None]]:
        """Return single changes by name."""
        return {
            "nothing": lambda: None,
            "a_pod_ended": self._end_one,
            "an_owed_pod_came": self._wait,
            "ten_evictions": self._evict_ten,
            "fifty_notices": self._notify_fifty,
        }

    def _end_one(self) -> None:
        self.world.end(self.running.pop())

    def _notify_fifty(self) -> None:
        for pod in self._chance.sample(self.running, 50):
            changed = replace(self.world.pod(pod.uid), version=str(next(self._numbers)))
            self.world.state.put_pod(changed)

    def _evict_ten(self) -> None:
        now = self.world.now
        for _ in range(10):
            pod = self.world.pod(self.running.pop().uid)
            self._memory.ended(pod, Disruption(now, pod.namespace, pod.node), 60)
            self.world.state.put_pod(replace(pod, deleted_at=now + 30))

    def _run(self, node: str) -> None:
        """Have a borrower's pod on a node."""
        number = next(self._numbers)
        owner = f"tenant-{self._chance.randrange(TENANTS // 2)}"
        pod_shape = shape(1, grace_seconds=self._chance.choice((10, 30)))
        pod = QuotaPod(
            namespace=owner,
            name=f"pod-{number}",
            uid=f"uid-{number}",
            version="1",
            created_at=START,
            phase=Phase.LIVE,
            shape=pod_shape,
            node=node,
            priority=self._chance.choice((0, 0, 10)),
            charge=ChargeRecord(owner, "", Amount({1: 1}), "g", START + number % 3600),
            owner="Job/x",
            owner_uid=f"job-{owner}-{number % 50}",
            gang=Gang(f"run-{number // _GANG}", None) if number % 100 < _GANG else None,
        )
        self.world.state.put_pod(pod)
        self.running.append(pod)

    def _wait(self, *, gang: bool = False) -> None:
        """Have a pod or a gang wait within its tenant's guarantee."""
        number = next(self._numbers)
        owner = f"tenant-{self._chance.randrange(TENANTS // 2, TENANTS)}"
        size = self._chance.choice((1, 1, 1, 1, 2))
        if gang:
            self.world.wait(owner, 1, _GANG, gang=(f"gang-{number}", _GANG))
        else:
            self.world.wait(owner, size)

    def _tenant(self, number: int) -> Tenant:
        borrows = number < TENANTS // 2
        return tenant(
            f"tenant-{number}",
            GUARANTEES[0] if borrows else GUARANTEES[1],
            2000,
            cohort=f"cohort-{number % _COHORTS}",
            priority=self._chance.choice((0, 0, 50)),
            lending=lending_at_once(),
        )


def _milliseconds(bench: Bench, change: Callable[[], None]) -> dict[str, dict[str, float]]:
    """Return how long passes hold the loop, and what they cost in all of the processor's time."""
    bench.held_ms.clear()
    bench.held_busy_ms.clear()
    busy = []
    for _ in range(_ROUNDS):
        change()
        bench.release()
        began = time.process_time()
        bench.one_pass()
        busy.append(1000 * (time.process_time() - began))
    return {
        "holds_the_loop": _figures(bench.held_ms),
        "holds_the_loop_cpu": _figures(bench.held_busy_ms),
        "cpu": _figures(busy),
    }


def _figures(taken: list[float]) -> dict[str, float]:
    return {"p50": round(statistics.median(taken), 1), "max": round(max(taken), 1)}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    sys.exit(main())
