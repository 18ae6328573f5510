# SPDX-License-Identifier: Apache-2.0
"""What the fit check costs: 1,213 nodes, 50,000 bound pods, 60 shapes.

`python -m tests.bench.fit` ends with one line of JSON; times are of single calls.
"""

import gc
import json
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from policies.cluster.constraints import read_constraints
from policies.cluster.demand import read_requests
from policies.cluster.fit import FitIndex, FitShape
from policies.cluster.nodes import Node, read_node
from tests.bench.machine import describe_machine
from tests.controlplane import nodes as fleet

NODES: Final = 1213
PODS: Final = 50_000
SHAPES: Final = 60
_ROUNDS: Final = 2000
Binding: TypeAlias = tuple[str, str, Mapping[str, int]]
"""A pod's uid, its node, and what it takes."""

_TOLERATIONS: Final = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
]


def main() -> int:
    """Measure, print the line, return the exit code."""
    sys.stdout.write(json.dumps(measure(NODES, PODS, _ROUNDS)) + "\n")
    return 0


def measure(count: int, pods: int, rounds: int) -> dict[str, Any]:
    """Return the figures of so many nodes and pods, each call repeated so many times."""
    chance = random.Random(7)  # noqa: S311 - the same cluster in every run
    raw_nodes = [_raw_node(number) for number in range(count)]
    raw_shapes = [_raw_pod(number) for number in range(SHAPES)]
    read_nodes_seconds, nodes = _timed(lambda: [read_node(raw) for raw in raw_nodes])
    read_pods_seconds, _ = _timed(lambda: [_shape(raw) for raw in raw_shapes * 100])
    shapes = [_shape(raw) for raw in raw_shapes]
    bindings = _bindings(nodes, pods, shapes)
    tracemalloc.start()
    kept = _build(nodes, bindings)
    memory_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    build_seconds, index = _timed(lambda: _build(nodes, bindings))
    cold_seconds, _ = _timed(lambda: [index.fits(shape) for shape in shapes])
    explain_seconds, _ = _timed(lambda: [index.explain(shape) for shape in shapes])
    calls = {
        "put_node_heartbeat": lambda n: index.put_node(nodes[n % count]),
        "bind_and_answer": lambda n: _bind(index, n, nodes[n % count], shapes[n % SHAPES]),
        "release_and_answer": lambda n: _release(index, n, shapes[n % SHAPES]),
        "fits_warm": lambda n: index.fits(shapes[n % SHAPES]),
        "assume": lambda n: index.assume(f"new-{n}", chance.choice(shapes)),
        "all_shapes_after_one_release": lambda n: _answer_all(index, n, shapes),
        "gang_of_8_undone": lambda n: _gang(index, n, shapes[n % SHAPES]),
        "explain_warm": lambda n: index.explain(shapes[n % SHAPES]),
    }
    return {
        "bench": "fit",
        "nodes": count,
        "pods": pods,
        "shapes": SHAPES,
        "read_node_us": 1e6 * read_nodes_seconds / count,
        "read_pod_us": 1e6 * read_pods_seconds / (100 * SHAPES),
        "build_seconds": build_seconds,
        "memory_mib": memory_bytes / 2**20,
        "fits_cold_us": 1e6 * cold_seconds / SHAPES,
        "explain_cold_us": 1e6 * explain_seconds / SHAPES,
        **{name: _percentiles(call, rounds) for name, call in calls.items()},
        **describe_machine(),
    }


def _bindings(nodes: Sequence[Node], pods: int, shapes: Sequence[FitShape]) -> list[Binding]:
    """Return where pods are: GPU pods where they fit, and the rest without GPUs on every node."""
    index = _build(nodes, ())
    plain = {"cpu": 100, "memory": 2**28, "pods": 1}
    found: list[Binding] = []
    for number in range(pods):
        name = nodes[number % len(nodes)].name
        requests: Mapping[str, int] = plain
        if number % 8 == 0:
            shape = shapes[number // 8 % len(shapes)]
            node = index.assume(f"uid-{number}", shape)
            name, requests = (node, dict(shape.requests)) if node is not None else (name, plain)
        found.append((f"uid-{number}", name, requests))
    return found


def _build(nodes: Iterable[Node], bindings: Iterable[Binding]) -> FitIndex:
    index = FitIndex()
    for node in nodes:
        index.put_node(node)
    for uid, name, requests in bindings:
        index.bind(uid, name, requests)
    return index


def _bind(index: FitIndex, number: int, node: Node, shape: FitShape) -> None:
    index.bind(f"bound-{number}", node.name, dict(shape.requests))
    index.fits(shape)


def _release(index: FitIndex, number: int, shape: FitShape) -> None:
    index.release(f"uid-{8 * number}")
    index.fits(shape)


def _answer_all(index: FitIndex, number: int, shapes: Iterable[FitShape]) -> None:
    index.release(f"uid-{8 * number + 20_000}")
    for shape in shapes:
        index.fits(shape)


def _gang(index: FitIndex, number: int, shape: FitShape) -> None:
    with index.trial():
        for member in range(8):
            index.assume(f"gang-{number}-{member}", shape)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _percentiles(call: Callable[[int], object], rounds: int) -> dict[str, float]:
    """Return microseconds of single calls."""
    taken = []
    for number in range(rounds):
        began = time.perf_counter_ns()
        call(number)
        taken.append(time.perf_counter_ns() - began)
    taken.sort()
    return {
        "p50_us": taken[rounds // 2] / 1000,
        "p99_us": taken[rounds * 99 // 100] / 1000,
        "mean_us": sum(taken) / rounds / 1000,
    }


def _raw_node(number: int) -> dict[str, Any]:
    makers = (fleet.whole, fleet.time_sliced, fleet.mig_mixed, fleet.whole)
    raw: dict[str, Any] = makers[number % len(makers)](f"node-{number:05d}")
    raw["metadata"]["labels"]["topology.kubernetes.io/zone"] = f"zone-{number % 3}"
    raw["status"]["allocatable"] |= {"pods": "250", "cpu": "512", "memory": "4Ti"}
    raw["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return raw


def _raw_pod(number: int) -> dict[str, Any]:
    """Return one of the shapes: forms, counts, CPU, and a zone for some."""
    forms: tuple[tuple[str, tuple[int, ...], dict[str, str]], ...] = (
        ("nvidia.com/gpu", (1, 2, 4, 8), {"nvidia.com/gpu.sharing-strategy": "none"}),
        ("nvidia.com/gpu.shared", (1,), {"nvidia.com/gpu.sharing-strategy": "time-slicing"}),
        ("nvidia.com/mig-1g.10gb", (1, 2), {}),
    )
    name, counts, selector = forms[number % len(forms)]
    amounts = {
        "cpu": f"{500 * (1 + number % 5)}m",
        "memory": f"{1 + number % 4}Gi",
        name: str(counts[number % len(counts)]),
    }
    settled = {
        "key": "nvidia.com/mig.config.state",
        "operator": "NotIn",
        "values": ["failed", "pending", "rebooting"],
    }
    zoned = {"topology.kubernetes.io/zone": f"zone-{number % 3}"} if number % 4 == 0 else {}
    required = {"nodeSelectorTerms": [{"matchExpressions": [settled]}]}
    return {
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": amounts, "requests": amounts}}],
            "nodeSelector": {**selector, **zoned},
            "tolerations": _TOLERATIONS,
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            },
        }
    }


def _shape(raw: dict[str, Any]) -> FitShape:
    return FitShape.of(read_requests(raw), read_constraints(raw["spec"]))


if __name__ == "__main__":
    sys.exit(main())
