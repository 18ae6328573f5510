# SPDX-License-Identifier: Apache-2.0
"""`make bench-extender`: how long kube-scheduler waits for filter and prioritize, over TLS.

One scheduling cycle asks one after the other, over one connection, as the scheduler does. All 1,213
nodes are offered by name, though the scheduler would send 41 % of them; whole ones are offered as
it would, others in each cycle. Meanwhile pods are bound and end, telemetry of all nodes comes, and
typical pods are learnt. *bare* is the same server that answers as many bytes without a thought,
before and after: what a busy machine does to it, it does to the extender. The processor's time is
told too, which is the same on a busy one. Ends with one line of JSON; fails if figures are above
what is allowed.
"""

import argparse
import http.client
import json
import os
import random
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from certs.files import ensure
from certs.names import LOOPBACK
from tests.bench.extender_load import NODES, PODS, Json, new_pod, raw_nodes
from tests.bench.extender_nodes import whole_nodes
from tests.bench.machine import describe_machine
from tests.bench.processes import BenchError, Server, cores, free_port, started
from tests.bench.replay import sampled

_WARM: Final = 200
_COMPARED: Final = ("p50_ms", "p99_ms", "max_ms", "cpu_ms")


class Scheduler:
    """Asks as kube-scheduler does."""

    def __init__(self, port: int, authority: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, verb: str, body: bytes) -> Any:
        """Return the answer of a verb."""
        self._connection.request(
            "POST", f"/scheduler/{verb}", body, {"Content-Type": "application/json"}
        )
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != http.client.OK:
            raise BenchError(f"{verb}: {response.status} {answer!r}")
        return answer


def cycle(scheduler: Scheduler, pod: Json, nodes: list[Json], *, whole: bool) -> tuple[float, int]:
    """Ask filter and prioritize for one pod; return the milliseconds waited, and nodes passed.

    What the scheduler itself does with questions and answers is not counted.
    """
    offered: Json = {"Nodes": None, "NodeNames": None}
    if whole:
        offered["Nodes"] = {"metadata": {}, "items": nodes}
    else:
        offered["NodeNames"] = [node["metadata"]["name"] for node in nodes]
    question = orjson.dumps({"Pod": pod, **offered})
    began = time.perf_counter()
    raw = scheduler.ask("filter", question)
    waited = time.perf_counter() - began
    answer = orjson.loads(raw)
    passed = answer["Nodes"]["items"] if whole else answer["NodeNames"]
    if len(passed) > 1:
        body = orjson.dumps(
            {"Pod": pod, "Nodes": answer["Nodes"], "NodeNames": answer["NodeNames"]}
        )
        began = time.perf_counter()
        scores = scheduler.ask("prioritize", body)
        waited += time.perf_counter() - began
        if sum(score["Score"] == 10 for score in orjson.loads(scores)) != 1:
            raise BenchError("not exactly one node was given 10")
    return 1000 * waited, len(passed)


def measure(
    server: Server, authority: Path, count: int, *, whole: bool = False
) -> dict[str, float]:
    """Return the percentiles of so many cycles after some to warm up."""
    with closing(Scheduler(server.port, authority)) as scheduler:
        return _cycles(server, scheduler, count, whole=whole)


def _cycles(server: Server, scheduler: Scheduler, count: int, *, whole: bool) -> dict[str, float]:
    random_ = random.Random(2)  # noqa: S311 - the same pods each time
    nodes = whole_nodes(NODES) if whole else raw_nodes(NODES)
    waits, passes, spent, offered = [], [], 0.0, nodes
    warm = _WARM if not whole else 10
    for number in range(count + warm):
        if number == warm:
            spent = server.cpu_seconds()
        pod = new_pod(random_, f"{'whole' if whole else 'names'}-{number}")
        offered = random_.sample(nodes, sampled(NODES)) if whole else nodes
        wait, passed = cycle(scheduler, pod, offered, whole=whole)
        if number >= warm:
            waits.append(wait)
            passes.append(passed)
    cuts = statistics.quantiles(waits, n=1000, method="inclusive")
    return {
        "p50_ms": round(cuts[499], 2),
        "p99_ms": round(cuts[989], 2),
        "max_ms": round(max(waits), 2),
        "cpu_ms": round(1000 * (server.cpu_seconds() - spent) / count, 2),
        "offered": len(offered),
        "passed_mean": round(statistics.mean(passes)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a line of JSON, and return 1 if it is above what is allowed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.extender", description=__doc__)
    parser.add_argument("--cycles", type=int, default=3000)
    parser.add_argument("--bare-cycles", type=int, default=500)
    parser.add_argument("--whole-cycles", type=int, default=60)
    parser.add_argument("--allow-p50-ms", type=float, default=3.0)
    parser.add_argument("--allow-p99-ms", type=float, default=20.0)
    parser.add_argument("--allow-whole-p99-ms", type=float, default=150.0)
    parser.add_argument("--allow-event-p99-ms", type=float, default=1.0)
    parser.add_argument("--allow-rss-mib", type=float, default=300.0)
    options = parser.parse_args(arguments)
    machine = describe_machine()
    available = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            found = _measure(Path(temporary), options)
        except BenchError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        finally:
            os.sched_setaffinity(0, available)
    print(json.dumps({**found, **machine}))  # noqa: T201 - what it is for
    within = (
        found["names"]["p50_ms"] <= options.allow_p50_ms
        and found["names"]["p99_ms"] <= options.allow_p99_ms
        and found["whole"]["p99_ms"] <= options.allow_whole_p99_ms
        and found["event_cpu_ms"]["p99"] <= options.allow_event_p99_ms
        and found["rss_mib"] <= options.allow_rss_mib
    )
    return int(not within)


def _measure(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    certificates, report = directory / "certificates", directory / "spent.json"
    ensure(certificates, LOOPBACK, datetime.now(UTC))
    mine, theirs = cores()
    os.sched_setaffinity(0, {mine})
    authority, port, bare_port = certificates / "ca.crt", free_port(), free_port()
    program = ("-m", "tests.bench.extender_server", "--certificates", certificates, "--port")
    with (
        started("bare", theirs, bare_port, *program, bare_port) as bare,
        started("extender", theirs, port, *program, port, "--report", report) as server,
    ):
        before = measure(bare, authority, options.bare_cycles)
        names = measure(server, authority, options.cycles)
        after = measure(bare, authority, options.bare_cycles)
        rss = _rss_mib(server.process.pid)
    spent = orjson.loads(report.read_bytes())
    with started("extender", theirs, port, *program, port, "--report", report) as server:
        whole = measure(server, authority, options.whole_cycles, whole=True)
    return {
        "bench": "extender",
        "nodes": NODES,
        "pods": PODS,
        "names": names,
        "bare": {key: round((before[key] + after[key]) / 2, 2) for key in _COMPARED},
        "filter_cpu_ms": _percentiles(spent["filter"]),
        "prioritize_cpu_ms": _percentiles(spent["prioritize"]),
        "event_cpu_ms": _percentiles(spent["event"]),
        "whole": whole,
        "rss_mib": rss,
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return those of what came when most was known already."""
    values = values[_WARM // 2 :]
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {
        "p50": round(cuts[49], 3),
        "p99": round(cuts[98], 3),
        "max": round(max(values), 3),
        "mean": round(statistics.fmean(values), 3),
    }


def _rss_mib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    sys.exit(main())
