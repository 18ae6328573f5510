# SPDX-License-Identifier: Apache-2.0
"""What became of everything that was created: released, refused, or waiting with a true reason."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.prove.observer import Observer
from tests.prove.room import (
    Blocks,
    is_free,
    lacks_members,
    past_borrowing,
    past_ceiling,
    past_devices,
    stands_behind,
    unit_of,
)
from tests.prove.seen import SeenPod
from tests.prove.world import Tenant


@dataclass(slots=True)
class Created:
    """What those who create were told, by uid or by the name of what was refused."""

    made: dict[str, str] = field(default_factory=dict)
    """uid to namespace/name."""
    refused: dict[str, str] = field(default_factory=dict)
    """namespace/name to the message."""
    deleted: set[str] = field(default_factory=set)
    """uids that a person deleted."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How many ended in which way; `lost` says of each lost pod why it counts so."""

    released: int
    refused: int
    waiting: int
    deleted: int
    lost: tuple[str, ...]


# What each reason's first word claims, and when that is so. The words are those that people read.
_CLAIMS: Mapping[str, Blocks] = {
    "Ceiling": past_ceiling,
    "NeverFits": past_ceiling,
    "FixedGuarantee": past_borrowing,
    "NothingToBorrow": past_borrowing,
    "NoNodeFits": past_devices,
    "GangIncomplete": lacks_members,
    "Reserved": stands_behind,
}


def judge_ending(observer: Observer, created: Created) -> Ending:
    """Say what became of each pod that was made. Call it when all has come to rest."""
    lost: list[str] = []
    waiting = released = deleted = 0
    for uid, label in created.made.items():
        pod = observer.pods.get(uid) or observer.gone.get(uid)
        if uid in observer.releases:
            released += 1
            if _vanished(observer, created, uid):
                lost.append(f"{label}: ended while it ran, by nobody known")
        elif uid in created.deleted:
            deleted += 1
        elif pod is None:
            lost.append(f"{label}: made, and never seen")
        elif uid in observer.gone:
            lost.append(f"{label}: gone, and neither released nor deleted by anyone known")
        elif fault := fault_of_waiting(observer, pod):
            lost.append(f"{label}: {fault}")
        else:
            waiting += 1
    return Ending(released, len(created.refused), waiting, deleted, tuple(lost))


def _vanished(observer: Observer, created: Created, uid: str) -> bool:
    pod = observer.gone.get(uid)
    known = created.deleted | observer.evictions.keys()
    return pod is not None and pod.counts and uid not in known


def fault_of_waiting(observer: Observer, pod: SeenPod) -> str:
    """Return what is wrong with the reason that a waiting pod shows, or nothing."""
    tenant = observer.tenant(pod)
    if tenant is None:
        return "gated in a namespace of no tenant"
    if gone_before := _released_of_gang(observer, pod):
        return f"waits while {gone_before} of its gang run"
    if not pod.reason:
        return f"waits without a reason{_if_free(observer, tenant, pod)}"
    claim = _CLAIMS.get(pod.reason.partition(":")[0])
    if claim is None:
        return f"waits with a reason that is never true at rest: {pod.reason!r}"
    if claim(observer, tenant, unit_of(observer, pod)):
        return ""
    return f"waits with a reason that is not true: {pod.reason!r}{_if_free(observer, tenant, pod)}"


def _released_of_gang(observer: Observer, pod: SeenPod) -> int:
    """Return how many of its gang run without it.

    One that has ended may be made again: for what is short by such, the others wait for a while.
    """
    gang = (pod.namespace, pod.gang)
    return sum(
        1
        for each in observer.pods.values()
        if pod.gang and (each.namespace, each.gang) == gang and each.counts
    )


def group_refusals(refused: Mapping[str, str]) -> dict[str, int]:
    """Count refusals by their cause: Sluice's reason in brackets, else the start of the text."""
    counts: dict[str, int] = {}
    for cause in _causes(refused.values()):
        counts[cause] = counts.get(cause, 0) + 1
    return counts


def _causes(messages: Iterable[str]) -> Iterable[str]:
    for message in messages:
        found = re.search(r"\[(\w+)\]", message)
        yield found[1] if found else message[:60]


def _if_free(observer: Observer, tenant: Tenant, pod: SeenPod) -> str:
    free = is_free(observer, tenant, unit_of(observer, pod))
    return ", though quota and room are free" if free else ""
