# SPDX-License-Identifier: Apache-2.0
"""A node with the pods on it and on their way to it, kept up to date pod by pod.

Which pods those are, and whether another may come, must not be decided here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.cluster.nodes import Node
from policies.model.profile import SharingMode
from policies.placement.asks import Ask, DeviceAsk
from policies.placement.cards import NodeCards, read_cards
from policies.placement.groups import CardGroup
from policies.placement.measuring import free_mib
from policies.placement.pods import Company, Wish
from policies.placement.rooms import Picking
from policies.vendors import Catalog, Form


@dataclass(frozen=True, slots=True)
class Gauge:
    """What fresh telemetry tells of a node; empty or None where it is not known of all its cards.

    `loads` are those of each card and `load` that of the node, in thousandths; `free_mib` is what
    is free of each card's memory.
    """

    load: int | None = None
    loads: tuple[int, ...] = ()
    free_mib: tuple[int, ...] = ()


UNKNOWN: Final = Gauge()


@dataclass(slots=True)
class Occupancy:
    """One node. `is_certain`: the device plugin's picks so far could be followed from the start.

    It is not where pods were found there in an order that nobody has seen, nor after a pick that
    could have been either of two cards that are not alike; but again once all pods were seen on
    their cards. `is_anchored`: devices are numbered as the cards are that telemetry tells of.
    """

    node: Node
    cards: NodeCards
    free: dict[str, int]
    gauge: Gauge = UNKNOWN
    is_certain: bool = True
    is_anchored: bool = True
    seen: set[str] = field(default_factory=set)
    """The pods that were seen on their cards."""
    pods: dict[str, Wish] = field(default_factory=dict)
    forms: Counter[Form] = field(default_factory=Counter)
    companies: Counter[Company] = field(default_factory=Counter)
    exclusive: int = 0
    tasks: int = 0
    """How many of the pods ask for GPUs."""

    def put(self, uid: str, wish: Wish, *, is_seen_in_order: bool = True) -> None:
        """Put a pod here that is not here yet."""
        self.pods[uid] = wish
        self._add(wish, 1)
        devices = wish.ask.devices
        if devices:
            ties = [self._ties(device) for device in devices]
            self.is_certain &= is_seen_in_order and all(map(_are_alike, ties))
            self.is_anchored &= self.is_certain and all(map(_is_single, ties))
            self.cards.put(uid, devices)

    def drop(self, uid: str) -> Wish | None:
        """Take a pod away; None if it was not here."""
        wish = self.pods.pop(uid, None)
        if wish is None:
            return None
        self._add(wish, -1)
        if wish.ask.devices:
            self.cards.drop(uid)
            self.seen.discard(uid)
            self.is_certain |= not self.tasks
            self.is_anchored |= not self.tasks
        return wish

    def see(self, cards: Mapping[str, tuple[int, ...]], total: int) -> bool:
        """Take on which of the node's `total` cards pods were seen; tell whether that is news."""
        is_news = False
        for uid, where in cards.items():
            is_news |= self._see(uid, where, total)
        if len(self.seen) == self.tasks and not (self.is_certain and self.is_anchored):
            self.is_certain = self.is_anchored = is_news = True
        return is_news

    def free_mib(self, group: CardGroup) -> Sequence[int | None]:
        """Return what is free of each device's memory, as stated and as measured."""
        return free_mib(group, self.gauge.free_mib, is_anchored=self.is_anchored)

    def renew(self, node: Node, catalog: Catalog) -> None:
        """Take the node as it is now, with the same pods on it."""
        for name, amount in self.node.allocatable.items():
            self.free[name] = self.free.get(name, 0) - amount
        for name, amount in node.allocatable.items():
            self.free[name] = self.free.get(name, 0) + amount
        self.node = node
        self.cards = self.cards.renewed(node, catalog)

    def without(self, uids: frozenset[str], catalog: Catalog) -> "Occupancy":
        """Return the node as it would be without some of its pods, on a copy."""
        copy = occupancy_of(self.node, catalog, self.cards.shares_picked)
        copy.gauge = self.gauge
        for uid, wish in self.pods.items():
            if uid not in uids:
                copy.put(uid, wish)
        copy.is_certain = copy.is_anchored = False
        return copy

    def cards_milli(self, ask: Ask) -> int:
        """Return the milli-GPU that devices come to here; those of unknown size are nothing."""
        found = 0
        for device in ask.devices:
            group = self.cards.groups.get(device.resource)
            if group is not None:
                found += device.count * device.units * group.milli // group.units
        return found

    def _see(self, uid: str, where: tuple[int, ...], total: int) -> bool:
        wish = self.pods.get(uid)
        if wish is None or len(wish.ask.devices) != 1:
            return False
        (ask,) = wish.ask.devices
        group = self.cards.groups.get(ask.resource)
        if group is None or group.mode is SharingMode.MIG or len(group.free) != total:
            return False
        picks = where * ask.count if len(where) == 1 else where
        if len(picks) != ask.count:
            return False  # some of its cards do not name it
        self.seen.add(uid)
        known = (self.cards.picks_of(uid) or {}).get(ask.resource, ())
        if sorted(known) == sorted(picks):
            return False
        self.cards.put(uid, wish.ask.devices, {ask.resource: picks})
        return True

    def _ties(self, ask: DeviceAsk) -> Sequence[int | None] | None:
        """Return what is free of each device that the plugin might as well pick next, if known."""
        group = self.cards.groups.get(ask.resource)
        if group is None:
            return None
        free = self.free_mib(group)
        return [free[index] for index in likely_picks(group, ask)]

    def _add(self, wish: Wish, sign: int) -> None:
        for name, amount in wish.ask.amounts:
            self.free[name] = self.free.get(name, 0) - sign * amount
        for device in wish.ask.devices:
            self.free[device.resource] = self.free.get(device.resource, 0) - sign * device.count
        if wish.ask.devices:
            self.tasks += sign
            self.exclusive += sign * wish.is_exclusive
            for form in wish.forms:
                self.forms[form] += sign
            _count(self.companies, wish.company, sign)


def _are_alike(ties: Sequence[int | None] | None) -> bool:
    """Tell whether all devices that might be picked are as good as each other."""
    return ties is not None and len(set(ties)) <= 1


def _is_single(ties: Sequence[int | None] | None) -> bool:
    """Tell whether only one device can be picked."""
    return ties is not None and len(ties) == 1


def occupancy_of(node: Node, catalog: Catalog, picking: Picking = Picking.SPREAD) -> Occupancy:
    """Return a node with nothing on it; `picking` is its device plugin's habit with shares."""
    return Occupancy(node, read_cards(node, catalog, picking), dict(node.allocatable))


def likely_picks(group: CardGroup, ask: DeviceAsk) -> tuple[int, ...]:
    """Return the devices that the plugin's habit makes equally likely for the next pick."""
    free, units = group.free, ask.units
    if group.picking is Picking.SPREAD:
        wanted = max(free, default=0)
        if wanted < units:
            return ()
    else:
        wanted = min([each for each in free if each >= units], default=0)
    return tuple([index for index, each in enumerate(free) if each == wanted and each >= units])


def able_devices(group: CardGroup, ask: DeviceAsk) -> tuple[int, ...]:
    """Return the devices that have enough shares free for one pick."""
    units = ask.units
    return tuple([index for index, free in enumerate(group.free) if free >= units])


def _count(counter: Counter[Company], company: Company, sign: int) -> None:
    counter[company] += sign
    if not counter[company]:
        del counter[company]
