# SPDX-License-Identifier: Apache-2.0
"""What the quota controller costs on the real control plane, from end to end.

Pods released a second beside a bare client in the same run, how long a lone pod waits, and the
memory of a process that has listed very many pods (stored in the real API server). Ends with one
line of JSON, which holds the planner's own figures too. `python -m tests.bench.quota`
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import yaml

from tests.bench.footprint import read_memory, store_pods
from tests.bench.lone import measure
from tests.bench.machine import describe_machine
from tests.bench.processes import ROOT, BenchError
from tests.bench.releasing import Bench, seeing
from tests.controlplane import ControlPlane, ControlPlaneError, find_binaries, nodes
from tests.controlplane.installed import InstalledSluice
from tests.integration.sluice.running import Running
from tests.prove.connection import Connection, connected
from tests.prove.driver import Driver, DriverError, make_anchors
from tests.prove.scene import Scale, documents, make_nodes, make_world, write_documents
from tests.prove.world import Json, World

_SCALE: Final = Scale(tenants=4, shared_nodes=30, whole_nodes=0)
_SETTLE_SECONDS: Final = 10.0
_STOPPED: Final = ("kube-controller-manager", "kube-scheduler", "kwok")
_SHARES_OF_NODE: Final = 56
_ONE: Final = Fraction(1000)
_MANY: Final = Fraction(60_000)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    pods: int
    rounds: int
    lone: int
    stored: int
    connections: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.quota", description=__doc__)
    parser.add_argument("--pods", type=int, default=600, help="releases in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lone", type=int, default=100, help="pods that are released alone")
    parser.add_argument(
        "--stored", type=int, default=50_000, help="pods for the memory; 0 for none"
    )
    parser.add_argument("--connections", type=int, default=16)
    sizes = Sizes(**vars(parser.parse_args(arguments)))
    try:
        figures = asyncio.run(_measure(sizes))
        figures["planner"] = _planner()
    except (BenchError, ControlPlaneError, DriverError) as error:
        _say(str(error))
        return 2
    sys.stdout.write(json.dumps({"bench": "quota", **figures, **describe_machine()}) + "\n")
    return 0


async def _measure(sizes: Sizes) -> dict[str, Any]:
    world = _world()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        policies = directory / "policies"
        policies.mkdir()
        write_documents(policies, documents(world))
        async with ControlPlane(find_binaries(os.environ, _say)) as control_plane:
            await asyncio.to_thread(_furnish, control_plane, world)
            sluice = InstalledSluice(control_plane, policies, directory / "sluice")
            with sluice:
                async with _benching(control_plane, Running(sluice, policies), sizes) as bench:
                    like = await _rates(bench, sizes, figures)
                    await _lone(bench, sizes, figures)
            if sizes.stored:
                async with connected(control_plane, sizes.connections) as admin:
                    await _fill(control_plane, admin, like, sizes)
                with InstalledSluice(control_plane, policies, directory / "again") as again:
                    again.leave_objects()  # nobody is left to empty a namespace
                    figures["memory"] = await _memory(control_plane, again, sizes)
    return figures


async def _rates(bench: Bench, sizes: Sizes, figures: dict[str, Any]) -> Json:
    """Measure both in turn; return a pod that Sluice has released."""
    _, ours, theirs, _ = bench.world.tenants
    like = await bench.hold(ours)
    await bench.hold(theirs)
    rates: dict[str, list[float]] = {"sluice": [], "bare": []}
    for number in range(sizes.rounds):
        rates["sluice"].append(await bench.by_sluice(ours, sizes.pods))
        rates["bare"].append(await bench.by_bare_client(theirs, sizes.pods, like))
        text = ", ".join(f"{name} {found[-1]:.0f}" for name, found in rates.items())
        _say(f"round {number + 1}: released a second: {text}")
    figures["released_per_second"] = {k: round(statistics.median(v), 1) for k, v in rates.items()}
    ratios = [a / b for a, b in zip(rates["sluice"], rates["bare"], strict=True)]
    figures["ratio_to_bare"] = round(statistics.median(ratios), 3)
    figures["rounds"] = {k: [round(x, 1) for x in v] for k, v in rates.items()}
    figures["pods"] = sizes.pods
    return like


async def _lone(bench: Bench, sizes: Sizes, figures: dict[str, Any]) -> None:
    latency = await measure(bench, bench.world.tenants[3], sizes.lone)
    figures["lone_pod"] = {key: round(value, 1) for key, value in asdict(latency).items()}
    figures["process"] = asdict(read_memory(bench.running.installed.replica.pid))
    _say(f"lone pod: p50 {latency.p50_ms:.1f} ms, p99 {latency.p99_ms:.1f} ms")


async def _fill(control_plane: ControlPlane, admin: Connection, like: Json, sizes: Sizes) -> None:
    """Store the pods, with nobody there who would run, place or collect them."""
    names = [f"stored-{number}" for number in range(-(-sizes.stored // _SHARES_OF_NODE))]
    await asyncio.to_thread(
        control_plane.create_nodes, [nodes.time_sliced(name, replicas=7) for name in names]
    )
    for component in _STOPPED:
        await asyncio.to_thread(control_plane.components.stop_component, component)
    _say(f"storing {sizes.stored} pods")
    await store_pods(admin, like, names, sizes.stored, sizes.connections)


async def _memory(
    control_plane: ControlPlane, sluice: InstalledSluice, sizes: Sizes
) -> Mapping[str, Any]:
    """Have a pod released by a process that has listed them all, and look at its memory."""
    async with connected(control_plane, 4) as admin:
        driver = Driver(admin, {}, 1)
        tenant = _world().tenants[3]
        async with seeing(admin, tenant) as seen:
            pod = driver.pod(tenant, None)
            pod["metadata"]["name"] = "after-all"
            await driver.create(pod)
            await seen.until_released({"after-all"})
    await asyncio.sleep(_SETTLE_SECONDS)
    found = {key: round(value) for key, value in asdict(read_memory(sluice.replica.pid)).items()}
    _say(f"memory with {sizes.stored} pods: {found}")
    return {"pods": sizes.stored, "server": "kube-apiserver", **found}


@asynccontextmanager
async def _benching(
    control_plane: ControlPlane, running: Running, sizes: Sizes
) -> AsyncIterator[Bench]:
    world = _world()
    token = _token(running.installed.kubeconfig)
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(connected(control_plane, sizes.connections + 4))
        own = await stack.enter_async_context(connected(control_plane, sizes.connections, token))
        anchors = await make_anchors(admin, world.by_namespace)
        driver = Driver(admin, anchors, 1)
        yield Bench(admin, own, driver, running, world, sizes.connections)


def _world() -> World:
    """Two tenants that are held at one GPU, and one with more than it needs."""
    plain = make_world(_SCALE)
    ceilings = (_ONE, _ONE, _ONE, _MANY)
    return replace(
        plain,
        tenants=tuple(
            replace(tenant, guarantee=ceiling, ceiling=ceiling)
            for tenant, ceiling in zip(plain.tenants, ceilings, strict=True)
        ),
    )


def _furnish(control_plane: ControlPlane, world: World) -> None:
    control_plane.create_nodes(make_nodes(_SCALE))
    for name in sorted(world.by_namespace):
        control_plane.create_namespace(name)


def _token(kubeconfig: Path) -> str:
    content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    return str(content["users"][0]["user"]["token"])


def _planner() -> Json | None:
    """Return the figures of the planner alone, which has a program of its own."""
    _say("the planner alone")
    command = (sys.executable, "-m", "tests.bench.planner")
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} ended with code {done.returncode}")
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
