# SPDX-License-Identifier: Apache-2.0
"""What else ranks nodes: load, links, replicas and tasks, kept by name as nodes and pods change."""

from typing import Final

from policies.cluster.nodes import Node
from policies.placement.occupancy import Occupancy
from policies.placement.scoring import Signals
from policies.placement.topology import COST, interconnect_of

_NO_COSTS: Final[dict[str, int]] = {}


class Signs:
    """The signals of all nodes. `tasks` are the GPU pods of each node that has any."""

    def __init__(self) -> None:
        self.tasks: dict[str, int] = {}
        self._loads: dict[str, int] = {}
        self._topology: dict[str, int] = {}
        self._services: dict[str, dict[str, int]] = {}

    def of(self, service: str, *, is_spread: bool) -> Signals:
        """Return what is known for a pod of a service; links matter to pods that are spread."""
        return Signals(
            load=self._loads,
            topology=self._topology if is_spread else _NO_COSTS,
            replicas=self._services.get(service, _NO_COSTS),
            tasks=self.tasks,
        )

    def put_node(self, node: Node) -> None:
        """Take how a node's GPUs are linked."""
        link = interconnect_of(node)
        if link is None:
            self._topology.pop(node.name, None)
        else:
            self._topology[node.name] = COST[link]

    def put_load(self, name: str, load: int | None) -> None:
        """Take a node's load in thousandths, None where it is not known."""
        if load is None:
            self._loads.pop(name, None)
        else:
            self._loads[name] = load

    def put_tasks(self, name: str, here: Occupancy) -> None:
        """Take how many GPU pods are on a node."""
        if here.tasks:
            self.tasks[name] = here.tasks
        else:
            self.tasks.pop(name, None)

    def remove(self, name: str) -> None:
        """Forget a node; replicas are forgotten pod by pod."""
        for kept in (self.tasks, self._loads, self._topology):
            kept.pop(name, None)

    def count_replica(self, service: str, node: str, sign: int) -> None:
        """Count a GPU pod of a service on a node, or take it back (-1); a bare pod has none."""
        if not service:
            return
        counts = self._services.setdefault(service, {})
        counts[node] = counts.get(node, 0) + sign
        if counts[node] <= 0:
            del counts[node]
        if not counts:
            del self._services[service]
