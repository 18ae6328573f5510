# SPDX-License-Identifier: Apache-2.0
"""`sluice nodes` shows what nodes give out, what is left, and what their cards do."""

import asyncio
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

import sluice
from policies.telemetry.freshness import Freshness
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample, Subject
from reconciler.cli.commands import placement
from reconciler.cli.fleet import Fleet
from reconciler.cli.loads import Loads, telemetry_config
from reconciler.cli.nodes import NodesReport, Order, nodes_report, nodes_tables, print_nodes_json
from reconciler.cli.nodes_live import Lines, LiveScreen, Pages
from reconciler.cli.terminal import BAD_INPUT
from reconciler.telemetry.annotations import Annotations
from reconciler.telemetry.store import TelemetryStore
from tests.controlplane import nodes
from tests.support.builders import GPU, SHARED
from tests.support.fleets import Json, example, fleet, pod, ready, write
from tests.support.telemetry import LIMITS

NOW = 1_800_000_000.0

TABLE = """\
NAME         STATUS                    MODEL                    MODE       USED  FREE  FRAGMENTED  UTIL  MEMORY       LOAD  AGE
a100-whole   Ready,SchedulingDisabled  NVIDIA-A100-SXM4-80GB    Exclusive  1     7     4.375       ?     ?            ?     ?
h100-mig     Ready                     NVIDIA-H100-80GB-HBM3    MIG        3     37    5.609       ?     ?            ?     ?
h100-shared  Ready                     NVIDIA-H100-80GB-HBM3    TimeSlice  2     30    5.625       ?     66 of 637Gi  ?     8s
h100-whole   Ready                     NVIDIA-H100-80GB-HBM3    Exclusive  6     2     1.5         ?     ?            ?     ?
mi300x       NotReady                  AMD_Instinct_MI300X_OAM  Exclusive  0     8     8           ?     ?            ?     ?

MODEL                    NODES  GPUS   USED   FREE    FRAGMENTED  STRANDED  UTIL
AMD_Instinct_MI300X_OAM  1      8      0      8       8           0Gi       ?
NVIDIA-A100-SXM4-80GB    1      8      1      7       4.375       0Gi       ?
NVIDIA-H100-80GB-HBM3    3      23.25  6.875  16.375  12.734      98Gi      ?
"""  # noqa: E501 - as wide as it is


def loads_of(found: Fleet, now: float = NOW, *samples: Sample) -> Loads:
    """Return the loads that annotations tell, and these samples."""
    store = TelemetryStore(lambda _: LIMITS, None, Freshness(300.0), lambda: now)
    asyncio.run(Annotations(found.nodes.values).read(found.nodes.keys(), store.put))
    store.put(samples)
    return Loads(telemetry_config({}, ""), store.node)


def report(items: Iterable[Json], now: float = NOW, *samples: Sample) -> NodesReport:
    found = fleet(items)
    return nodes_report(found, loads_of(found, now, *samples), now)


def printed(found: NodesReport, *, wide: bool = False, most: int | None = None) -> str:
    stream = io.StringIO()
    console = Console(file=stream, soft_wrap=True, width=250)
    console.print(nodes_tables(found, wide=wide, most=most))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def plain(found: NodesReport) -> dict[str, Any]:
    stream = io.StringIO()
    print_nodes_json(found, stream)
    read: dict[str, Any] = json.loads(stream.getvalue())
    return read


def busy(node: str, card: int, value: float, age: float = 0.0) -> Sample:
    return Sample(Quantity.UTILISATION, Subject(node, f"GPU-{card}", card), value, NOW - age)


def memory(node: str, card: int, used: float, total: float) -> tuple[Sample, ...]:
    subject = Subject(node, f"GPU-{card}", card)
    return (
        Sample(Quantity.MEMORY_USED, subject, used, NOW),
        Sample(Quantity.MEMORY_TOTAL, subject, total, NOW),
    )


def test_the_table_shows_every_node_with_gpus_and_every_model() -> None:
    assert printed(report(example(), NOW + 8)) == TABLE


def test_wide_tells_devices_apart() -> None:
    lines = printed(report(example()), wide=True).splitlines()
    assert lines[0].endswith("DEVICES")
    assert lines[2].endswith(
        "nvidia.com/mig-1g.10gb 3/30, nvidia.com/mig-2g.20gb 0/6, nvidia.com/mig-3g.40gb 0/4"
    )


def test_what_does_not_fit_the_screen_is_counted() -> None:
    lines = printed(report(example()), most=2).splitlines()
    assert lines[3] == "and 3 more nodes"


def test_a_node_is_as_loaded_as_all_of_its_cards() -> None:
    items = [ready(nodes.time_sliced("a", count=2))]
    samples = [busy("a", 0, 0.9), *memory("a", 0, 40_000, 80_000)]
    (row,) = report(items, NOW, *samples).nodes
    assert (row.load.utilisation, row.load.load) == (None, None)

    samples += [busy("a", 1, 0.5, age=7), *memory("a", 1, 20_000, 80_000)]
    found = report(items, NOW, *samples)
    line = printed(found).splitlines()[1].split()
    assert line[-6:] == ["70%", "59", "of", "156Gi", "0.60", "7s"]
    assert plain(found)["nodes"][0]["load"] == pytest.approx(0.6025)
    assert plain(found)["models"][0]["utilisation"] == pytest.approx(0.7)


def test_old_values_are_unknown_but_for_their_age() -> None:
    stale = LIMITS.max_age_seconds + 300
    found = report(example(), NOW + 3600)
    (row,) = (row for row in found.nodes if row.figures.name == "h100-shared")
    assert (row.load.memory_used_mib, row.load.time) == (None, NOW)
    assert printed(found).splitlines()[3].split()[-4:] == ["?", "?", "?", "60m"]
    (alone,) = report([ready(nodes.whole("a", count=1))], NOW, busy("a", 0, 0.9, stale)).nodes
    assert alone.load.utilisation is None


def test_an_annotation_of_a_time_to_come_has_no_age() -> None:
    found = report(example(), NOW - 3600)
    assert printed(found).splitlines()[3].split()[-1] == "?"


def test_without_pods_nothing_is_typical_and_fragmentation_is_unknown() -> None:
    found = report([ready(nodes.whole("a"))])
    assert found.nodes[0].figures.fragmented_milli is None
    assert plain(found)["models"][0]["fragmentedMilli"] is None
    assert printed(found).splitlines()[1].split()[6] == "?"


def test_json_is_in_units_and_unknown_is_null() -> None:
    found = plain(report(example()))
    shared = found["nodes"][2]
    assert shared["name"] == "h100-shared"
    assert (shared["capacityMilli"], shared["allocatedMilli"]) == (8000, 500)
    assert shared["devices"] == [
        {"resource": SHARED, "mode": "TimeSlice", "offered": 32, "used": 2, "free": 30}
    ]
    assert (shared["memoryUsedMib"], shared["utilisation"]) == (67584, None)
    assert shared["measuredAt"] == NOW


def test_a_node_that_was_cut_anew_has_more_used_than_offered_and_nothing_free() -> None:
    items = [ready(nodes.whole("a", count=1)), pod("p", "a", {GPU: 2})]
    (row,) = report(items).nodes
    (device,) = row.figures.devices
    assert (device.offered, device.used, device.free) == (1, 2, 0)
    assert row.figures.allocated_milli == row.figures.capacity_milli == 1000


def test_watching_as_json_tells_each_node_once_and_again_when_it_changes() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    for items in (example(), example(), [*example()[1:], pod("more", "h100-whole", {GPU: 1})]):
        lines.show(report(items), "")
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [each["name"] for each in told[:5]] == [
        *("a100-whole", "h100-mig", "h100-shared", "h100-whole", "mi300x")
    ]
    again = {each["name"]: each for each in told[5:]}
    assert again["a100-whole"] == {"name": "a100-whole", "status": "Gone"}
    assert again["h100-whole"]["devices"][0]["used"] == 7


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (Order.FREE, ["mi300x", "h100-shared", "a100-whole", "h100-mig", "h100-whole"]),
        (Order.FRAGMENTED, ["mi300x", "h100-shared", "h100-mig", "a100-whole", "h100-whole"]),
        (Order.LOAD, ["h100-whole", "a100-whole", "h100-mig", "h100-shared", "mi300x"]),
    ],
)
def test_nodes_come_in_the_order_that_is_asked_and_unknown_ones_last(
    order: Order, names: list[str]
) -> None:
    found = fleet(example())
    known = [busy("h100-whole", card, 0.5) for card in range(8)]
    known += [sample for card in range(8) for sample in memory("h100-whole", card, 1, 80_000)]
    rows = nodes_report(found, loads_of(found, NOW, *known), NOW, order).nodes
    assert [row.figures.name for row in rows] == names


def test_every_order_can_be_asked_for() -> None:
    (sort,) = (each for each in placement.nodes.params if each.name == "sort")
    assert isinstance(sort.type, click.Choice)
    assert list(sort.type.choices) == list(Order)


def test_a_terminal_shows_as_many_nodes_as_it_has_room_for() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=150, height=12, color_system=None)
    screen = LiveScreen(console, wide=False)
    with screen.live:
        screen.show(report(example()), "the cluster has not been heard of for 31 s")
    shown = stream.getvalue()
    assert "and 2 more nodes" in shown
    assert "h100-shared" in shown
    assert "h100-whole" not in shown
    assert "has not been heard of for 31 s" in shown


def test_watching_without_a_terminal_prints_pages_that_differ() -> None:
    pages: list[object] = []
    shown = Pages(pages.append, wide=False)
    for stale in ("", "", "the cluster has not been heard of for 31 s"):
        shown.show(report(example()), stale)
    assert len(pages) == 2


def test_a_file_needs_no_cluster(tmp_path: Path) -> None:
    path = write(example(), tmp_path / "dump.json")
    result = CliRunner().invoke(sluice.main, ["nodes", "-f", str(path)])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()[1:6]] == [
        *("a100-whole", "h100-mig", "h100-shared", "h100-whole", "mi300x")
    ]
    piped = CliRunner().invoke(sluice.main, ["nodes", "-f", "-"], input=path.read_bytes())
    assert piped.output == result.output


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("{}", [], "holds no Node"),
        ("[1]", [], "holds no Node"),
        ("kind: Node", [], "is no JSON"),
        ('{"items": "x"}', [], "holds no Node"),
        ("{}", ["--selector", "a=b"], "--selector is for a cluster"),
        ("{}", ["--watch"], "--watch follows a cluster"),
        ("{}", ["--prometheus", "ftp://x"], "ftp://x"),
        (None, [], "no such file"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    tmp_path: Path, content: str | None, arguments: list[str], said: str
) -> None:
    path = tmp_path / "dump.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    result = CliRunner().invoke(sluice.main, ["nodes", "-f", str(path), *arguments])
    assert result.exit_code == BAD_INPUT
    assert said in result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1


def test_odd_objects_stop_nothing(tmp_path: Path) -> None:
    odd: list[Any] = [
        *({"kind": "Pod"}, {"kind": "Pod", "metadata": [], "spec": {"nodeName": 3}}),
        *({"kind": "Node"}, {"kind": "Node", "metadata": {"name": "x", "labels": 3}}),
        pod("lost", "nowhere", {GPU: 1}),
    ]
    path = write([*example(), *odd], tmp_path / "dump.json")
    result = CliRunner().invoke(sluice.main, ["nodes", "-f", str(path), "-o", "json"])
    assert result.exit_code == 0
    assert len(json.loads(result.output)["nodes"]) == 5
