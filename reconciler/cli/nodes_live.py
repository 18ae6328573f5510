# SPDX-License-Identifier: Apache-2.0
"""`sluice nodes --watch`: follows nodes, pods and loads, and shows them again and again."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TextIO

import orjson
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from policies.placement.figures import FiguresTable
from policies.placement.model import Model
from policies.placement.pods import PodReader
from policies.vendors import build_catalog
from reconciler.cli.fleet import Fleet, measure_node
from reconciler.cli.loads import Loads
from reconciler.cli.nodes import NodesReport, Order, changed_nodes, nodes_report, nodes_tables
from reconciler.kube.client import Client
from reconciler.kube.resources import NODES, PODS, Selection
from reconciler.placement.settings import PlacementSettings
from reconciler.placement.watching import ModelWatch
from reconciler.telemetry.config import TelemetryConfig
from reconciler.telemetry.run import Telemetry

_KEPT_LINES: Final = 6
"""Lines of the terminal that are not for nodes: headings, and what is said below them."""


class Screen(Protocol):
    """Shows a report in place of the one before; `stale` says that it may be old."""

    def show(self, found: NodesReport, stale: str) -> None:
        """Show it."""
        ...


@dataclass(frozen=True, slots=True)
class Following:
    """What is followed, and how often it is shown, in seconds."""

    selector: str
    config: TelemetryConfig
    settings: PlacementSettings
    order: Order = Order.NAME
    seconds: float = 1.0


async def follow_nodes(client: Client, following: Following, screen: Screen) -> None:
    """Show nodes until cancelled. Raises ApiError where the cluster cannot be read at first."""
    nodes = Selection(NODES, label_selector=following.selector)
    for selection in (nodes, Selection(PODS)):
        await client.list_page(selection, limit=1)
    catalog = build_catalog()
    model = Model(catalog, following.settings.model)
    fleet = Fleet(catalog, model, FiguresTable(catalog))
    watch = ModelWatch(client, fleet.model, PodReader(catalog), nodes=nodes)
    telemetry = Telemetry(client, following.config)
    loads = Loads(following.config, telemetry.store.node)
    telemetry.store.subscribe(partial(_measured, fleet.model, loads))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watch.run(), name="nodes and pods")
        tasks.create_task(telemetry.run(writes=False), name="loads")
        await watch.wait_synced()
        while True:
            age = 0.0 if watch.is_live() else watch.age_seconds()
            stale = f"the cluster has not been heard of for {age:.0f} s" if age else ""
            screen.show(nodes_report(fleet, loads, time.time(), following.order), stale)
            await asyncio.sleep(following.seconds)


def _measured(model: Model, loads: Loads, names: frozenset[str]) -> None:
    for name in names:
        measure_node(model, name, loads)


class LiveScreen:
    """A terminal, which has room for so many lines; a context manager."""

    def __init__(self, console: Console, *, wide: bool) -> None:
        self._console = console
        self._wide = wide
        self.live = Live(console=console, auto_refresh=False)

    def show(self, found: NodesReport, stale: str) -> None:
        """Show as many nodes as there is room for."""
        room = self._console.height - _KEPT_LINES - len(found.models)
        tables = nodes_tables(found, wide=self._wide, most=max(1, room))
        self.live.update(Group(tables, Text(stale, style="bold")), refresh=True)


class Lines:
    """JSON lines: each node once, and again whenever something of it has changed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown: dict[str, dict[str, object]] = {}

    def show(self, found: NodesReport, _stale: str) -> None:
        """Print what has changed; a node that is gone is `{"name": ..., "status": "Gone"}`."""
        changed = changed_nodes(self._shown, found)
        gone = self._shown.keys() - {row.figures.name for row in found.nodes}
        for name in sorted(gone):
            del self._shown[name]
            changed[name] = {"name": name, "status": "Gone"}
        for name, node in changed.items():
            if name not in gone:
                self._shown[name] = node
            self._stream.write(orjson.dumps(node).decode() + "\n")
        self._stream.flush()


class Pages:
    """Text for what is no terminal: the tables whenever they have changed."""

    def __init__(self, print_page: Callable[[Group], None], *, wide: bool) -> None:
        self._print = print_page
        self._wide = wide
        self._shown: tuple[object, ...] = ()

    def show(self, found: NodesReport, stale: str) -> None:
        """Print the tables if they have changed."""
        now = (tuple(found.nodes), tuple(found.models), stale)
        if now != self._shown:
            self._shown = now
            tables = nodes_tables(found, wide=self._wide)
            self._print(Group(tables, Text(stale)))
