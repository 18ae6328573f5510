# SPDX-License-Identifier: Apache-2.0
"""The pools that a pod can run in, and so the quota that it could ever have.

Told by what the pod and its form demand of a node's labels, and by the nodes there are. Where
neither shows it, every pool is possible: to be wrong here would refuse what could run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from policies.admission.context import Context
from policies.model.facts import ClusterFacts, NodeFacts
from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.policyset import PolicySet
from policies.model.profile import Placement, Profile
from policies.model.tenant import DEFAULT_POOL, Quota, Tenant
from policies.pod.reading import strings_at
from policies.quota.pools import pool_of
from policies.rewrite.offers import is_given_by
from policies.vendors import Catalog
from policies.vendors.nvidia import model_of

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Reach:
    """`pools` are the possible ones; `is_narrowed` tells that there are others.

    `by_nodes` tells that only the nodes there are now show it, so that it may change.
    """

    pools: tuple[str, ...] = (DEFAULT_POOL,)
    is_narrowed: bool = False
    by_nodes: bool = False

    def most_ceiling_milli(self, tenant: Tenant) -> int | None:
        """Return the most that one pod can have; None where nothing bounds it."""
        ceilings = self._ceilings(tenant)
        return None if ceilings is None else max(ceilings)

    def total_ceiling_milli(self, tenant: Tenant) -> int | None:
        """Return the most that all pods of the kind can have; None where nothing bounds them."""
        ceilings = self._ceilings(tenant)
        return None if ceilings is None else sum(ceilings)

    def guarantees_milli(self, tenant: Tenant) -> tuple[int, ...]:
        """Return what the tenant is guaranteed in each of the pools."""
        return tuple(quota.guarantee_milli or 0 for quota in self.quotas(tenant))

    def quotas(self, tenant: Tenant) -> tuple[Quota, ...]:
        """Return the tenant's quota in each of the pools."""
        return tuple(tenant.quota_of(pool) for pool in self.pools)

    def _ceilings(self, tenant: Tenant) -> tuple[int, ...] | None:
        found = tuple(quota.ceiling_milli for quota in self.quotas(tenant))
        known = tuple(ceiling for ceiling in found if ceiling is not None)
        return known if len(known) == len(found) else None

    def __str__(self) -> str:
        """Return the pools as people call them: `pool a`, `pools a and b`, `the default pool`."""
        if self.pools == (DEFAULT_POOL,):
            return "the default pool"
        names = [pool or "the default" for pool in sorted(self.pools)]
        shown = names[:_MOST_NAMED]
        if len(names) > _MOST_NAMED:
            shown.append(f"{len(names) - _MOST_NAMED} more")
        head, last = ", ".join(shown[:-1]), shown[-1]
        return f"pools {head} and {last}" if head else f"pool {last}"


def reach_of(context: Context, profiles: Iterable[Profile], placement: Placement) -> Reach:
    """Return the pools for a pod of these forms. Raises MalformedError."""
    policies, facts = context.policies, context.facts
    if not policies.pools:
        return Reach()
    own = strings_at(context.pod.spec, "nodeSelector")
    selected = (*_selected(placement.node_selector), *_selected(own))
    possible = possible_pools(policies, LabelSelector((*selected, *placement.expressions)))
    narrowed = possible
    if facts.stale_seconds is None:
        shown = [_shown(policies, facts.cluster, profile) for profile in profiles]
        narrowed = tuple(
            pool
            for pool in possible
            if _is_open(policies, pool) or all(some is None or pool in some for some in shown)
        )
    if narrowed and narrowed != possible:
        return Reach(narrowed, is_narrowed=True, by_nodes=True)
    return Reach(possible, is_narrowed=len(possible) <= len(policies.pools))


def possible_pools(policies: PolicySet, demanded: LabelSelector) -> tuple[str, ...]:
    """Return the pools that a node which meets all demands may be in, the default one first."""
    found: list[str] = []
    for pool in policies.pools.values():  # a node is in the first, in name order, that selects it
        if pool.nodes.excludes(demanded):
            continue
        found.append(pool.name)
        if _implies(demanded, pool.nodes):
            return tuple(found)
    return (DEFAULT_POOL, *found)


def _implies(demanded: LabelSelector, selector: LabelSelector) -> bool:
    return all(
        any(demand.excludes(expression.contrary()) for demand in demanded.expressions)
        for expression in selector.expressions
    )


def _selected(labels: Mapping[str, str]) -> Iterator[Expression]:
    yield from (Expression(key, Operator.IN, (value,)) for key, value in labels.items())


def _is_open(policies: PolicySet, pool: str) -> bool:
    """Tell whether nodes may come to a pool once pods wait for them."""
    if pool == DEFAULT_POOL:
        return policies.settings.queue.release_without_nodes
    return policies.pools[pool].release_without_nodes


def _shown(policies: PolicySet, cluster: ClusterFacts, profile: Profile) -> frozenset[str] | None:
    """Return the pools of the nodes that give a form or may come to; None where none gives it."""
    if cluster.nodes is None:
        return None
    key = (policies.generation, profile.name)
    if key not in cluster.pools:
        giving = any(is_given_by(node, profile) for node in cluster.nodes)
        found = frozenset(
            pool_of(policies, node.labels)
            for node in cluster.nodes
            if _may_give(node, profile, policies.catalog)
        )
        # Profiles are those of a policy set, so this grows only with sets on one picture.
        cluster.pools[key] = found if giving else None
    return cluster.pools[key]


def _may_give(node: NodeFacts, profile: Profile, catalog: Catalog) -> bool:
    """Tell whether a node gives a form, or could once its GPUs are cut or shared otherwise."""
    if is_given_by(node, profile):
        return True
    names = (catalog.classify(resource) for resource in node.allocatable)
    if not any(name is not None and name.vendor in (None, profile.vendor) for name in names):
        return False
    product = node.labels.get(catalog.vendor(profile.vendor).product_label, "")
    models = {model_of(known) for known in profile.products}
    return not product or not models or model_of(product) in models
