# SPDX-License-Identifier: Apache-2.0
"""Keeps the metrics of each model of GPU true to the cluster, while its process leads."""

import asyncio
from collections.abc import Callable
from typing import Final

from policies.placement.figures import FiguresTable, NodeFigures, has_gpus
from policies.placement.gauging import gauge_of
from policies.placement.model import Model
from policies.placement.pods import PodReader
from policies.placement.sighting import sightings_of
from policies.telemetry.summary import known_utilisations
from policies.telemetry.views import NodeTelemetry
from reconciler.leading import Leading
from reconciler.placement.documents import follow_documents
from reconciler.placement.metrics import ModelGauges
from reconciler.placement.preferring import Preferences
from reconciler.placement.watching import ModelWatch
from reconciler.telemetry.run import Telemetry

_SHOW_SECONDS: Final = 5.0
_STEP: Final = 16
"""Nodes that are looked at before other work of the process gets its turn: some 3 ms."""


async def run_placement(leading: Leading) -> None:
    """Follow nodes and pods and show what GPUs come to, until cancelled."""
    around, reader = leading.surroundings, PodReader(leading.surroundings.catalog)
    model = Model(around.catalog, around.placement.model)
    watch = ModelWatch(around.client, model, reader, around.runtime)
    gauges, table = ModelGauges(around.metrics), FiguresTable(around.catalog)
    unsubscribe = follow_documents(around.documents, model)
    if around.placement.preferred_nodes:
        leading.newest.preferences = Preferences(
            model, reader, watch.is_live, around.placement, around.runtime.clock
        )
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch.run(), name="nodes and pods of placement")
            await watch.wait_synced()
            while True:
                if watch.is_live():
                    if around.telemetry is not None:
                        await measure(model, around.telemetry)
                    await show(model, table, gauges, leading.newest.telemetry)
                else:
                    gauges.clear()
                await around.runtime.sleep(_SHOW_SECONDS)
    finally:
        unsubscribe()
        gauges.clear()  # who does not lead does not know


async def measure(model: Model, telemetry: Telemetry) -> None:
    """Take what is measured of all nodes into the model, a few at a time."""
    weights = telemetry.config.weights
    for number, name in enumerate(model.nodes()):
        if number % _STEP == 0:
            await asyncio.sleep(0)
        here = model.occupancy(name)
        if here is not None:
            measured = telemetry.store.node(name)
            model.put_gauge(name, gauge_of(here.node, measured, weights))
            model.put_sightings(name, sightings_of(measured))


async def show(
    model: Model,
    table: FiguresTable,
    gauges: ModelGauges,
    telemetry: Callable[[str], NodeTelemetry] | None,
) -> None:
    """Show the figures of all nodes, looked at a few at a time."""
    figures: list[NodeFigures] = []
    utilisations: dict[str, tuple[float, ...]] = {}
    for number, name in enumerate(names := model.nodes()):
        if number % _STEP == 0:
            await asyncio.sleep(0)
        here = model.occupancy(name)
        if here is None or not has_gpus(here.node, table.catalog):
            continue
        figures.append(table.of(here, model.fragmented_milli(name)))
        if telemetry is not None:
            utilisations[name] = known_utilisations(telemetry(name))
    table.keep(names)
    gauges.show(figures, utilisations)
