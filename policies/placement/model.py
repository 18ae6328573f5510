# SPDX-License-Identifier: Apache-2.0
"""Nodes and the pods on them, in memory: what placement is decided and told from.

Kept up to date by one event at a time. A pod that a node was picked for counts there until it is
seen bound, gone, or its time is over. Time is an argument. Watches must not be here.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.cluster.nodes import Node
from policies.model.placement import SpreadSettings
from policies.model.policyset import PolicySet
from policies.placement.filtering import DEFAULT_LIMITS, Limits, why_refused
from policies.placement.merging import merged
from policies.placement.occupancy import UNKNOWN, Gauge, Occupancy, occupancy_of
from policies.placement.pods import PlacedPod, Wish
from policies.placement.rating import Rating
from policies.placement.rooms import Picking
from policies.placement.scoring import Ranking
from policies.placement.sieves import Sieve, Sieves
from policies.placement.sighting import Sightings
from policies.placement.signs import Signs
from policies.placement.strategies import Strategies
from policies.placement.topology import is_spread
from policies.vendors import Catalog


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`assume_seconds` is how long a pod may take to be bound to the node that it was given.

    `spreading` is for nodes of which no document says how they are ranked.
    """

    limits: Limits = DEFAULT_LIMITS
    picking: Picking = Picking.SPREAD
    assume_seconds: float = 60.0
    spreading: SpreadSettings = field(default_factory=SpreadSettings)


@dataclass(frozen=True, slots=True)
class Release:
    """A node that a pod was only assumed on, and is not any more; `since` it counted there."""

    node: str
    since: float


_SETTINGS: Final = ModelSettings()
_MOST_GONE: Final = 4096
"""More than a scheduler can still ask about, since it asks about one pod at a time."""


class Model:
    """All nodes. Pods are known by UID; one that is on a node not seen yet is kept for it."""

    def __init__(self, catalog: Catalog, settings: ModelSettings = _SETTINGS) -> None:
        self._catalog = catalog
        self._settings = settings
        self._nodes: dict[str, Occupancy] = {}
        self._sieves = Sieves(self._nodes, settings.limits)
        self._rating = Rating(self._nodes)
        self._signs = Signs()
        self._strategies = Strategies(settings.spreading)
        self._pods: dict[str, PlacedPod] = {}
        self._where: dict[str, tuple[str, Wish, str]] = {}
        """Node, wish and service of every pod that counts somewhere."""
        self._assumed: OrderedDict[str, float] = OrderedDict()
        """Until when assumptions hold, the oldest first."""
        self._gone: OrderedDict[str, None] = OrderedDict()
        """Pods that were seen gone, the first of them first: the scheduler may not know yet."""
        self._strays: dict[str, dict[str, Wish]] = {}
        """Pods on nodes that are not known."""
        self._gauges: dict[str, Gauge] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes, in name order."""
        return tuple(sorted(self._nodes))

    def set_policies(self, policies: PolicySet | None) -> None:
        """Take the documents that say how pools are ranked; None where none can be served."""
        self._strategies.set_policies(policies)

    # What watches tell

    def put_node(self, node: Node) -> None:
        """Take a node as it is now."""
        here = self._nodes.get(node.name)
        if here is None:
            here = occupancy_of(node, self._catalog, self._settings.picking)
            here.gauge = self._gauges.get(node.name, UNKNOWN)
            self._nodes[node.name] = here
            for uid, wish in self._strays.pop(node.name, {}).items():
                here.put(uid, wish, is_seen_in_order=False)
        elif here.node == node:
            return
        else:
            here.renew(node, self._catalog)
        self._signs.put_node(node)
        self._strategies.put_node(node)
        self._touch(node.name, here)

    def remove_node(self, name: str) -> None:
        """Forget a node; the pods on it are remembered, should it come back."""
        here = self._nodes.pop(name, None)
        if here is None:
            return
        if here.pods:
            self._strays[name] = dict(here.pods)
        self._gauges.pop(name, None)
        self._signs.remove(name)
        self._strategies.remove(name)
        self._rating.remove(name)
        self._sieves.remove(name)

    def put_pod(self, pod: PlacedPod, *, is_in_order: bool = True) -> None:
        """Take a pod as it is now; `is_in_order` if it is told as it happens, not from a list."""
        self._gone.pop(pod.uid, None)
        before = self._pods.get(pod.uid)
        if pod.node and (before is None or not before.node):
            self._see(pod)
        self._pods[pod.uid] = pod
        if pod.has_ended:
            self._leave(pod.uid)
        elif pod.node:
            self._assumed.pop(pod.uid, None)
            self._stay(pod, pod.node, is_in_order=is_in_order)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._pods.pop(uid, None)
        self._leave(uid)
        self._gone[uid] = None
        if len(self._gone) > _MOST_GONE:
            self._gone.popitem(last=False)

    def put_gauge(self, name: str, gauge: Gauge) -> None:
        """Take what telemetry tells of a node now."""
        before = self._gauges.get(name, UNKNOWN)
        if gauge == before:
            return
        self._gauges[name] = gauge
        self._signs.put_load(name, gauge.load)
        self._strategies.put_load(name, gauge.load)
        here = self._nodes.get(name)
        if here is not None:
            here.gauge = gauge
            if self._verdict_of(before) != self._verdict_of(gauge):
                self._sieves.touch(name)

    def put_sightings(self, name: str, sightings: Sightings) -> None:
        """Take on which of a node's cards its pods were seen; pods do not change their cards."""
        here = self._nodes.get(name)
        if here is None:
            return
        found: dict[str, tuple[int, ...]] = {}
        for uid in here.pods:
            pod = self._pods.get(uid)
            seen = sightings.pods.get((pod.namespace, pod.name)) if pod is not None else None
            # One of the same name that was there before must not be taken for it.
            if pod is not None and seen is not None and seen.time >= pod.created_at:
                found[uid] = seen.cards
        if here.see(found, sightings.cards):
            self._touch(name, here)

    # What is asked

    def sieve(self, wish: Wish) -> Sieve:
        """Return the nodes that must not get such a pod. One that is not known may."""
        return self._sieves.of(wish)

    def holds_without(self, wish: Wish, name: str, uids: frozenset[str]) -> bool:
        """Tell whether a node may get such a pod once others are off it; an unknown one may."""
        here = self._nodes.get(name)
        if here is None:
            return True
        left = here.without(uids, self._catalog)
        return why_refused(wish, left, self._settings.limits) is None

    def rank(self, wish: Wish, names: Sequence[str], service: str) -> Ranking | None:
        """Order nodes for such a pod, the best first; None where none of them is known."""
        if not any(name in self._nodes for name in names):
            return None
        signals = self._signs.of(service, is_spread=is_spread(wish.ask))
        return merged(
            [
                self._rating.rank(wish.ranked, group, signals, strategy)
                for strategy, group in self._strategies.of(names, is_exclusive=wish.is_exclusive)
            ]
        )

    def pod(self, uid: str) -> PlacedPod | None:
        """Return a pod that a watch has shown."""
        return self._pods.get(uid)

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod counts on, bound or assumed."""
        found = self._where.get(uid)
        return found[0] if found is not None else None

    def occupancy(self, name: str) -> Occupancy | None:
        """Return a node as it stands; not to be changed."""
        return self._nodes.get(name)

    def fragmented_milli(self, name: str) -> float | None:
        """Return F of a node in milli-GPU; None where nothing is typical yet (see `learn`)."""
        return self._rating.scorer.fragmented_milli(name)

    @property
    def is_load_known(self) -> bool:
        """Whether the load of any node is known."""
        return any(gauge.load is not None for gauge in self._gauges.values())

    @property
    def tasks(self) -> Mapping[str, int]:
        """Return how many GPU pods are on each node that has any."""
        return self._signs.tasks

    # What was picked

    def assume(self, pod: PlacedPod, node: str, now: float) -> None:
        """Count a pod on the node that it was given, unless it is seen bound or gone before."""
        known = self._pods.get(pod.uid)
        is_settled = known is not None and (known.node or known.has_ended)
        if is_settled or pod.uid in self._gone:
            return
        self._assumed.pop(pod.uid, None)
        self._stay(pod, node)
        self._assumed[pod.uid] = now + self._settings.assume_seconds

    def forget(self, uid: str) -> Release | None:
        """Take an assumption back, as when its pod is scheduled anew; return what that frees."""
        release = self.assumption(uid)
        if release is not None:
            self._leave(uid)
        return release

    def expire(self, now: float) -> tuple[Release, ...]:
        """Take back the assumptions whose time is over; return what that frees."""
        found: list[Release] = []
        while self._assumed and next(iter(self._assumed.values())) <= now:
            release = self.forget(next(iter(self._assumed)))
            if release is not None:
                found.append(release)
        return tuple(found)

    def assumption(self, uid: str) -> Release | None:
        """Return what would be free without a pod that is only assumed; None if it is not."""
        until = self._assumed.get(uid)
        if until is None:
            return None
        return Release(self._where[uid][0], until - self._settings.assume_seconds)

    @property
    def assumed(self) -> Collection[str]:
        """The pods that count on a node that they are not seen bound to: a view, always current."""
        return self._assumed.keys()

    # What is learnt

    @property
    def is_learning_due(self) -> bool:
        """Whether so many pods have been bound since that others may be typical by now."""
        return self._rating.is_learning_due

    def learn(self) -> Iterator[None]:
        """Measure nodes by what is typical now, step by step; it counts from the end on."""
        return self._rating.learn()

    def _see(self, pod: PlacedPod) -> None:
        here = self._nodes.get(pod.node)
        if here is not None:
            self._rating.see(pod.wish.ask, here)

    def _stay(self, pod: PlacedPod, node: str, *, is_in_order: bool = True) -> None:
        """Count a pod on a node; one that counts there already keeps its cards."""
        known = self._where.get(pod.uid)
        if known is not None and known[:2] == (node, pod.wish):
            return
        self._leave(pod.uid)
        self._where[pod.uid] = (node, pod.wish, pod.service)
        if pod.wish.ask.devices:
            self._signs.count_replica(pod.service, node, 1)
        here = self._nodes.get(node)
        if here is None:
            self._strays.setdefault(node, {})[pod.uid] = pod.wish
            return
        here.put(pod.uid, pod.wish, is_seen_in_order=is_in_order)
        self._touch(node, here)

    def _leave(self, uid: str) -> None:
        """Count a pod nowhere any more."""
        self._assumed.pop(uid, None)
        found = self._where.pop(uid, None)
        if found is None:
            return
        node, wish, service = found
        if wish.ask.devices:
            self._signs.count_replica(service, node, -1)
        here = self._nodes.get(node)
        if here is None:
            strays = self._strays.get(node, {})
            strays.pop(uid, None)
            if not strays:
                self._strays.pop(node, None)
            return
        here.drop(uid)
        self._touch(node, here)

    def _verdict_of(self, gauge: Gauge) -> object:
        """Return what of a gauge may change a refusal."""
        threshold = self._settings.limits.threshold
        is_hot = gauge.load is not None and gauge.load >= threshold
        return is_hot, tuple(load < threshold for load in gauge.loads), gauge.free_mib

    def _touch(self, name: str, here: Occupancy) -> None:
        self._signs.put_tasks(name, here)
        self._rating.touch(name)
        self._sieves.touch(name)
