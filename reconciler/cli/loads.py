# SPDX-License-Identifier: Apache-2.0
"""What the cards of nodes do, for commands: from Prometheus, and from the nodes' annotations.

What is too old, or missing, is unknown; a Prometheus that gives nothing is said and not fatal.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from policies.telemetry.classes import DEFAULT_CLASSES
from policies.telemetry.quantities import Quantity
from policies.telemetry.summary import NodeLoad, node_load
from policies.telemetry.views import NodeTelemetry
from reconciler.cli.terminal import CommandError
from reconciler.placement.settings import PlacementSettings, placement_from_environment
from reconciler.telemetry.annotations import Annotations
from reconciler.telemetry.config import TelemetryConfig, config_from_environment
from reconciler.telemetry.http import Http
from reconciler.telemetry.nodes import MemoryNote, TelemetryNode
from reconciler.telemetry.prometheus import Prometheus
from reconciler.telemetry.source import SourceError
from reconciler.telemetry.store import TelemetryStore

_SHOWN: Final = frozenset(
    {
        *(Quantity.UTILISATION, Quantity.MEMORY_USED, Quantity.MEMORY_FREE),
        *(Quantity.MEMORY_RESERVED, Quantity.MEMORY_TOTAL),
    }
)
"""What is shown, of all that exporters tell."""
_SOURCE: Final = "SLUICE_TELEMETRY_SOURCE"
_URL: Final = "PROMETHEUS_URL"


@dataclass(frozen=True, slots=True)
class Loads:
    """The telemetry of nodes by name. `complaints` say what is missing, and why."""

    config: TelemetryConfig
    view: Callable[[str], NodeTelemetry]
    complaints: Sequence[str] = ()

    def of(self, name: str, expected_cards: int, note: MemoryNote | None) -> NodeLoad:
        """Return the load of a node; of an old annotation nothing but its time is told."""
        found = node_load(self.view(name), expected_cards, self.config.weights)
        if found.time is None and note is not None:
            return NodeLoad(time=note.time)
        return found


def telemetry_config(environ: Mapping[str, str], prometheus: str) -> TelemetryConfig:
    """Return where loads are read: from a Prometheus if one is named, else from annotations.

    Raises CommandError. $PROMETHEUS_URL and those beside it say how it is reached.
    """
    url = prometheus or environ.get(_URL, "").strip()
    source = "Prometheus" if url else "Annotations"
    try:
        config = config_from_environment({**environ, _URL: url, _SOURCE: source})
    except ValueError as error:
        raise CommandError(str(error)) from error
    if config.prometheus is None:
        return config
    return replace(config, prometheus=replace(config.prometheus, quantities=_SHOWN))


def placement_settings(environ: Mapping[str, str]) -> PlacementSettings:
    """Return how nodes are judged: as an extender with this environment does.

    Raises CommandError.
    """
    try:
        return placement_from_environment(environ)
    except ValueError as error:
        raise CommandError(str(error)) from error


async def read_loads(
    config: TelemetryConfig,
    nodes: Mapping[str, TelemetryNode],
    clock: Callable[[], float] = time.time,
) -> Loads:
    """Look once at all nodes, by annotations and, if there is one, at Prometheus."""
    limits = {each.name: each.freshness(config.skew_seconds) for each in config.classes}
    widest = config.classes[-1].name if config.classes else DEFAULT_CLASSES[-1].name
    store = TelemetryStore(
        lambda name: limits[nodes[name].sampling.name if name in nodes else widest],
        config.smoothing,
        config.whole_nodes,
        clock,
        lambda name: nodes[name].board_mib if name in nodes else None,
    )
    await Annotations(nodes.values).read(nodes.keys(), store.put)
    if config.prometheus is None:
        return Loads(config, store.node)
    async with Http(config.prometheus.access, config.prometheus.limits) as http:
        try:
            report = await Prometheus(config.prometheus, http).read(nodes.keys(), store.put)
        except SourceError as error:
            return Loads(config, store.node, (f"no load from Prometheus: {error}",))
    return Loads(config, store.node, tuple(f"Prometheus: {each}" for each in report.problems))
