# SPDX-License-Identifier: Apache-2.0
"""Which nodes must not get a pod, beyond what kube-scheduler sees by itself; unknown never refuses.

kube-scheduler counts devices; it knows nothing of memory, of cards, or of what they do. Refusals
that taking pods off would not mend *in its eyes* are unresolvable: preemption does not ask
extenders again, finds that nobody has to go, and fails.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from policies.model.profile import SharingMode
from policies.placement.asks import DeviceAsk
from policies.placement.groups import CardGroup
from policies.placement.occupancy import Gauge, Occupancy, able_devices, likely_picks
from policies.placement.pods import Wish
from policies.vendors import Form

THRESHOLD: Final = 800
"""Thousandths of load from which on a node gets no more pods."""

_REASONS: Final = 4096
_WITHOUT_WALL: Final = (SharingMode.TIME_SLICE, SharingMode.MPS)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node is out, in a few words for the pod's events.

    `is_for_load` tells that it will be back once its cards do less; or hold less, so that
    `needed_mib` are free, where that is not 0.
    """

    reason: str
    is_unresolvable: bool = True
    is_for_load: bool = False
    needed_mib: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """`threshold` of load in thousandths; `headroom_mib` is left free of each card's memory."""

    threshold: int = THRESHOLD
    headroom_mib: int = 0


DEFAULT_LIMITS: Final = Limits()

_BESIDE_WHOLE: Final = Refusal("pods with whole GPUs are still on its cards")
_BESIDE_SHARES: Final = Refusal("pods with shares of GPUs are still on its cards")
_BESIDE_EXCLUSIVE: Final = Refusal("a pod that shares with nobody is on its cards")
_BESIDE_OTHERS: Final = Refusal(
    "pods of others are on its cards, and the form is not shared with them"
)


class Standing(NamedTuple):
    """How a node stands to all pods that ask for so many devices of one resource.

    Each field refuses some of them: `short` and `lacking` all, `overloaded` all but by other
    reasons before. `mode` is None where the devices cannot be told apart, so that no more is known.
    `least_mib` is free on the worst card that might be picked, and `often` of the picks may hit it;
    `stated_mib` is what would be if nothing were measured.
    """

    short: Refusal | None = None
    mode: SharingMode | None = None
    lacking: Refusal | None = None
    least_mib: int | None = None
    stated_mib: int | None = None
    often: int = 1
    overloaded: Refusal | None = None


_UNKNOWN: Final = Standing()


def why_refused(wish: Wish, here: Occupancy, limits: Limits = DEFAULT_LIMITS) -> Refusal | None:
    """Return why a node must not get such a pod; None if it may."""
    standings = [standing_of(device, here, limits) for device in wish.ask.devices]
    return judge(wish, standings, here, limits)


def standing_of(ask: DeviceAsk, here: Occupancy, limits: Limits = DEFAULT_LIMITS) -> Standing:
    """Return how a node stands to whoever asks for these devices; stated memory is not looked at.

    It holds until the node, a pod on it, or its gauge changes.
    """
    offered = here.node.allocatable.get(ask.resource, 0)
    if offered < ask.count:
        return Standing(_few(f"{ask.resource}: {offered} offered, needs {ask.count}"))
    group = here.cards.groups.get(ask.resource)
    if group is None:
        return _UNKNOWN
    free = max(0, here.free.get(ask.resource, 0))
    if free < ask.count or not _has_devices(ask, group):
        reason = f"{ask.resource}: {free} of {offered} free, needs {ask.count}"
        return Standing(mode=group.mode, lacking=_few(reason))
    least, stated = _least_mib(ask, group, here)
    return Standing(
        mode=group.mode,
        lacking=_why_not_mig(ask, group),
        least_mib=least,
        stated_mib=stated,
        often=_often(ask, group),
        overloaded=why_overloaded(ask, group, here.gauge, limits),
    )


def judge(
    wish: Wish, standings: Sequence[Standing], here: Occupancy, limits: Limits = DEFAULT_LIMITS
) -> Refusal | None:
    """Return why a node must not get such a pod, by how it stands to each device that it asks."""
    is_walled = True
    for ask, standing in zip(wish.ask.devices, standings, strict=True):
        if standing.short is not None:
            return standing.short
        mode = standing.mode
        if mode is None:
            continue
        if mode in _WITHOUT_WALL:
            is_walled = False
            if wish.is_exclusive:
                return _are_shared(mode)
        if standing.lacking is not None:
            return standing.lacking
        if ask.mib is not None and standing.least_mib is not None:
            needed = standing.often * ask.mib + limits.headroom_mib
            if standing.least_mib < needed:
                stated = standing.stated_mib
                is_measured = stated is None or stated >= needed
                return _full(max(0, standing.least_mib), needed, is_measured)
        if standing.overloaded is not None:
            return standing.overloaded
    return _why_not_beside(wish, here, is_walled=is_walled) if here.tasks else None


# Thousands of nodes have the same reason for hundreds of kinds of pods.
@lru_cache(_REASONS)
def _few(reason: str) -> Refusal:
    return Refusal(reason, is_unresolvable=False)


@lru_cache(_REASONS)
def _full(free_mib: int, needed_mib: int, is_measured: bool) -> Refusal:
    reason = f"GPU memory: {free_mib} MiB free on a card, needs {needed_mib}"
    return Refusal(reason, is_for_load=is_measured, needed_mib=needed_mib)


@lru_cache(_REASONS)
def _are_shared(mode: SharingMode) -> Refusal:
    return Refusal(f"its GPUs are shared ({mode}), and the pod has its own")


def _why_not_mig(ask: DeviceAsk, group: CardGroup) -> Refusal | None:
    """Refuse instances that no board has a place for, by the table of starts and sizes."""
    if not any(group.instances):
        return None  # an unknown board
    pairs = zip(group.free, group.instances, strict=True)
    real = sum(free for free, instance in pairs if instance is not None)
    if real >= ask.count:
        return None
    return Refusal(f"{ask.resource}: no place on its boards for {ask.count}, at most for {real}")


def _least_mib(ask: DeviceAsk, group: CardGroup, here: Occupancy) -> tuple[int | None, int | None]:
    """Return what is free on the worst device that the plugin might pick, and as pods state it.

    All of them must have the memory that a pod states; None where it is known of none.
    """
    is_foreseen = here.is_certain and ask.count == 1
    might = likely_picks(group, ask) if is_foreseen else able_devices(group, ask)
    free, stated = here.free_mib(group), group.free_mib
    known = [mib for index in might if (mib := free[index]) is not None]
    by_pods = [mib for index in might if (mib := stated[index]) is not None]
    return min(known, default=None), min(by_pods, default=None)


def _often(ask: DeviceAsk, group: CardGroup) -> int:
    """Return how many of the picks may hit one device."""
    return 1 if ask.count == 1 else max(Counter(group.picks(ask) or (0,)).values())


def _has_devices(ask: DeviceAsk, group: CardGroup) -> bool:
    if ask.count == 1:
        return max(group.free, default=0) >= ask.units
    return group.picks(ask) is not None


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


def _why_not_beside(wish: Wish, here: Occupancy, *, is_walled: bool) -> Refusal | None:
    """Refuse to sit beside pods that share otherwise, or that nobody may sit beside.

    `is_walled`: what the pod asks keeps it apart from all others.
    """
    asks_shares, asks_whole = Form.SHARED in wish.forms, Form.WHOLE in wish.forms
    if asks_shares and here.forms[Form.WHOLE]:
        return _BESIDE_WHOLE
    if asks_whole and here.forms[Form.SHARED]:
        return _BESIDE_SHARES
    if is_walled:
        return None
    if here.exclusive:
        return _BESIDE_EXCLUSIVE
    mine = wish.company
    for theirs in here.companies:
        if not (mine.bears(theirs) and (not mine.tenant or theirs.bears(mine))):
            return _BESIDE_OTHERS
    return None
