# SPDX-License-Identifier: Apache-2.0
"""Part of a trace through the real kube-scheduler, beside the simulation of the same pods.

So many nodes of the trace, and its pods with GPUs in the same order for both until all GPUs have
been asked for. What a thousandth of a GPU is on a real cluster, and who picks the card, is said in
`thousandths`. Ends with one line of JSON; exit code 1 where the two are further apart than is
allowed. `python -m tests.bench.reality --openb DIRECTORY` (or SLUICE_OPENB_DIR); without it, a
made-up trace.
"""

import argparse
import asyncio
import json
import os
import random
import ssl
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from policies.placement.rooms import Picking
from reconciler.manifests.scheduler_config import extender_entry
from tests.bench.bindings import SCHEDULER_ARGUMENTS, create, watching
from tests.bench.contenders import Learning
from tests.bench.machine import describe_machine
from tests.bench.openb import Trace, TraceError, arrivals, make_trace, milli_of, read_trace
from tests.bench.processes import BenchError
from tests.bench.replay import replay
from tests.bench.thousandths import raw_node, raw_pod
from tests.controlplane import ControlPlane, ControlPlaneError, find_binaries
from tests.controlplane.components import Options
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.processes import Command, Process, ProcessGroup
from tests.controlplane.replica import ROOT
from tests.prove.connection import connected

_NAMESPACE: Final = "openb"
_CONNECTIONS: Final = 16
_WAIT_SECONDS: Final = 300.0
_READY_SECONDS: Final = 60.0
_END_SECONDS: Final = 10.0
_MADE_PODS: Final = 3000
_NEVER_SECONDS: Final = 3600
"""Pods that find no node are lost, as the published replays have it: they are not tried again."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Percent of GPUs that were allocated at full demand, in reality and in the simulation."""

    pods: int
    lost: int
    real: float
    simulated: float

    @property
    def apart(self) -> float:
        """Return how far the two are apart, in points."""
        return abs(self.real - self.simulated)


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay both ways, print a line of JSON, and return 1 if they do not agree."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.reality", description=__doc__)
    given = os.environ.get("SLUICE_OPENB_DIR")
    parser.add_argument("--openb", type=Path, default=given and Path(given), metavar="DIRECTORY")
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--allow-points", type=float, default=1.0)
    options = parser.parse_args(arguments)
    try:
        whole = (
            make_trace(options.nodes, _MADE_PODS)
            if options.openb is None
            else read_trace(options.openb, "default")
        )
        trace = part_of(whole, options.nodes, options.seed)
        found = compare(trace, options.seed)
    except (BenchError, ControlPlaneError, TraceError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    line = {
        "bench": "reality",
        "trace": trace.name,
        "nodes": len(trace.nodes),
        "pods": found.pods,
        "lost": found.lost,
        "real": round(found.real, 2),
        "simulated": round(found.simulated, 2),
        "apart": round(found.apart, 2),
    }
    sys.stdout.write(json.dumps({**line, **describe_machine()}) + "\n")
    return int(found.apart > options.allow_points)


def part_of(trace: Trace, nodes: int, seed: int) -> Trace:
    """Return so many nodes of a trace, taken at random, and its pods that ask for GPUs."""
    chance = random.Random(seed)  # noqa: S311 - the same nodes in every run
    chosen = tuple(chance.sample(trace.nodes, nodes))
    return replace(trace, nodes=chosen, asks=tuple(ask for ask in trace.asks if ask.devices))


def compare(trace: Trace, seed: int) -> Compared:
    """Replay a trace both ways. Raises BenchError, ControlPlaneError."""
    chance = random.Random(seed)  # noqa: S311 - the same ties in every run
    simulated = replay(trace, Learning(trace, chance), Picking.PACKED, seed)
    with tempfile.TemporaryDirectory() as directory:
        bound = asyncio.run(_replay(trace, seed, Path(directory)))
    asked = {name: milli_of(ask) for name, ask in _named(trace, seed)}
    real = sum(asked[name] for name in bound)
    return Compared(
        pods=len(asked),
        lost=len(asked) - len(bound),
        real=100 * real / trace.capacity_milli,
        simulated=simulated.percent[-1],
    )


def _named(trace: Trace, seed: int) -> Iterator[tuple[str, Any]]:
    for number, ask in enumerate(arrivals(trace, seed)):
        yield f"p{number:05d}", ask


async def _replay(trace: Trace, seed: int, directory: Path) -> set[str]:
    """Return the pods that the real scheduler has bound, by name."""
    port = free_ports(1)[0]
    pods = [raw_pod(name, ask) for name, ask in _named(trace, seed)]
    names = [pod["metadata"]["name"] for pod in pods]
    entry = extender_entry(f"http://{HOST}:{port}/scheduler", ("nvidia.com/gpu.shared",))
    settings = Options(
        scheduler_config={
            # A busy machine must not make it go on without the extender.
            "extenders": [{**entry, "httpTimeout": "10s", "ignorable": False}],
            "podInitialBackoffSeconds": _NEVER_SECONDS,
            "podMaxBackoffSeconds": _NEVER_SECONDS,
        },
        scheduler_arguments=SCHEDULER_ARGUMENTS,
    )
    with ControlPlane(find_binaries(os.environ, _report), settings) as plane:
        plane.create_namespace(_NAMESPACE)
        async with connected(plane, _CONNECTIONS) as connection:
            await create(connection, "/api/v1/nodes", [raw_node(node) for node in trace.nodes])
            plane.wait_nodes_ready()
            with _extender(plane.kubeconfig, port, directory):
                async with watching(connection, _NAMESPACE) as bindings:
                    await create(connection, f"/api/v1/namespaces/{_NAMESPACE}/pods", pods)
                    await bindings.until_decided(names, _WAIT_SECONDS)
                    return set(bindings.nodes)


@contextmanager
def _extender(kubeconfig: Path, port: int, directory: Path) -> Iterator[None]:
    """Run the extender of `thousandths` until the block ends."""
    arguments = ("--kubeconfig", str(kubeconfig), "--port", str(port))
    told = (sys.executable, "-m", "tests.bench.thousandths", *arguments)
    command = Command("extender", told, port, "/readyz", is_tls=False)
    with closing(ProcessGroup()) as group:
        process = Process.start(command, directory / "extender.log", group, ROOT)
        try:
            process.wait_healthy(ssl.create_default_context(), "", _READY_SECONDS)
            yield
            process.check()
        finally:
            process.end(_END_SECONDS)


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
