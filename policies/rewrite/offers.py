# SPDX-License-Identifier: Apache-2.0
"""What the cluster offers of a form, as far as is known: any at all, and its memory."""

from collections.abc import Mapping

from policies.model.facts import ClusterFacts, NodeFacts, Offer
from policies.model.profile import Profile, SharingMode
from policies.vendors import Catalog
from policies.vendors.nvidia import MIG_PREFIX

MEMORY_LABEL = "nvidia.com/gpu.memory"
"""MiB of each of the node's GPUs, as GPU feature discovery writes it."""

_CACHE_LIMIT = 4096


def offer(profile: Profile, cluster: ClusterFacts, catalog: Catalog, generation: str) -> Offer:
    """Return what is offered; where nodes are not known, the form counts as offered.

    The memory is that of the smallest node that offers it, else what is known of its boards.
    """
    key = (generation, profile.name)
    found = cluster.offers.get(key)
    if found is None:
        found = _look(profile, cluster, catalog)
        if len(cluster.offers) < _CACHE_LIMIT:
            cluster.offers[key] = found
    return found


def is_given_by(node: NodeFacts, profile: Profile) -> bool:
    """Tell whether a node has the labels that the profile pins and any of its resource."""
    return node.allocatable.get(profile.resource, 0) > 0 and is_pinned_to(node.labels, profile)


def is_pinned_to(labels: Mapping[str, str], profile: Profile) -> bool:
    """Tell whether a node of these labels is among those that the profile pins."""
    placement = profile.placement
    return all(labels.get(k) == v for k, v in placement.node_selector.items()) and all(
        expression.matches(labels) for expression in placement.expressions
    )


def _look(profile: Profile, cluster: ClusterFacts, catalog: Catalog) -> Offer:
    shipped = known_mib(profile, catalog)
    if cluster.nodes is None:
        return Offer(is_offered=True, memory_mib=shipped)
    giving = [node for node in cluster.nodes if is_given_by(node, profile)]
    if not giving:
        return Offer(is_offered=False, memory_mib=shipped)
    labelled = [mib for node in giving if (mib := labelled_mib(profile, node.labels)) is not None]
    return Offer(is_offered=True, memory_mib=min(labelled, default=shipped))


def labelled_mib(profile: Profile, labels: Mapping[str, str]) -> int | None:
    """Return what a node's labels say of one unit's memory; the table's figure bounds it."""
    if profile.mode is SharingMode.MIG:
        suffix = (profile.mig_profile or "").replace("+", ".")
        text = labels.get(f"{MIG_PREFIX}{suffix}.memory", "")
        known = profile.memory_mib
        if not text.isdecimal():
            return known
        return min(int(text), known) if known is not None else int(text)
    text = labels.get(MEMORY_LABEL, "")
    return int(text) // (profile.replicas or 1) if text.isdecimal() else None


def known_mib(profile: Profile, catalog: Catalog) -> int | None:
    """Return the memory of one unit on the smallest of the profile's boards; None if not known."""
    return min(_units_mib(profile, catalog), default=None)


def most_known_mib(profile: Profile, catalog: Catalog) -> int | None:
    """Return the memory of one unit on the largest of the profile's boards; None if not known."""
    return max(_units_mib(profile, catalog), default=None)


def _units_mib(profile: Profile, catalog: Catalog) -> list[int]:
    """Return the memory of one unit on each board; none where one is not known."""
    if profile.mode is SharingMode.MIG:
        return [] if profile.memory_mib is None else [profile.memory_mib]
    boards = [catalog.board_mib.get(product) for product in profile.products]
    found = [mib // (profile.replicas or 1) for mib in boards if mib is not None]
    return found if len(found) == len(boards) else []
