# SPDX-License-Identifier: Apache-2.0
"""Pools and guarantees beside the nodes that there are: what `lint --facts` finds."""

from collections.abc import Iterator, Sequence
from typing import Final

from policies.admission.charging import amount
from policies.cluster.nodes import Node
from policies.documents.collection import Collection
from policies.documents.compiled import Compiled
from policies.documents.problems import Problem, Severity
from policies.model.facts import NodeFacts
from policies.model.labels import LabelSelector
from policies.model.policyset import PolicySet
from policies.model.pool import Pool
from policies.model.tenant import DEFAULT_POOL
from policies.quota.capacity import overcommitted
from policies.quota.pools import pins_of, pool_of

_WARNING: Final = Severity.WARNING


def check_nodes(
    documents: Collection, policies: PolicySet, nodes: Sequence[NodeFacts]
) -> Iterator[Problem]:
    """Yield warnings; the documents are those of the set, without errors."""
    pools = {pool.name: pool for pool in documents.pools}
    yield from _too_much_promised(pools, policies, nodes)
    for pool in pools.values():
        yield from _selected(pool, policies, nodes)
    for name in (DEFAULT_POOL, *pools):
        yield from _left_out(pools.get(name), policies, nodes)


def _too_much_promised(
    pools: dict[str, Compiled[Pool]], policies: PolicySet, facts: Sequence[NodeFacts]
) -> Iterator[Problem]:
    nodes = (Node(node.name, node.labels, (), node.allocatable) for node in facts)
    for found in overcommitted(policies, nodes):
        promised, has = amount(found.guaranteed_milli), amount(found.capacity_milli)
        if found.pool == DEFAULT_POOL:
            message = f"tenants are guaranteed {promised}; the nodes outside of all pools have"
            yield Problem(_WARNING, f"{message} {has}")
        else:
            message = f"tenants are guaranteed {promised} of this pool; its nodes have {has}"
            name = pools[found.pool].root.at("metadata", "name")
            yield name.problem(message, severity=_WARNING)


def _selected(
    pool: Compiled[Pool], policies: PolicySet, nodes: Sequence[NodeFacts]
) -> Iterator[Problem]:
    selector = pool.root.at("spec", "nodes", "selector")
    selected = [node for node in nodes if pool.value.nodes.matches(node.labels)]
    if not selected:
        yield selector.problem("selects no node", severity=_WARNING)
    owners: dict[str, list[NodeFacts]] = {}
    for node in selected:
        owners.setdefault(pool_of(policies, node.labels), []).append(node)
    for owner, found in owners.items():
        if owner != pool.name:
            message = f"{_named(found)} in pool {owner} already, which goes first by name"
            yield selector.problem(message, severity=_WARNING)


def _left_out(
    pool: Compiled[Pool] | None, policies: PolicySet, nodes: Sequence[NodeFacts]
) -> Iterator[Problem]:
    """Tell of nodes that pods of their pool are kept off, being too like another pool's."""
    name = pool.name if pool else DEFAULT_POOL
    mine = [n for n in nodes if n.allocatable and pool_of(policies, n.labels) == name]
    kept = LabelSelector(pins_of(policies, name, [node.labels for node in mine]).expressions)
    lost = [node for node in mine if not kept.matches(node.labels)]
    if not lost:
        return
    which = f"pool {name}" if pool else "no pool"
    message = f"{_named(lost)} in {which}, and left empty"
    hint = "select the nodes of each pool by one label of their own"
    if pool is None:
        yield Problem(_WARNING, message, suggestion=hint)
    else:
        yield pool.root.at("spec", "nodes", "selector").problem(message, hint, _WARNING)


def _named(nodes: Sequence[NodeFacts]) -> str:
    more = len(nodes) - 1
    if not more:
        return f"node {nodes[0].name} is"
    return f"node {nodes[0].name} and {more} more are"
