# SPDX-License-Identifier: Apache-2.0
"""What planning reads of the state that it plans on."""

from collections.abc import Mapping
from typing import Protocol

from policies.cluster.fit import FitIndex
from policies.cluster.nodes import Node
from policies.model.policyset import PolicySet
from policies.model.tenant import Tenant
from policies.quota.idle import IdleHistory
from policies.quota.ledger import Ledger
from policies.quota.planning.options import Options
from policies.quota.planning.turns import Turns
from policies.quota.queue import Queue


class Reserved(Protocol):
    """What is kept for a tenant in a pool."""

    @property
    def milli(self) -> int:
        """Return how much, in milli-GPU."""
        ...

    @property
    def until(self) -> int:
        """Return until when (Unix seconds)."""
        ...

    @property
    def nodes(self) -> Mapping[str, str]:
        """Return on which nodes there is, or will be, room for pods of it, by UID."""
        ...


class View(Protocol):
    """The state as of now; see `policies.quota.state`."""

    @property
    def policies(self) -> PolicySet:
        """Return the policies."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Return who uses how much."""
        ...

    @property
    def fit(self) -> FitIndex:
        """Return which nodes have room."""
        ...

    @property
    def queue(self) -> Queue:
        """Return what waits."""
        ...

    @property
    def options(self) -> Options:
        """Return which pools pods may go into."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Return the nodes by name."""
        ...

    @property
    def reserves(self) -> Mapping[tuple[str, str], Reserved]:
        """Return what is kept for tenants, by tenant and pool."""
        ...

    @property
    def turns(self) -> Turns:
        """Return who has kept room since when."""
        ...

    def capacities(self) -> Mapping[str, int]:
        """Return the milli-GPU of the nodes of each pool that has any."""
        ...

    def demand(self, tenant: Tenant) -> Mapping[str, int]:
        """Return what a tenant uses and waits for by pool, in milli-GPU."""
        ...

    def history(self, tenant: Tenant, pool: str) -> IdleHistory:
        """Return what a tenant used and asked for in a pool."""
        ...

    def owners(self, namespace: str) -> tuple[Tenant, ...]:
        """Return the tenants that claim a namespace."""
        ...
