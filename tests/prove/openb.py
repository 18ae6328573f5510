# SPDX-License-Identifier: Apache-2.0
"""Replays a production trace in simulated time: LS pods as guaranteed, BE as borrowing tenants.

The trace is Alibaba's openb of 2023 (Weng et al., USENIX ATC 2023), which is not part of this
project: give the directory with its CSV files. After each event the observer has judged every
release, and every eviction is held against the laws of reclaim. Ends with one line of JSON.
`python -m tests.prove.openb DIRECTORY [--pods 8152] [--percent 70]`
"""

import argparse
import csv
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from tests.controlplane import nodes as fleet
from tests.prove.findings import Breach, Finding
from tests.prove.replay import Replay, TracePod
from tests.prove.scene import SHARED, WHOLE, document, tenant_document
from tests.prove.simulation import Simulation
from tests.prove.world import Json, Tenant, World

_NODES: Final = "openb_node_list_gpu_node.csv"
_PODS: Final = "openb_pod_list_default.csv"
_REPLICAS: Final = 10
_SHOWN: Final = 20
_GUARANTEED: Final = ("ls-00", "ls-01", "ls-02", "ls-03")
_BORROWING: Final = ("be-00", "be-01")
_GUARANTEED_SHARE: Final = Fraction(9, 10)
_COHORT: Final = "main"
_PRODUCT: Final = "NVIDIA-H100-80GB-HBM3"


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node of the trace and its GPUs."""

    name: str
    gpus: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, print what was found and a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.prove.openb", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pods", type=int, default=8152, help="only so many, the earliest")
    parser.add_argument(
        "--percent",
        type=int,
        default=70,
        help="GPUs of the cluster in percent of what the pods ask for at most at once",
    )
    options = parser.parse_args(arguments)
    try:
        nodes, pods = read_nodes(options.directory / _NODES), read_pods(options.directory / _PODS)
    except (OSError, KeyError, ValueError) as error:
        sys.stderr.write(f"no trace in {options.directory}: {error}\n")
        return 2
    begun = time.monotonic()
    pods = pods[: options.pods]
    replay = make_replay(tight(nodes, pods, options.percent), pods)
    replay.run(_report)
    found = replay.findings()
    for finding in found[:_SHOWN]:
        sys.stderr.write(f"{finding.kind}: {finding.text}\n")
    sys.stdout.write(json.dumps(figures(replay, found, time.monotonic() - begun)) + "\n")
    return 1 if found else 0


def figures(replay: Replay, found: Sequence[Finding], seconds: float) -> dict[str, object]:
    """Return what the replay came to."""
    observer = replay.cluster.observer
    waits = {
        kind: [r.waited_seconds for r in observer.releases.values() if r.tenant.startswith(kind)]
        for kind in ("ls", "be")
    }
    owed = replay.owed.of("ls")
    return {
        "prove": "openb",
        "breaches": len(found),
        "pods": replay.created,
        "released": len(observer.releases),
        "never_released": len(observer.waiting()),
        "evictions": len(replay.evicted),
        "events": replay.events,
        "most_used_gpus": float(replay.most_used / 1000),
        "gpus": float(replay.cluster.world.cost(replay.cluster.world.devices) / 1000),
        "wait_s": {
            kind: {
                "p50": round(statistics.median(seconds_of or [0.0])),
                "max": round(max(seconds_of or [0])),
            }
            for kind, seconds_of in waits.items()
        },
        "owed_wait_s": {
            "p50": _quantile(owed, 50),
            "p95": _quantile(owed, 95),
            "p99": _quantile(owed, 99),
            "max": owed[-1] if owed else 0,
            "sum": sum(owed),
        },
        "seconds": round(seconds),
    }


def _quantile(ordered: Sequence[int], percent: int) -> int:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0


def read_nodes(path: Path) -> list[TraceNode]:
    """Return the nodes of a file. Raises OSError, KeyError, ValueError."""
    with path.open(encoding="utf-8", newline="") as file:
        return [TraceNode(row["sn"], int(row["gpu"])) for row in csv.DictReader(file)]


def read_pods(path: Path) -> list[TracePod]:
    """Return the pods of a file that take GPUs, by creation. Raises OSError, KeyError, ValueError.

    A part of a GPU is so many tenths, rounded up.
    """
    pods = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            count, milli = int(row["num_gpu"]), int(row["gpu_milli"])
            if not count:
                continue
            is_part = count == 1 and milli < 1000
            asks = (SHARED, -(-milli * _REPLICAS // 1000)) if is_part else (WHOLE, count)
            tenants = _BORROWING if row["qos"] == "BE" else _GUARANTEED
            begin, end = int(row["creation_time"]), int(row["deletion_time"] or 0)
            pod = TracePod(begin, max(1, end - begin), tenants[number % len(tenants)], *asks)
            pods.append(pod)
    return sorted(pods, key=lambda pod: pod.created)


def tight(nodes: Sequence[TraceNode], pods: Sequence[TracePod], percent: int) -> list[TraceNode]:
    """Return so many nodes, the largest first, that the pods compete.

    The trace is a sample: all its nodes could hold all its pods at any time many times over.
    """
    changes = [(pod.created, _gpus(pod)) for pod in pods]
    changes += [(pod.created + pod.seconds, -_gpus(pod)) for pod in pods]
    most = max(itertools.accumulate(gpus for _, gpus in sorted(changes)), default=Fraction(0))
    wanted, found = most * percent / 100, list[TraceNode]()
    for node in sorted(nodes, key=lambda node: -node.gpus):
        if sum(each.gpus for each in found) >= wanted:
            break
        found.append(node)
    return found


def _gpus(pod: TracePod) -> Fraction:
    return Fraction(pod.count, _REPLICAS if pod.resource == SHARED else 1)


def make_replay(nodes: Sequence[TraceNode], pods: Sequence[TracePod]) -> Replay:
    """Return a replay on as many of these nodes in tenths as the pods' demand for parts is."""
    made = list(_raw_nodes(nodes, _share_of_parts(pods)))
    devices = {
        name: sum(int(node["status"]["allocatable"].get(name, 0)) for node in made)
        for name in (SHARED, WHOLE)
    }
    costs = {SHARED: Fraction(1000, _REPLICAS), WHOLE: Fraction(1000)}
    gpus = sum((costs[name] * count for name, count in devices.items()), Fraction(0))
    world = World(tuple(_tenants(gpus)), costs, devices)
    return Replay(Simulation(world, made, said=list(_documents(world))), pods)


def _share_of_parts(pods: Iterable[TracePod]) -> Fraction:
    tenths = {SHARED: 0, WHOLE: 0}
    for pod in pods:
        tenths[pod.resource] += pod.count * (1 if pod.resource == SHARED else _REPLICAS)
    return Fraction(tenths[SHARED], max(1, sum(tenths.values())))


def _raw_nodes(nodes: Sequence[TraceNode], share: Fraction) -> Iterator[Json]:
    parts = total = 0
    for node in nodes:
        is_part = parts <= share * total
        total += node.gpus
        parts += node.gpus if is_part else 0
        if is_part:
            yield fleet.time_sliced(node.name, count=node.gpus, replicas=_REPLICAS)
        else:
            yield fleet.whole(node.name, count=node.gpus)


def _tenants(gpus: Fraction) -> Iterator[Tenant]:
    """Yield tenants with guarantees of whole GPUs; any may use all there is."""
    each = gpus * _GUARANTEED_SHARE / len(_GUARANTEED) // 1000 * 1000
    for name in _GUARANTEED:
        yield Tenant(name, frozenset({name}), Fraction(each), gpus, _COHORT)
    for name in _BORROWING:
        yield Tenant(name, frozenset({name}), Fraction(0), gpus, _COHORT)


def _documents(world: World) -> Iterator[Json]:
    for tenant in world.tenants:
        yield tenant_document(tenant)
    products = {"products": [_PRODUCT]}
    tenth = {"mode": "TimeSlice", "replicas": _REPLICAS, "allowMultiple": True, **products}
    yield document("SharingProfile", "tenth", tenth)
    yield document("SharingProfile", "whole", {"mode": "Exclusive", **products})
    yield document("GPUPolicy", "whole-for-all", {"order": 100, "rewrite": {"profile": "whole"}})
    yield document("ReclaimPolicy", "main", {"cohorts": [_COHORT], "notice": "60s"})


def _report(replay: Replay) -> None:
    observer = replay.cluster.observer
    breaches = sum(1 for each in observer.findings if isinstance(each.kind, Breach))
    sys.stderr.write(
        f"{replay.events} events: {replay.created} made, {len(observer.releases)} released, "
        f"{len(replay.evicted)} evicted, {breaches} breaches\n"
    )
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
