# SPDX-License-Identifier: Apache-2.0
"""Nodes and the pods on them, in memory: what placement is decided and told from.

Kept up to date by one event at a time; answers for pods that are alike are kept, and only nodes
that have changed are looked at again. A pod that a node was picked for counts there until it is
seen bound, gone, or its time is over. Time is an argument. Watches must not be here.
"""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.cluster.nodes import Node
from policies.cluster.table import ChangeLog
from policies.placement.fgd import Fragmentation
from policies.placement.filtering import DEFAULT_LIMITS, Limits, Refusal, why_refused
from policies.placement.occupancy import UNKNOWN, Gauge, Occupancy, load_of, occupancy_of
from policies.placement.pods import PlacedPod, Wish
from policies.placement.popularity import Popularity
from policies.placement.rooms import Picking
from policies.placement.scorer import Scorer
from policies.placement.scoring import Ranking, Signals, Strategy
from policies.placement.topology import COST, interconnect_of, is_spread
from policies.vendors import Catalog

_WISHES: Final = 256


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`assume_seconds` is how long a pod may take to be bound to the node that it was given."""

    limits: Limits = DEFAULT_LIMITS
    picking: Picking = Picking.SPREAD
    assume_seconds: float = 60.0


@dataclass(slots=True)
class Sieve:
    """The nodes that must not get pods of one kind, with why, as of a moment of the log.

    `refusing` are all of them, `hot` those of the unresolvable ones that are refused for load.
    """

    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    refusing: set[str] = field(default_factory=set)
    hot: set[str] = field(default_factory=set)
    moment: int = 0

    def take(self, name: str, refusal: Refusal | None) -> None:
        """Take the verdict about a node in place of the last one."""
        if name in self.refusing:
            self.refusing.discard(name)
            self.failed.pop(name, None)
            self.unresolvable.pop(name, None)
            self.hot.discard(name)
        if refusal is None:
            return
        self.refusing.add(name)
        kept = self.unresolvable if refusal.is_unresolvable else self.failed
        kept[name] = refusal.reason
        if refusal.is_for_load:
            self.hot.add(name)


_SETTINGS: Final = ModelSettings()


class Model:
    """All nodes. Pods are known by UID; one that is on a node not seen yet is kept for it."""

    def __init__(self, catalog: Catalog, settings: ModelSettings = _SETTINGS) -> None:
        self.tasks: dict[str, int] = {}
        """GPU pods by node."""
        self._catalog = catalog
        self._settings = settings
        self._nodes: dict[str, Occupancy] = {}
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._log = ChangeLog()
        self._sieves: OrderedDict[Hashable, Sieve] = OrderedDict()
        self._pods: dict[str, PlacedPod] = {}
        self._where: dict[str, tuple[str, Wish, str]] = {}
        """Node, wish and service of every pod that counts somewhere."""
        self._assumed: OrderedDict[str, float] = OrderedDict()
        """Until when assumptions hold, the oldest first."""
        self._strays: dict[str, dict[str, Wish]] = {}
        """Pods on nodes that are not known."""
        self._services: dict[str, dict[str, int]] = {}
        self._loads: dict[str, int] = {}
        self._topology: dict[str, int] = {}
        self._gauges: dict[str, Gauge] = {}
        self._popularity = Popularity()
        self._learnt_at = 0
        self._scorer = Scorer(Fragmentation(()))
        self._unscored: set[str] = set()

    def __len__(self) -> int:
        return len(self._nodes)

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes, in name order."""
        return tuple(sorted(self._nodes))

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
        link = interconnect_of(node)
        if link is None:
            self._topology.pop(node.name, None)
        else:
            self._topology[node.name] = COST[link]
        self._touch(node.name, here)

    def remove_node(self, name: str) -> None:
        """Forget a node; the pods on it are remembered, should it come back."""
        here = self._nodes.pop(name, None)
        if here is None:
            return
        if here.pods:
            self._strays[name] = dict(here.pods)
        self._scorer.remove(name)
        for kept in (self.tasks, self._loads, self._topology, self._gauges):
            kept.pop(name, None)
        self._unscored.discard(name)
        self._sieves.clear()

    def put_pod(self, pod: PlacedPod, *, is_in_order: bool = True) -> None:
        """Take a pod as it is now; `is_in_order` if it is told as it happens, not from a list."""
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

    def put_gauge(self, name: str, gauge: Gauge) -> None:
        """Take what telemetry tells of a node now."""
        before = self._gauges.get(name, UNKNOWN)
        if gauge == before:
            return
        self._gauges[name] = gauge
        if gauge.load is None:
            self._loads.pop(name, None)
        else:
            self._loads[name] = gauge.load
        here = self._nodes.get(name)
        if here is not None:
            here.gauge = gauge
            if self._verdict_of(before) != self._verdict_of(gauge):
                self._log.touch(self._slot(name))

    # What is asked

    def sieve(self, wish: Wish) -> Sieve:
        """Return the nodes that must not get such a pod. One that is not known may."""
        key = wish.sifted
        sieve = self._sieves.get(key)
        if sieve is None:
            sieve = self._sieves[key] = Sieve()
            names: Sequence[str] = tuple(self._nodes)
            if len(self._sieves) > _WISHES:
                self._sieves.popitem(last=False)
        else:
            self._sieves.move_to_end(key)
            names = [self._names[slot] for slot in self._log.since(sieve.moment)]
        for name in names:
            here = self._nodes.get(name)
            sieve.take(name, why_refused(wish, here, self._settings.limits) if here else None)
        sieve.moment = self._log.now
        return sieve

    def holds_without(self, wish: Wish, name: str, uids: frozenset[str]) -> bool:
        """Tell whether a node may get such a pod once others are off it; an unknown one may."""
        here = self._nodes.get(name)
        if here is None:
            return True
        left = here.without(uids, self._catalog)
        return why_refused(wish, left, self._settings.limits) is None

    def rank(
        self, wish: Wish, names: Sequence[str], service: str, strategy: Strategy
    ) -> Ranking | None:
        """Order nodes for such a pod, the best first; None where none of them is known."""
        if not any(name in self._nodes for name in names):
            return None
        self._score()
        signals = Signals(
            load=self._loads,
            topology=self._topology if is_spread(wish.ask) else {},
            replicas=self._services.get(service, {}),
            tasks=self.tasks,
        )
        return self._scorer.rank(wish.ranked, names, signals, strategy)

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
        self._score()
        return self._scorer.fragmented_milli(name)

    def load(self) -> int | None:
        """Return the mean load of the nodes whose load is known, in thousandths."""
        return load_of(self._gauges)

    # What was picked

    def assume(self, pod: PlacedPod, node: str, now: float) -> None:
        """Count a pod on the node that it was given, unless it is seen bound or gone before."""
        known = self._pods.get(pod.uid)
        if known is not None and (known.node or known.has_ended):
            return
        self._assumed.pop(pod.uid, None)
        self._stay(pod, node)
        self._assumed[pod.uid] = now + self._settings.assume_seconds

    def forget(self, uid: str) -> None:
        """Take an assumption back, as when its pod is scheduled anew."""
        if self._assumed.pop(uid, None) is not None:
            self._leave(uid)

    def expire(self, now: float) -> None:
        """Take back the assumptions whose time is over."""
        while self._assumed and next(iter(self._assumed.values())) <= now:
            self.forget(next(iter(self._assumed)))

    @property
    def assumed(self) -> Collection[str]:
        """The pods that count on a node that they are not seen bound to: a view, always current."""
        return self._assumed.keys()

    # What is learnt

    @property
    def is_learning_due(self) -> bool:
        """Whether so many pods have been bound since that others may be typical by now."""
        return self._popularity.is_due(self._learnt_at)

    def learn(self) -> Iterator[None]:
        """Measure nodes by what is typical now, a node at each step; it counts from the end on."""
        self._learnt_at = self._popularity.seen
        scorer = Scorer(Fragmentation(self._popularity.typical()))
        for name in tuple(self._nodes):
            here = self._nodes.get(name)
            if here is not None:
                scorer.put(here.node, here.free, here.cards.devices)
            yield
        self._scorer = scorer
        # Whatever changed meanwhile; unchanged ones cost next to nothing.
        self._unscored = set(self._nodes)

    def _see(self, pod: PlacedPod) -> None:
        here = self._nodes.get(pod.node)
        if here is not None:
            self._popularity.see(pod.wish.ask, here.cards_milli(pod.wish.ask))

    def _score(self) -> None:
        for name in self._unscored:
            here = self._nodes[name]
            self._scorer.put(here.node, here.free, here.cards.devices)
        self._unscored.clear()

    def _stay(self, pod: PlacedPod, node: str, *, is_in_order: bool = True) -> None:
        """Count a pod on a node; one that counts there already keeps its cards."""
        known = self._where.get(pod.uid)
        if known is not None and known[:2] == (node, pod.wish):
            return
        self._leave(pod.uid)
        self._where[pod.uid] = (node, pod.wish, pod.service)
        self._count_service(pod.service, node, 1, pod.wish)
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
        self._count_service(service, node, -1, wish)
        here = self._nodes.get(node)
        if here is None:
            strays = self._strays.get(node, {})
            strays.pop(uid, None)
            if not strays:
                self._strays.pop(node, None)
            return
        here.drop(uid)
        self._touch(node, here)

    def _count_service(self, service: str, node: str, sign: int, wish: Wish) -> None:
        if not service or not wish.ask.devices:
            return
        counts = self._services.setdefault(service, {})
        counts[node] = counts.get(node, 0) + sign
        if counts[node] <= 0:
            del counts[node]
        if not counts:
            del self._services[service]

    def _verdict_of(self, gauge: Gauge) -> object:
        """Return what of a gauge may change a refusal."""
        threshold = self._settings.limits.threshold
        is_hot = gauge.load is not None and gauge.load >= threshold
        return is_hot, tuple(load < threshold for load in gauge.loads), gauge.free_mib

    def _touch(self, name: str, here: Occupancy) -> None:
        if here.tasks:
            self.tasks[name] = here.tasks
        else:
            self.tasks.pop(name, None)
        self._unscored.add(name)
        self._log.touch(self._slot(name))

    def _slot(self, name: str) -> int:
        slot = self._slots.get(name)
        if slot is None:
            slot = self._slots[name] = len(self._names)
            self._names.append(name)
        return slot
