# SPDX-License-Identifier: Apache-2.0
"""The nodes as quota sees them: how much GPU each pool has, and which nodes are lost."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from policies.cluster.capacity import gpu_milli
from policies.cluster.nodes import Node
from policies.model.policyset import PolicySet
from policies.quota.pools import pool_of
from policies.vendors import Catalog

_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
"""Taint of a node that nobody has heard of for long."""


class Fleet:
    """Nodes by name. Capacities are known once there are policies, which tell pools apart."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._policies: PolicySet | None = None
        self._nodes: dict[str, Node] = {}
        self._weights: dict[str, tuple[str, int]] = {}
        """Pool and capacity of each node."""
        self._capacities: Counter[str] = Counter()

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Return the nodes by name."""
        return self._nodes

    @property
    def capacities(self) -> Mapping[str, int]:
        """Return the milli-GPU of the nodes of each pool."""
        return self._capacities

    def set_policies(self, policies: PolicySet) -> None:
        """Tell pools apart by these."""
        self._policies = policies
        for node in self._nodes.values():
            self._weigh(node)

    def put(self, node: Node) -> None:
        """Take a node as it is now."""
        self._nodes[node.name] = node
        self._weigh(node)

    def remove(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)
        self._unweigh(name)

    def is_lost(self, name: str) -> bool:
        """Tell whether a node is gone, or nobody has heard of it for long."""
        node = self._nodes.get(name)
        return node is None or any(taint.key == _UNREACHABLE for taint in node.taints)

    def _weigh(self, node: Node) -> None:
        if self._policies is not None:
            self._unweigh(node.name)
            pool, milli = pool_of(self._policies, node.labels), gpu_milli(node, self._catalog)
            self._weights[node.name] = (pool, milli)
            self._capacities[pool] += milli

    def _unweigh(self, name: str) -> None:
        pool, milli = self._weights.pop(name, ("", 0))
        self._capacities[pool] -= milli
