# SPDX-License-Identifier: Apache-2.0
"""`sluice nodes`: the GPUs of each node, and of each model, as a table or as JSON.

How they are read is not known here. Unknown is `?`, never a number.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TextIO

from rich.console import Group
from rich.table import Table
from rich.text import Text

from policies.admission.charging import gpus
from policies.cluster.capacity import COUNT_LABEL, label_number
from policies.cluster.nodes import Node
from policies.placement.figures import ModelFigures, NodeFigures, by_model
from policies.telemetry.summary import NodeLoad, known_utilisations, mean
from reconciler.cli.fleet import Fleet
from reconciler.cli.loads import Loads
from reconciler.cli.terminal import age

_UNKNOWN: Final = "?"
_COLUMNS: Final = (
    *("NAME", "STATUS", "MODEL", "MODE", "USED", "FREE"),
    *("FRAGMENTED", "UTIL", "MEMORY", "LOAD", "AGE"),
)
_MODEL_COLUMNS: Final = (
    *("MODEL", "NODES", "GPUS", "USED", "FREE", "FRAGMENTED", "STRANDED", "UTIL"),
)
_WIDE: Final = ("DEVICES",)
_MIB_A_GIB: Final = 1024
_SKEW_SECONDS: Final = 5.0
"""By so much clocks may differ."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as it is shown: its figures, whether it takes pods, and what its cards do."""

    figures: NodeFigures
    status: str
    load: NodeLoad


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model of GPU; `utilisation` is from 0 to 1, of the cards of which it is known."""

    name: str
    figures: ModelFigures
    utilisation: float | None


@dataclass(frozen=True, slots=True)
class NodesReport:
    """Everything that is shown. `now` is in Unix seconds."""

    nodes: Sequence[NodeRow]
    models: Sequence[ModelRow]
    now: float


class Order(StrEnum):
    """What nodes are ordered by: their names, or the most of something first."""

    NAME = "name"
    FREE = "free"
    FRAGMENTED = "fragmented"
    LOAD = "load"


_MOST: Final[Mapping[Order, Callable[[NodeRow], float | None]]] = {
    Order.FREE: lambda row: row.figures.capacity_milli - row.figures.allocated_milli,
    Order.FRAGMENTED: lambda row: row.figures.fragmented_milli,
    Order.LOAD: lambda row: row.load.load,
}
"""In milli-GPU, and for load from 0 to 1."""


def nodes_report(fleet: Fleet, loads: Loads, now: float, order: Order = Order.NAME) -> NodesReport:
    """Return what there is to show of a fleet; nodes of which nothing is known come last."""
    figures = fleet.figures()
    known: dict[str, list[float]] = {}
    rows = []
    for each in figures:
        here = fleet.model.occupancy(each.name)
        node = here.node if here is not None else None
        expected = label_number(node.labels, COUNT_LABEL) if node is not None else 0
        telemetry = fleet.nodes.get(each.name)
        load = loads.of(each.name, expected, telemetry.note if telemetry is not None else None)
        rows.append(NodeRow(each, status_of(node), load))
        known.setdefault(each.model, []).extend(known_utilisations(loads.view(each.name)))
    models = [
        ModelRow(name, found, mean(known.get(name, ())))
        for name, found in by_model(figures).items()
    ]
    return NodesReport(_ordered(rows, order), models, now)


def _ordered(rows: Sequence[NodeRow], order: Order) -> Sequence[NodeRow]:
    most = _MOST.get(order)
    if most is None:
        return rows
    known = [(value, row) for row in rows if (value := most(row)) is not None]
    unknown = [row for row in rows if most(row) is None]
    return [*(row for _, row in sorted(known, key=lambda pair: -pair[0])), *unknown]


def nodes_tables(found: NodesReport, *, wide: bool = False, most: int | None = None) -> Group:
    """Return the table of nodes, of no more than `most` if that is given, and that of models."""
    columns = (*_COLUMNS, *_WIDE) if wide else _COLUMNS
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in found.nodes[:most]:
        table.add_row(*_cells(row, found.now, wide=wide))
    models = Table(*_MODEL_COLUMNS, box=None, pad_edge=False, header_style="bold")
    for model in found.models:
        models.add_row(*_model_cells(model))
    rest = len(found.nodes) - len(found.nodes[:most])
    more = (Text(f"and {rest} more nodes"),) if rest else ()
    return Group(table, *more, Text(""), models)


def print_nodes_json(found: NodesReport, stream: TextIO) -> None:
    """Print one object with all nodes and models; what is unknown is null."""
    plain = {
        "nodes": [plain_node(row) for row in found.nodes],
        "models": [_plain_model(row) for row in found.models],
    }
    json.dump(plain, stream, indent=2)
    stream.write("\n")


def plain_node(row: NodeRow) -> dict[str, object]:
    """Return a node as JSON: milli-GPU, MiB, ratios of 1 and Unix seconds."""
    figures, load = row.figures, row.load
    return {
        "name": figures.name,
        "status": row.status,
        "model": figures.model,
        "devices": [
            {
                "resource": each.resource,
                "mode": each.mode,
                "offered": each.offered,
                "used": each.used,
                "free": each.free,
            }
            for each in figures.devices
        ],
        "capacityMilli": figures.capacity_milli,
        "allocatedMilli": figures.allocated_milli,
        "fragmentedMilli": _rounded(figures.fragmented_milli),
        "strandedMemoryMib": figures.stranded_mib,
        "utilisation": load.utilisation,
        "memoryUsedMib": _rounded(load.memory_used_mib),
        "memoryTotalMib": _rounded(load.memory_total_mib),
        "load": load.load,
        "measuredAt": load.time,
    }


def _plain_model(row: ModelRow) -> dict[str, object]:
    figures = row.figures
    return {
        "model": row.name,
        "nodes": figures.nodes,
        "capacityMilli": figures.capacity_milli,
        "allocatedMilli": figures.allocated_milli,
        "fragmentedMilli": _rounded(figures.fragmented_milli),
        "strandedMemoryMib": figures.stranded_mib,
        "utilisation": row.utilisation,
    }


def _cells(row: NodeRow, now: float, *, wide: bool) -> Iterable[str]:
    figures, load = row.figures, row.load
    yield figures.name
    yield row.status
    yield figures.model
    yield ",".join(dict.fromkeys(str(each.mode or _UNKNOWN) for each in figures.devices)) or "-"
    yield str(sum(each.used for each in figures.devices))
    yield str(sum(each.free for each in figures.devices))
    yield _gpus(figures.fragmented_milli)
    yield _percent(load.utilisation)
    yield _memory(load)
    yield _UNKNOWN if load.load is None else f"{load.load:.2f}"
    yield _age(load.time, now)
    if wide:
        yield ", ".join(f"{each.resource} {each.used}/{each.offered}" for each in figures.devices)


def _model_cells(row: ModelRow) -> Iterable[str]:
    figures = row.figures
    yield row.name
    yield str(figures.nodes)
    yield gpus(figures.capacity_milli)
    yield gpus(figures.allocated_milli)
    yield gpus(figures.capacity_milli - figures.allocated_milli)
    yield _gpus(figures.fragmented_milli)
    yield f"{_gib(figures.stranded_mib)}Gi"
    yield _percent(row.utilisation)


def status_of(node: Node | None) -> str:
    """Return what `kubectl get nodes` calls a node's state."""
    if node is None:
        return _UNKNOWN
    ready = "Ready" if node.ready else "NotReady"
    return f"{ready},SchedulingDisabled" if node.unschedulable else ready


def _gpus(milli: float | None) -> str:
    return _UNKNOWN if milli is None else gpus(round(milli))


def _percent(ratio: float | None) -> str:
    return _UNKNOWN if ratio is None else f"{ratio:.0%}"


def _age(time: float | None, now: float) -> str:
    """Return how old a value is; one of a time to come is of a clock that is wrong."""
    if time is None or time > now + _SKEW_SECONDS:
        return _UNKNOWN
    return age(int(now - time))


def _memory(load: NodeLoad) -> str:
    used, total = load.memory_used_mib, load.memory_total_mib
    if used is None or not total:
        return _UNKNOWN
    return f"{_gib(used)} of {_gib(total)}Gi"


def _gib(mib: float) -> str:
    return f"{mib / _MIB_A_GIB:.0f}"


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def changed_nodes(
    before: Mapping[str, Mapping[str, object]], found: NodesReport
) -> dict[str, dict[str, object]]:
    """Return the nodes, as JSON, that differ from what was last shown of them."""
    plain = {row.figures.name: plain_node(row) for row in found.nodes}
    return {name: node for name, node in plain.items() if before.get(name) != node}
