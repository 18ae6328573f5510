# SPDX-License-Identifier: Apache-2.0
"""How much of a cluster's GPUs can be given out before pods no longer fit, by who scores nodes.

Replays traces through Sluice's scoring code under kube-scheduler's own rules, until all GPUs have
been asked for. `python -m tests.bench.placement --openb DIRECTORY` (or SLUICE_OPENB_DIR) replays
the four openb workloads; without it, a made-up trace. Ends with one line of JSON; exit code 1
where less was allocated than must be.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.table import Table

from policies.placement.rooms import Picking
from tests.bench.contenders import AnyNode, BestFit, Learning, OnlyGpuPods, Sluice
from tests.bench.machine import describe_machine
from tests.bench.openb import WORKLOADS, Trace, TraceError, make_trace, read_trace
from tests.bench.picture import Panel, draw
from tests.bench.replay import Policy, replay

_MADE: Final = "synthetic"
_MADE_NODES: Final = 300
_MADE_PODS: Final = 3000

LEAST: Final[Mapping[str, float]] = {
    "default": 94.0,
    "gpushare100": 86.0,
    "multigpu50": 96.5,
    "gpuspec33": 87.0,
    _MADE: 86.2,
}
"""Percent that Sluice must allocate of what plugins that pack hand out, mean of all seeds."""

_Make: TypeAlias = Callable[[Trace, random.Random], Policy]

COLUMNS: Final[Mapping[str, tuple[_Make, Picking]]] = {
    "random": (lambda _trace, _chance: AnyNode(), Picking.PACKED),
    "best-fit": (BestFit, Picking.PACKED),
    "Sluice": (Sluice, Picking.PACKED),
    "Sluice, learning": (Learning, Picking.PACKED),
    "Sluice, GPU pods only": (OnlyGpuPods, Picking.PACKED),
    "Sluice, other pods elsewhere": (Sluice, Picking.PACKED),
    "best-fit, cards spread": (BestFit, Picking.SPREAD),
    "Sluice, cards spread": (Sluice, Picking.SPREAD),
    "Sluice, learning, cards spread": (Learning, Picking.SPREAD),
}
_ELSEWHERE: Final = "Sluice, other pods elsewhere"
"""As where a taint keeps pods without GPUs off these nodes: they do not arrive."""

_DRAWN: Final = ("Sluice", "best-fit", "random")


@dataclass(frozen=True, slots=True)
class Result:
    """Of one workload and column: means over seeds, the range at full demand, CPU for a pod."""

    percent: tuple[float, ...]
    lowest: float
    highest: float
    pod_ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, print tables and a line of JSON; draw if told to."""
    options = _options(arguments)
    console = Console(stderr=True)
    try:
        traces = list(_traces(options))
    except TraceError as error:
        console.print(f"[red]{error}", highlight=False)
        return 2
    found = {trace.name: _measure(trace, options, console) for trace in traces}
    for trace in traces:
        console.print(_table(trace, found[trace.name]))
    short = {
        name: results["Sluice"].percent[100]
        for name, results in found.items()
        if "Sluice" in results and results["Sluice"].percent[100] < LEAST[name]
    }
    if options.picture is not None:
        options.picture.write_text(_drawn(traces, found), encoding="utf-8")
    figures = {name: _figures(results) for name, results in found.items()}
    line = {"bench": "placement", "seeds": options.seeds, "workloads": figures, "short": short}
    sys.stdout.write(json.dumps(line | describe_machine()) + "\n")
    return 1 if short else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.placement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    given = os.environ.get("SLUICE_OPENB_DIR")
    parser.add_argument("--openb", type=Path, default=given and Path(given), metavar="DIRECTORY")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="default: all four")
    parser.add_argument("--column", action="append", choices=COLUMNS, help="default: all")
    parser.add_argument("--seeds", type=int, default=5, help="orders of arrival")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="write an SVG file")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error("--seeds must be 1 or more")
    if options.picture is not None and not {*_DRAWN} <= {*(options.column or COLUMNS)}:
        parser.error(f"--picture needs the columns {', '.join(_DRAWN)}")
    return options


def _traces(options: argparse.Namespace) -> Iterator[Trace]:
    if options.openb is None:
        yield make_trace(_MADE_NODES, _MADE_PODS)
        return
    for workload in options.workload or WORKLOADS:
        yield read_trace(options.openb, workload)


def _measure(trace: Trace, options: argparse.Namespace, console: Console) -> Mapping[str, Result]:
    found = {}
    for name in options.column or COLUMNS:
        make, picking = COLUMNS[name]
        asked = trace
        if name == _ELSEWHERE:
            asked = replace(trace, asks=tuple(ask for ask in trace.asks if ask.devices))
        began, pods, runs = time.process_time(), 0, []
        for seed in range(options.seeds):
            chance = random.Random(seed + 1)  # noqa: S311 - the same ties in every run
            allocation = replay(asked, make(asked, chance), picking, seed)
            pods += allocation.pods
            runs.append(allocation.percent)
        ends = [percent[100] for percent in runs]
        found[name] = Result(
            percent=tuple(statistics.fmean(at) for at in zip(*runs, strict=True)),
            lowest=min(ends),
            highest=max(ends),
            pod_ms=1000 * (time.process_time() - began) / pods,
        )
        console.print(f"{trace.name}, {name}: {found[name].percent[100]:.2f}", highlight=False)
    return found


def _table(trace: Trace, results: Mapping[str, Result]) -> Table:
    table = Table(title=f"{trace.name}: % of GPUs allocated", title_justify="left")
    table.add_column("who scores")
    for title in ("90 % asked", "100 % asked", "lowest", "highest", "CPU ms a pod"):
        table.add_column(title, justify="right")
    for name, result in results.items():
        ends = (result.percent[90], result.percent[100], result.lowest, result.highest)
        table.add_row(name, *[f"{value:.2f}" for value in ends], f"{result.pod_ms:.2f}")
    for name in ("Random", "BestFit", "FGD"):
        if name in trace.published:
            at = trace.published[name]
            table.add_row(f"published {name}", f"{at[90]:.2f}", f"{at[100]:.2f}", "", "", "")
    return table


def _figures(results: Mapping[str, Result]) -> Mapping[str, Any]:
    return {
        name: {
            "at_90": round(result.percent[90], 2),
            "at_100": round(result.percent[100], 2),
            "range": [round(result.lowest, 2), round(result.highest, 2)],
            "pod_ms": round(result.pod_ms, 3),
        }
        for name, result in results.items()
    }


def _drawn(traces: Sequence[Trace], found: Mapping[str, Mapping[str, Result]]) -> str:
    panels = [
        Panel(
            title=trace.name,
            lines={name: found[trace.name][name].percent for name in _DRAWN},
            points=trace.published.get("FGD", {}),
        )
        for trace in traces
    ]
    return draw(panels, "published FGD")


if __name__ == "__main__":
    sys.exit(main())
