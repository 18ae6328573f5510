# SPDX-License-Identifier: Apache-2.0
"""What is known of the cluster when a decision is taken; a shell gathers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from policies.model.term import LeaseTerm
from policies.model.usage import TenantUsage


@dataclass(frozen=True, slots=True)
class NamespaceFacts:
    """A namespace as its watch last showed it."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node: labels, and how many of each GPU resource it can hold (`allocatable`)."""

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Offer:
    """What nodes offer of a sharing profile: any at all, and the usable memory of one unit (MiB).

    `memory_mib` is None where no label and no table tells it.
    """

    is_offered: bool
    memory_mib: int | None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """One immutable picture of the cluster; a change makes a new one.

    `nodes` is None where nodes are not known at all (as opposed to: there are none).
    """

    namespaces: Mapping[str, NamespaceFacts]
    nodes: tuple[NodeFacts, ...] | None = None
    offers: dict[tuple[str, str], Offer] = field(default_factory=dict, compare=False, repr=False)
    """Memo of policies.rewrite.offers by (generation, profile), since nodes are many."""
    pools: dict[tuple[str, str], frozenset[str] | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """The like of policies.admission.reach."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The picture, the time (exemptions expire), and how old the picture may be.

    `stale_seconds` is None while the watches are live, else the seconds since they were.
    """

    cluster: ClusterFacts
    now: datetime
    stale_seconds: int | None = None
    usage: Mapping[str, TenantUsage] = field(default_factory=dict)
    """By tenant's name, as far as known. Apart from `cluster`, for it moves with every pod."""
    term: LeaseTerm | None = None
    """The newest of the leader's Lease that has been seen, if any."""
