# SPDX-License-Identifier: Apache-2.0
"""Guarantees beside what nodes have: a promise of more GPUs than there are cannot be kept."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from policies.cluster.capacity import gpu_milli
from policies.cluster.nodes import Node
from policies.model.policyset import PolicySet
from policies.model.tenant import DEFAULT_POOL
from policies.quota.pools import pool_of


@dataclass(frozen=True, slots=True)
class Overcommitment:
    """A pool of whose GPUs more are guaranteed than its nodes have, in milli-GPU."""

    pool: str
    guaranteed_milli: int
    capacity_milli: int


def overcommitted(policies: PolicySet, nodes: Iterable[Node]) -> tuple[Overcommitment, ...]:
    """Return the pools that promise too much, in name order.

    Of pools that release without nodes nothing is said: an autoscaler adds what is asked for.
    """
    return overcommitted_pools(policies, capacity_by_pool(policies, nodes))


def overcommitted_pools(policies: PolicySet, has: Mapping[str, int]) -> tuple[Overcommitment, ...]:
    """Return the same for what is known to be in each pool, in milli-GPU."""
    promised = guarantees_by_pool(policies)
    return tuple(
        Overcommitment(pool, promised[pool], has.get(pool, 0))
        for pool in sorted(promised)
        if promised[pool] > has.get(pool, 0) and not releases_without_nodes(policies, pool)
    )


def capacity_by_pool(policies: PolicySet, nodes: Iterable[Node]) -> Mapping[str, int]:
    """Return the milli-GPU of the nodes of each pool that has any."""
    found: Counter[str] = Counter()
    for node in nodes:
        if milli := gpu_milli(node, policies.catalog):
            found[pool_of(policies, node.labels)] += milli
    return found


def guarantees_by_pool(policies: PolicySet) -> Mapping[str, int]:
    """Return the milli-GPU that all tenants together are guaranteed in each pool."""
    found: Counter[str] = Counter()
    for tenant in policies.tenants.values():
        for pool, quota in tenant.pools.items():
            found[pool] += quota.guarantee_milli or 0
    return found


def releases_without_nodes(policies: PolicySet, pool: str) -> bool:
    """Tell whether pods of a pool are released though no node could hold them."""
    if pool == DEFAULT_POOL:
        return policies.settings.queue.release_without_nodes
    return policies.pools[pool].release_without_nodes
