# SPDX-License-Identifier: Apache-2.0
"""Every pod that takes room, how much and where. On which node one fits is not decided here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from policies.cluster.constraints import admits
from policies.cluster.shape import FitShape
from policies.cluster.table import NodeTable, Seat

K = TypeVar("K", str, FitShape)


@dataclass(slots=True)
class Holding:
    """What a pod takes, and from which node; `node` is empty while none has room for it.

    `shape` is None once it is bound; until then it may be moved.
    """

    node: str
    requests: Mapping[str, int] | tuple[tuple[str, int], ...]
    shape: FitShape | None = None

    @property
    def pairs(self) -> Iterable[tuple[str, int]]:
        """Return the amounts by resource name."""
        return self.requests if isinstance(self.requests, tuple) else self.requests.items()


class Holdings:
    """Holdings by uid, those that are assumed by node, and those without a node by shape.

    `room_appeared` tells that one without a node may have found one; whoever tries them resets it.
    """

    def __init__(self, table: NodeTable) -> None:
        self.room_appeared = False
        self._table = table
        self._by_uid: dict[str, Holding] = {}
        self._assumed: dict[str, dict[str, Holding]] = {}
        self._unplaced: dict[FitShape, dict[str, Holding]] = {}

    def get(self, uid: str) -> Holding | None:
        """Return what a pod takes, None if it is not known."""
        return self._by_uid.get(uid)

    @property
    def unplaced(self) -> Mapping[FitShape, Mapping[str, Holding]]:
        """Those without a node by shape, in the order in which they came."""
        return self._unplaced

    def hold(self, uid: str, holding: Holding) -> Seat | None:
        """Take for a pod that is not held yet and return from where.

        A bound pod is there, room or not: assumed ones make way for it.
        """
        self._by_uid[uid] = holding
        if holding.shape is None:
            seat = self._table.take(holding.node, holding.pairs)
            self.make_way(seat)
            return seat
        if not holding.node:
            self._unplaced.setdefault(holding.shape, {})[uid] = holding
            return None
        self._assumed.setdefault(holding.node, {})[uid] = holding
        return self._table.take(holding.node, holding.pairs)

    def drop(self, uid: str) -> Holding | None:
        """Give back what a pod takes and forget it; None if it is not known."""
        holding = self._by_uid.pop(uid, None)
        if holding is None:
            return None
        if holding.shape is not None and not holding.node:
            _remove(self._unplaced, holding.shape, uid)
            return holding
        if holding.shape is not None:
            _remove(self._assumed, holding.node, uid)
        self._table.give(holding.node, holding.pairs)
        self.room_appeared = True
        return holding

    def make_way(self, seat: Seat) -> None:
        """Take the assumed pods off a node that no longer takes them, the latest first."""
        for uid, holding in reversed(list(self._assumed.get(seat.name, {}).items())):
            if not _may_stay(holding, seat):
                self.move(uid, holding, "")

    def move(self, uid: str, holding: Holding, node: str) -> None:
        """Let an assumed pod take from another node, or from none."""
        self.drop(uid)
        holding.node = node
        self.hold(uid, holding)


def _may_stay(holding: Holding, seat: Seat) -> bool:
    return (
        seat.node is not None
        and holding.shape is not None
        and admits(holding.shape.constraints, seat.node)
        and all(seat.free.get(name, 0) >= 0 for name, _ in holding.pairs)
    )


def _remove(groups: dict[K, dict[str, Holding]], key: K, uid: str) -> None:
    """Take a pod out of its group, and the group away with its last."""
    group = groups[key]
    del group[uid]
    if not group:
        del groups[key]
