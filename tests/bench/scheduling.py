# SPDX-License-Identifier: Apache-2.0
"""Pods bound a second by the real kube-scheduler, with the extender and without, in one run.

Pods are there before the scheduler is started, so that it never waits for them; rounds alternate.
The extender is asked once about each pod, or twice, as can be rendered; each beside none, with
opportunistic batching off in all. KWOK, which stands for 300 kubelets, and the controllers rest
meanwhile: what they do by the second is no part of scheduling, and would count more the longer a
round lasts. Ends with one line of JSON; exit code 1 where the ratio of one call is less than is
allowed. `python -m tests.bench.scheduling`
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from reconciler.manifests.scheduler_config import Calls
from tests.bench.bindings import (
    SCHEDULER_ARGUMENTS,
    Bindings,
    Json,
    create,
    delete_pods,
    watching,
)
from tests.bench.machine import describe_machine
from tests.bench.processes import BenchError
from tests.controlplane import ControlPlane, ControlPlaneError, find_binaries, nodes
from tests.controlplane.components import CONTROLLER_MANAGER, KWOK, SCHEDULER, Options
from tests.controlplane.extender import ExtenderProcess
from tests.prove.connection import Connection, connected

_NAMESPACE: Final = "bench"
_CONNECTIONS: Final = 16
_WAIT_SECONDS: Final = 120.0
_CARDS, _SHARES = 4, 4


@dataclass(frozen=True, slots=True)
class Bench:
    """What all rounds share."""

    plane: ControlPlane
    connection: Connection
    bindings: Bindings
    pods: int

    async def round(self, name: str, extenders: Sequence[Json]) -> float:
        """Return the pods bound a second in one round; nothing of it is left behind."""
        await asyncio.to_thread(self._stop)
        pods = [_pod(f"{name}-{number}") for number in range(self.pods)]
        names = [pod["metadata"]["name"] for pod in pods]
        await create(self.connection, f"/api/v1/namespaces/{_NAMESPACE}/pods", pods)
        await asyncio.to_thread(self._start, extenders)
        await self.bindings.until_decided(names, _WAIT_SECONDS)
        if refused := self.bindings.refused.keys() & set(names):
            why = self.bindings.refused[min(refused)]
            raise BenchError(f"{len(refused)} pods were refused, one of them since: {why}")
        await delete_pods(self.connection, _NAMESPACE)
        await self.bindings.until_gone(_WAIT_SECONDS)
        return self.bindings.per_second(names)

    def _stop(self) -> None:
        self.plane.components.kill_component(SCHEDULER)

    def _start(self, extenders: Sequence[Json]) -> None:
        path = self.plane.directory / "kube-scheduler.yaml"
        configuration = yaml.safe_load(path.read_text(encoding="utf-8"))
        configuration["extenders"] = list(extenders)
        path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
        self.plane.components.start_component(SCHEDULER)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a line of JSON, and return 1 if it is below what is allowed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scheduling", description=__doc__)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--allow-ratio", type=float, default=0.7)
    options = parser.parse_args(arguments)
    if not 20 <= options.pods <= options.nodes * _CARDS * _SHARES or options.rounds < 1:
        parser.error("there must be 20 pods or more, room for all of them, and a round")
    try:
        with tempfile.TemporaryDirectory() as directory:
            found = asyncio.run(_measure(Path(directory), options))
    except (BenchError, ControlPlaneError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps({**found, **describe_machine()}) + "\n")
    return int(found["ratio_one_call"] < options.allow_ratio)


async def _measure(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    rates: dict[str, list[float]] = {}
    with ExtenderProcess(directory) as extender:
        ways = {
            "one_call": [extender.entry(calls=Calls.ONE)],
            "two_calls": [extender.entry(calls=Calls.TWO)],
            "without": [],
        }
        settings = Options(scheduler_arguments=SCHEDULER_ARGUMENTS)
        with ControlPlane(find_binaries(os.environ, _report), settings) as plane:
            plane.create_namespace(_NAMESPACE)
            plane.create_nodes(
                nodes.time_sliced(f"n{number}", count=_CARDS, replicas=_SHARES)
                for number in range(options.nodes)
            )
            for component in (CONTROLLER_MANAGER, KWOK):
                plane.components.kill_component(component)
            await asyncio.to_thread(extender.start, plane.kubeconfig)
            async with (
                connected(plane, _CONNECTIONS) as connection,
                watching(connection, _NAMESPACE) as bindings,
            ):
                bench = Bench(plane, connection, bindings, options.pods)
                for number in range(options.rounds):
                    for way, extenders in ways.items():
                        name = f"{way.replace('_', '-')}-{number}"
                        rates.setdefault(way, []).append(await bench.round(name, extenders))
    return {
        "bench": "scheduling",
        "nodes": options.nodes,
        "pods": options.pods,
        **{f"{way}_per_s": [round(rate, 1) for rate in found] for way, found in rates.items()},
        **{f"ratio_{way}": _ratio(rates, way) for way in ("one_call", "two_calls")},
    }


def _ratio(rates: Mapping[str, Sequence[float]], way: str) -> float:
    return round(statistics.median(rates[way]) / statistics.median(rates["without"]), 3)


def _pod(name: str) -> Json:
    amounts = {"nvidia.com/gpu.shared": "1", "cpu": "1", "memory": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"sluice.dev/gpu-memory": "8Gi"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "x",
                    "resources": {"limits": amounts, "requests": amounts},
                }
            ],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
    }


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
