# SPDX-License-Identifier: Apache-2.0
"""Which nodes must not get a pod, beyond what kube-scheduler sees by itself; unknown never refuses.

kube-scheduler counts devices; it knows nothing of memory, of cards, or of what they do. Refusals
that taking pods off would not mend *in its eyes* are unresolvable: preemption does not ask
extenders again, finds that nobody has to go, and fails.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from policies.model.profile import SharingMode
from policies.placement.asks import DeviceAsk
from policies.placement.groups import CardGroup
from policies.placement.occupancy import Gauge, Occupancy, able_devices, likely_picks
from policies.placement.pods import Wish
from policies.vendors import Form

THRESHOLD: Final = 800
"""Thousandths of load from which on a node gets no more pods."""

_WITHOUT_WALL: Final = (SharingMode.TIME_SLICE, SharingMode.MPS)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node is out, in a few words for the pod's events.

    `is_for_load` tells that it will be back once its cards do less.
    """

    reason: str
    is_unresolvable: bool = True
    is_for_load: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """`threshold` of load in thousandths; `headroom_mib` is left free of each card's memory."""

    threshold: int = THRESHOLD
    headroom_mib: int = 0


DEFAULT_LIMITS: Final = Limits()


def why_refused(wish: Wish, here: Occupancy, limits: Limits = DEFAULT_LIMITS) -> Refusal | None:
    """Return why a node must not get such a pod; None if it may."""
    if not wish.ask.devices:
        return None
    for device in wish.ask.devices:
        found = _why_not_device(wish, device, here, limits)
        if found is not None:
            return found
    return _why_not_beside(wish, here)


def _why_not_device(wish: Wish, ask: DeviceAsk, here: Occupancy, limits: Limits) -> Refusal | None:
    offered = here.node.allocatable.get(ask.resource, 0)
    if offered < ask.count:
        return Refusal(f"{ask.resource}: {offered} offered, needs {ask.count}", False)
    group = here.cards.groups.get(ask.resource)
    if group is None:
        return None  # of devices that cannot be told apart nothing is known
    if wish.is_exclusive and group.mode in _WITHOUT_WALL:
        return Refusal(f"its GPUs are shared ({group.mode}), and the pod has its own")
    free = max(0, here.free.get(ask.resource, 0))
    if free < ask.count or not _has_devices(ask, group):
        return Refusal(f"{ask.resource}: {free} of {offered} free, needs {ask.count}", False)
    return (
        _why_not_mig(ask, group)
        or _why_not_memory(ask, group, here, limits)
        or why_overloaded(ask, group, here.gauge, limits)
    )


def _why_not_mig(ask: DeviceAsk, group: CardGroup) -> Refusal | None:
    """Refuse instances that no board has a place for, by the table of starts and sizes."""
    if not any(group.instances):
        return None  # an unknown board
    pairs = zip(group.free, group.instances, strict=True)
    real = sum(free for free, instance in pairs if instance is not None)
    if real >= ask.count:
        return None
    return Refusal(f"{ask.resource}: no place on its boards for {ask.count}, at most for {real}")


def _why_not_memory(
    ask: DeviceAsk, group: CardGroup, here: Occupancy, limits: Limits
) -> Refusal | None:
    """Refuse unless every device that the plugin might pick has the memory that is stated."""
    if ask.mib is None:
        return None
    might = likely_picks(group, ask) if _is_foreseen(ask, here) else able_devices(group, ask)
    often = 1 if ask.count == 1 else max(Counter(group.picks(ask) or (0,)).values())
    needed = often * ask.mib + limits.headroom_mib
    free = free_mib(group, here.gauge)
    lacking = [mib for index in might if (mib := free[index]) is not None and mib < needed]
    if not lacking:
        return None
    return Refusal(f"GPU memory: {max(0, min(lacking))} MiB free on a card, needs {needed}")


def _has_devices(ask: DeviceAsk, group: CardGroup) -> bool:
    if ask.count == 1:
        return max(group.free, default=0) >= ask.units
    return group.picks(ask) is not None


def _is_foreseen(ask: DeviceAsk, here: Occupancy) -> bool:
    return here.is_certain and ask.count == 1


def free_mib(group: CardGroup, gauge: Gauge) -> tuple[int | None, ...]:
    """Return what is free of each device's memory: by what pods state, and by what is measured.

    Which card of ours is which measured one is not known: the fullest is taken for the fullest.
    """
    measured = gauge.free_mib
    if group.mode is SharingMode.MIG or len(measured) != len(group.free):
        return tuple(group.free_mib)
    stated = group.free_mib
    order = sorted(range(len(stated)), key=lambda i: (stated[i] or 0, group.free[i], i))
    found: list[int | None] = [None] * len(stated)
    for index, mib in zip(order, sorted(measured), strict=True):
        own = stated[index]
        found[index] = mib if own is None else min(own, mib)
    return tuple(found)


def why_overloaded(
    ask: DeviceAsk, group: CardGroup, gauge: Gauge, limits: Limits
) -> Refusal | None:
    """Refuse where cards do too much: all together if they are shared, else too many of them.

    A card that is given as a whole is idle but for strangers; MIG instances have their own.
    """
    if group.mode in _WITHOUT_WALL:
        if gauge.load is None or gauge.load < limits.threshold:
            return None
        told = f"load {gauge.load / 1000:.2f}"
    else:
        if group.mode is SharingMode.MIG or not gauge.loads:
            return None
        cool = sum(load < limits.threshold for load in gauge.loads)
        if cool >= ask.count:
            return None
        told = f"{cool} of {len(gauge.loads)} cards are idle enough"
    return Refusal(
        f"GPUs are overloaded: {told}, threshold {limits.threshold / 1000:.2f}", is_for_load=True
    )


def _why_not_beside(wish: Wish, here: Occupancy) -> Refusal | None:
    """Refuse to sit beside pods that share otherwise, or that nobody may sit beside."""
    asks_shares, asks_whole = Form.SHARED in wish.forms, Form.WHOLE in wish.forms
    if asks_shares and here.forms[Form.WHOLE]:
        return Refusal("pods with whole GPUs are still on its cards")
    if asks_whole and here.forms[Form.SHARED]:
        return Refusal("pods with shares of GPUs are still on its cards")
    modes = [
        group.mode
        for device in wish.ask.devices
        if (group := here.cards.groups.get(device.resource)) is not None
    ]
    if not any(mode in _WITHOUT_WALL for mode in modes):
        return None
    if here.exclusive:
        return Refusal("a pod that shares with nobody is on its cards")
    mine = wish.company
    for theirs in here.companies:
        if not (mine.bears(theirs) and (not mine.tenant or theirs.bears(mine))):
            return Refusal("pods of others are on its cards, and the form is not shared with them")
    return None
