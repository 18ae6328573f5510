# SPDX-License-Identifier: Apache-2.0
"""Whether the cluster has any node for a form, as far as is known."""

from policies.model.facts import ClusterFacts, NodeFacts
from policies.model.profile import Profile

_CACHE_LIMIT = 4096


def is_offered(profile: Profile, cluster: ClusterFacts, generation: str) -> bool:
    """Tell whether some node offers the profile; True where nodes are not known."""
    if cluster.nodes is None:
        return True
    key = (generation, profile.name)
    found = cluster.offers_cache.get(key)
    if found is None:
        found = any(is_given_by(node, profile) for node in cluster.nodes)
        if len(cluster.offers_cache) < _CACHE_LIMIT:
            cluster.offers_cache[key] = found
    return found


def is_given_by(node: NodeFacts, profile: Profile) -> bool:
    """Tell whether a node has the labels that the profile pins and any of its resource."""
    placement = profile.placement
    return (
        node.allocatable.get(profile.resource, 0) > 0
        and all(node.labels.get(k) == v for k, v in placement.node_selector.items())
        and all(expression.matches(node.labels) for expression in placement.expressions)
    )
