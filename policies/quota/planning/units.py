# SPDX-License-Identifier: Apache-2.0
"""What is released together, in the order in which one tenant's go: single pods, and gangs.

Pods that are alike are one unit, of which one after another is released. Between tenants nothing
is ordered here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from policies.quota.gangs import Members
from policies.quota.planning.values import Hold, Wait
from policies.quota.planning.verdict import Piece, Verdict
from policies.quota.pods import QuotaPod
from policies.quota.queue import Age, Group, Queue, TenantQueue, age

_UNJUDGED: Final = Verdict((), ())

Order: TypeAlias = tuple[bool, int, Age]
"""Torn gangs first, then by priority, then by age."""


@dataclass(slots=True, eq=False)
class Unit:
    """Pods of one tenant. `pieces` are what one release of it is: one pod, or all of a gang.

    `verdict` is by what its tenant uses now; `place` that of its first pod among its tenant's;
    `held_until` (Unix seconds) is until when it may not borrow, 0 for no such time.
    `wait` and `holds` are kept from the last pass that could not release it.
    """

    order: Order
    pieces: tuple[Piece, ...]
    pods: tuple[QuotaPod, ...]
    gang: Members | None = None
    held_until: int = 0
    place: int = 1
    verdict: Verdict = _UNJUDGED
    wait: Wait | None = None
    holds: dict[tuple[str, str], Hold] = field(default_factory=dict)

    @property
    def created_at(self) -> int:
        """Return when the oldest of it was made."""
        return self.order[2][0]

    @property
    def is_torn(self) -> bool:
        """Tell whether it is what is left of a gang that was released in part."""
        return not self.order[0]


def units_of(queue: TenantQueue, everything: Queue) -> list[Unit]:
    """Return what of a tenant waits, in order."""
    found = [_of_group(group) for group in queue.groups]
    found += [_of_gang(gang, everything) for gang in queue.gangs.values()]
    found.sort(key=lambda unit: unit.order)
    place = 1
    for unit in found:
        unit.place = place
        place += len(unit.pods)
    return found


def next_order(unit: Unit, taken: int) -> Order:
    """Return the order of a unit of which so many pods have gone."""
    return (unit.order[0], unit.order[1], age(unit.pods[taken]))


def _of_group(group: Group) -> Unit:
    piece = Piece(group.shape, group.reclaimable)
    order = (True, -group.priority, group.first)
    return Unit(order, (piece,), group.pods, held_until=group.held_until)


def _of_gang(gang: Members, everything: Queue) -> Unit:
    pods = tuple(sorted(gang.waiting.values(), key=age))
    counts: dict[tuple[int, bool], list[QuotaPod]] = {}
    for pod in pods:
        key = (id(pod.shape), everything.is_reclaimable(pod.uid))
        counts.setdefault(key, []).append(pod)
    pieces = tuple(Piece(alike[0].shape, back, len(alike)) for (_, back), alike in counts.items())
    order = (not gang.is_torn, -max(pod.priority for pod in pods), age(pods[0]))
    # Members go in the order of their pieces, so that pools can be told by piece.
    ordered = tuple(pod for alike in counts.values() for pod in alike)
    return Unit(order, pieces, ordered, gang, max(everything.held_until(p.uid) for p in pods))


def members_by_piece(unit: Unit) -> Iterator[tuple[int, QuotaPod]]:
    """Yield the pods of one release of a gang, each with the number of its piece."""
    place = 0
    for number, piece in enumerate(unit.pieces):
        for pod in unit.pods[place : place + piece.count]:
            yield number, pod
        place += piece.count
