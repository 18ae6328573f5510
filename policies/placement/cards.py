# SPDX-License-Identifier: Apache-2.0
"""What a node's cards are, what is free of each, and which the device plugin would give next.

A device plugin tells nobody which card it gave: unless somebody has seen it, a pod is taken to be
where the plugin's habit puts it. What cannot be known is None, and nothing here refuses a pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from policies.cluster.nodes import Node
from policies.placement.asks import DeviceAsk
from policies.placement.groups import CardGroup, read_groups
from policies.placement.rooms import Devices, Picking
from policies.vendors import Catalog

Seen: TypeAlias = Mapping[str, tuple[int, ...]]
"""On which devices a pod was seen, by resource name; numbers of devices as `CardGroup` has them."""


@dataclass(slots=True)
class _Taken:
    """What a pod asks and which devices it has; `picks` is None while it is more than there is."""

    asks: tuple[DeviceAsk, ...]
    seen: Seen
    picks: Mapping[str, tuple[int, ...]] | None = None


@dataclass(slots=True)
class NodeCards:
    """The cards of one node and the pods on them."""

    groups: Mapping[str, CardGroup]
    shares_picked: Picking = Picking.SPREAD
    _pods: dict[str, _Taken] = field(default_factory=dict)
    _devices: tuple[Devices, ...] | None = None

    @property
    def devices(self) -> tuple[Devices, ...]:
        """Return what is free of all devices as a value, in the order of resource names."""
        if self._devices is None:
            self._devices = tuple(group.devices for group in self.groups.values())
        return self._devices

    @property
    def excess(self) -> tuple[str, ...]:
        """Return the pods for which the node has too few devices, as after it was cut anew."""
        return tuple(uid for uid, taken in self._pods.items() if taken.picks is None)

    def put(self, uid: str, asks: tuple[DeviceAsk, ...], seen: Seen | None = None) -> None:
        """Put a pod where it was seen, else where the plugin would put it now.

        One that is there already and was not seen elsewhere stays.
        """
        before = self._pods.get(uid)
        if before is not None:
            if before.asks == asks and before.picks is not None and not seen:
                return
            self._release(uid)
        self._pods[uid] = _Taken(asks, seen or {})
        self._settle()

    def drop(self, uid: str) -> None:
        """Give back what a pod has; an unknown one has nothing."""
        if uid in self._pods:
            self._release(uid)
            self._settle()

    def picks_of(self, uid: str) -> Mapping[str, tuple[int, ...]] | None:
        """Return the devices that a pod has by resource name; None if it is not known or excess."""
        taken = self._pods.get(uid)
        return taken.picks if taken is not None else None

    def renewed(self, node: Node, catalog: Catalog) -> "NodeCards":
        """Return the cards of the node as it is now, with the same pods."""
        renewed = read_cards(node, catalog, self.shares_picked)
        for uid, taken in self._pods.items():
            renewed.put(uid, taken.asks, taken.seen)
        return renewed

    def _release(self, uid: str) -> None:
        taken = self._pods.pop(uid)
        self._move(taken, -1)

    def _settle(self) -> None:
        """Find devices for the pods that have none, the earliest first."""
        self._devices = None
        for taken in self._pods.values():
            if taken.picks is None:
                taken.picks = self._picks(taken)
                self._move(taken, 1)

    def _picks(self, taken: _Taken) -> Mapping[str, tuple[int, ...]] | None:
        found: dict[str, tuple[int, ...]] = {}
        for ask in taken.asks:
            group = self.groups.get(ask.resource)
            if group is None:
                return None
            seen = taken.seen.get(ask.resource, ())
            is_known = len(seen) == ask.count and all(0 <= i < len(group.free) for i in seen)
            picks = seen if is_known else group.picks(ask)
            if picks is None:
                return None
            found[ask.resource] = picks
        return found

    def _move(self, taken: _Taken, sign: int) -> None:
        for ask in taken.asks if taken.picks is not None else ():
            self.groups[ask.resource].take((taken.picks or {})[ask.resource], ask, sign)


def read_cards(node: Node, catalog: Catalog, shares_picked: Picking = Picking.SPREAD) -> NodeCards:
    """Return a node's cards with nothing on them, from what it offers and what its labels say.

    `shares_picked` is the plugin's habit with shares: NVIDIA's gives the card with most free
    (source: NVIDIA/k8s-device-plugin internal/rm/allocate.go distributedAlloc).
    """
    groups = read_groups(node, catalog, shares_picked)
    return NodeCards({group.resource: group for group in groups}, shares_picked)
