# SPDX-License-Identifier: Apache-2.0
"""Brings what telemetry tells into the model, a few nodes at a time between two answers.

Values of a thousand nodes come at once, and taking them up costs a fifth of a second: longer than
kube-scheduler waits. What the values are, and where they come from, must not be here.
"""

import asyncio
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final, Protocol

from policies.cluster.nodes import Node
from policies.placement.gauging import gauge_of
from policies.placement.model import Model
from policies.placement.occupancy import UNKNOWN, Gauge
from policies.placement.sighting import sightings_of
from policies.telemetry.load import LoadWeights
from policies.telemetry.views import NodeTelemetry

_NODES_A_TURN: Final = 4
"""About a millisecond."""


class Told(Protocol):
    """What telemetry tells of nodes."""

    def node(self, name: str) -> NodeTelemetry:
        """Return what is known of a node now."""
        ...


class Waking(Protocol):
    """Who wakes pods when a node's load has fallen."""

    def measured(self, node: str, gauge: Gauge) -> None:
        """Take what telemetry tells of a node."""


class Gauges:
    """Keeps the model's gauges; those of many nodes are taken up while `run` runs."""

    def __init__(self, model: Model, told: Told, waking: Waking, weights: LoadWeights) -> None:
        self._model = model
        self._told = told
        self._waking = waking
        self._weights = weights
        self._nodes: dict[str, Node] = {}
        self._waiting: dict[str, None] = {}
        self._wake = asyncio.Event()

    @property
    def waiting(self) -> Collection[str]:
        """The nodes of which something is told that the model does not know yet."""
        return self._waiting.keys()

    def put_node(self, node: Node) -> None:
        """Take a node as it is now, and what is told of it at once."""
        self._nodes[node.name] = node
        self._take(node)

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)
        self._waiting.pop(name, None)

    def measured(self, names: Iterable[str]) -> None:
        """Note that telemetry tells something new of nodes."""
        self._waiting.update(dict.fromkeys(names))
        self._wake.set()

    async def run(self) -> None:
        """Take up what is new until cancelled; after that nothing is known any more."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    self._take_some()
                    await asyncio.sleep(0)
        finally:
            # Nobody tells any more when values grow old.
            self._waiting.clear()
            for name in self._nodes:
                self._model.put_gauge(name, UNKNOWN)

    def _take_some(self) -> None:
        for name in tuple(islice(self._waiting, _NODES_A_TURN)):
            del self._waiting[name]
            node = self._nodes.get(name)
            if node is not None:
                self._take(node)

    def _take(self, node: Node) -> None:
        telemetry = self._told.node(node.name)
        gauge = gauge_of(node, telemetry, self._weights)
        self._model.put_gauge(node.name, gauge)
        self._model.put_sightings(node.name, sightings_of(telemetry))
        self._waking.measured(node.name, gauge)
