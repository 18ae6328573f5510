# SPDX-License-Identifier: Apache-2.0
"""Traces of GPU clusters as nodes and asks: openb's files, or one made up that is much like it.

The trace counts thousandths of a GPU, so a card has 1000 units here and a pod takes several of one.
Source: Alibaba openb 2023, hkust-adsl/kubernetes-scheduler-simulator (Weng et al., ATC 2023).
"""

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policies.cluster.constraints import Constraints, read_constraints
from policies.cluster.nodes import Node, read_node
from policies.placement.asks import Ask, DeviceAsk
from policies.placement.rooms import FULL_MILLI, Devices, Picking
from policies.vendors.nvidia import PRODUCT_LABEL

GPU: Final = "openb.example/gpu-milli"
WORKLOADS: Final = ("default", "gpushare100", "multigpu50", "gpuspec33")
_NODES_FILE: Final = "openb_node_list_gpu_node.csv"
_PUBLISHED_FILE: Final = "published_allocation.csv"


class TraceError(Exception):
    """A trace that is not there or cannot be read."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Nodes, what pods ask in the order of the file, and published results by policy and demand."""

    name: str
    nodes: tuple[Node, ...]
    asks: tuple[Ask, ...]
    published: Mapping[str, Mapping[int, float]]

    @property
    def capacity_milli(self) -> int:
        """All GPUs, in thousandths."""
        return sum(node.allocatable[GPU] for node in self.nodes)


def devices_of(node: Node, picking: Picking) -> tuple[Devices, ...]:
    """Return a node's cards with nothing taken."""
    cards = node.allocatable[GPU] // FULL_MILLI
    return (Devices(GPU, (FULL_MILLI,) * cards, FULL_MILLI, picking=picking),)


def milli_of(ask: Ask) -> int:
    """Return the thousandths that a pod asks."""
    return sum(device.count * device.units for device in ask.devices)


def arrivals(trace: Trace, seed: int) -> Iterator[Ask]:
    """Yield pods in random order, over again at random, until all GPUs have been asked for.

    So the published results were made: nothing leaves, and what no node holds is lost.
    """
    chance = random.Random(seed)  # noqa: S311 - the same pods in every run of a seed
    order = list(trace.asks)
    chance.shuffle(order)
    asked, capacity = 0, trace.capacity_milli
    while True:
        ask = order.pop() if order else chance.choice(trace.asks)
        asked += milli_of(ask)
        if asked > capacity:
            return
        yield ask


def read_trace(directory: Path, workload: str) -> Trace:
    """Read openb's nodes and one of its lists of pods. Raises TraceError."""
    name = f"openb_pod_list_{workload}"
    try:
        trace = Trace(
            name=workload,
            nodes=tuple(_node(row) for row in _rows(directory / _NODES_FILE)),
            asks=tuple(_ask(row) for row in _rows(directory / f"{name}.csv")),
            published=_published(directory / _PUBLISHED_FILE, name),
        )
    except OSError as error:
        raise TraceError(f"{error.filename}: {error.strerror}") from None
    except (KeyError, ValueError) as error:
        raise TraceError(f"{directory}: {workload} is no such trace: {error!r}") from None
    if not trace.capacity_milli or not any(milli_of(ask) for ask in trace.asks):
        raise TraceError(f"{directory}: {workload} has no GPU, or no pod that asks for one")
    return trace


def make_trace(nodes: int, pods: int, seed: int = 1) -> Trace:
    """Make up a trace with openb's mixture of machines and pods, for where the real one is not."""
    chance = random.Random(seed)  # noqa: S311 - the same trace in every run
    return Trace(
        name="synthetic",
        nodes=tuple(_node(row) for row in _made_nodes(chance, nodes)),
        asks=tuple(_ask(row) for row in _made_pods(chance, pods)),
        published={},
    )


def _made_nodes(chance: random.Random, count: int) -> Iterator[Mapping[str, str]]:
    # Cards, CPU (milli), memory (MiB), model, weight.
    machines = (
        (8, 96_000, 393_216, "G2", 55),
        (8, 128_000, 786_432, "G3", 5),
        (2, 104_000, 524_288, "T4", 25),
        (2, 64_000, 262_144, "P100", 10),
        (1, 16_000, 122_880, "V100", 5),
    )
    weights = [machine[-1] for machine in machines]
    for number, machine in enumerate(chance.choices(machines, weights, k=count)):
        cards, cpu, memory, model, _ = machine
        yield {
            "sn": f"node-{number:04d}",
            "cpu_milli": str(cpu),
            "memory_mib": str(memory),
            "gpu": str(cards),
            "model": model,
        }


def _made_pods(chance: random.Random, count: int) -> Iterator[Mapping[str, str]]:
    # GPUs, thousandths of each, CPU (milli), memory (MiB), weight.
    pods = (
        (0, 0, 8_000, 20_480, 8),
        (1, 1000, 8_000, 30_517, 12),
        (1, 1000, 12_000, 16_384, 6),
        (1, 460, 6_000, 12_288, 14),
        (1, 480, 11_400, 23_437, 9),
        (1, 220, 4_000, 15_258, 8),
        (1, 810, 8_000, 24_414, 14),
        (1, 300, 3_152, 3_600, 8),
        (1, 650, 16_000, 32_768, 12),
        (1, 550, 12_000, 24_000, 9),
        (2, 1000, 24_000, 65_536, 2),
        (4, 1000, 48_000, 131_072, 1),
        (8, 1000, 88_000, 262_144, 1),
    )
    for gpus, milli, cpu, memory, _ in chance.choices(pods, [pod[-1] for pod in pods], k=count):
        yield {
            "cpu_milli": str(cpu),
            "memory_mib": str(memory),
            "num_gpu": str(gpus),
            "gpu_milli": str(milli),
        }


def _rows(path: Path) -> Sequence[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise ValueError(f"{path.name} has no lines")
    return rows


def _node(row: Mapping[str, str]) -> Node:
    offered = {
        "cpu": f"{int(row['cpu_milli'])}m",
        "memory": f"{int(row['memory_mib'])}Mi",
        GPU: str(int(row["gpu"]) * FULL_MILLI),
    }
    labels = {PRODUCT_LABEL: row["model"]}
    return read_node(
        {"metadata": {"name": row["sn"], "labels": labels}, "status": {"allocatable": offered}}
    )


def _ask(row: Mapping[str, str]) -> Ask:
    gpus, milli = int(row["num_gpu"]), int(row["gpu_milli"])
    return Ask(
        devices=(DeviceAsk(GPU, gpus, milli),) if gpus and milli else (),
        amounts=(("cpu", int(row["cpu_milli"])), ("memory", int(row["memory_mib"]) << 20)),
        constraints=_of_models(row.get("gpu_spec") or ""),
    )


def _of_models(spec: str) -> Constraints:
    """Return the constraint to models that are written as `T4|P100`."""
    if not spec:
        return Constraints()
    needs = {"key": PRODUCT_LABEL, "operator": "In", "values": sorted(set(spec.split("|")))}
    required = {"nodeSelectorTerms": [{"matchExpressions": [needs]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return read_constraints({"affinity": affinity})


def _published(path: Path, name: str) -> Mapping[str, Mapping[int, float]]:
    """Return percent of GPUs allocated by policy and percent asked."""
    return {
        row["policy"].partition("-")[2]: {
            demand: float(row[f"allocated_pct_at_{demand}"]) for demand in (90, 100)
        }
        for row in _rows(path)
        if row["workload"] == name
    }
