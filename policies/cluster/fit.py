# SPDX-License-Identifier: Apache-2.0
"""Whether nodes could hold a pod beside everything that is on them or on its way to them.

An index that is kept up to date event by event: each pod takes from one node, a bound one from
its own, a released one that is not bound yet from the one where it fits best. What is judged are
labels, taints, readiness and amounts; not volumes, host ports, other pods' affinity, or topology
spread. Quota must not be here.
"""

from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Final

from policies.cluster.candidates import Candidates, lack
from policies.cluster.constraints import admits
from policies.cluster.counting import Counting
from policies.cluster.holdings import Holding, Holdings
from policies.cluster.nodes import Node
from policies.cluster.report import FitReport, Reasons
from policies.cluster.shape import FitShape
from policies.cluster.table import NodeTable, holds
from policies.cluster.trial import Trial, Tried

__all__ = ["FitIndex", "FitReport", "FitShape", "Trial"]

_MAX_SHAPES: Final = 1024


@dataclass(slots=True)
class _Known:
    """What is kept of a shape while it is asked about."""

    candidates: Candidates
    reasons: Reasons | None = None
    counting: Counting | None = None


class FitIndex:
    """Nodes, what is free on each, and which of them could hold a shape.

    The same calls in the same order give the same choices. Shapes that nobody asks about are
    forgotten once `max_shapes` others are known.
    """

    def __init__(self, max_shapes: int = _MAX_SHAPES) -> None:
        self._max_shapes = max_shapes
        self._table = NodeTable()
        self._holdings = Holdings(self._table)
        self._known: OrderedDict[FitShape, _Known] = OrderedDict()
        self._trials: list[list[Tried]] = []

    def put_node(self, node: Node) -> None:
        """Take a node as it is now. Assumed pods that it no longer takes are placed anew."""
        seat = self._table.put(node)
        if seat is not None:
            self._holdings.room_appeared = True
            self._holdings.make_way(seat)

    def remove_node(self, name: str) -> None:
        """Forget a node. Pods bound there are remembered, should it come back."""
        seat = self._table.remove(name)
        if seat is not None:
            self._holdings.room_appeared = True
            self._holdings.make_way(seat)

    def bind(self, uid: str, node_name: str, requests: Mapping[str, int]) -> None:
        """Count a pod on the node that it is bound to, seen or not; it replaces an assumption."""
        before = self._holdings.get(uid)
        if before is not None:
            if before.shape is None and (before.node, before.requests) == (node_name, requests):
                return
            self._holdings.drop(uid)
        self._holdings.hold(uid, Holding(node_name, requests))

    def assume(self, uid: str, shape: FitShape) -> str | None:
        """Choose a node that holds the pod and take from it; None, and nothing taken, if none does.

        A pod that is bound, or known with the same shape already, stays where it is.
        """
        self._settle()
        before = self._holdings.get(uid)
        if before is not None and before.shape in (None, shape):
            return before.node or None
        self._holdings.drop(uid)
        seat = self._know(shape).candidates.best()
        if seat is None:
            if before is not None:
                self._holdings.hold(uid, before)
            return None
        self._take(uid, shape, seat.name, before)
        return seat.name

    def assume_on(self, uid: str, shape: FitShape, node: str) -> str | None:
        """Assume a pod on one node if it has room for it, else where it fits best, if anywhere."""
        return self._assumed_on(uid, shape, node) or self.assume(uid, shape)

    def place(self, uid: str, shape: FitShape, node: str = "") -> str | None:
        """Assume a pod that is released already, and so must be counted whether it fits or not.

        If it can, it takes from `node`, or stays on its own though it asks something else now. One
        that no node holds is kept, and gets the room that appears before others are asked.
        """
        found = self.assume_on(uid, shape, node)
        if found is None:
            before = self._holdings.get(uid)
            if before is None or before.shape != shape:
                self._holdings.drop(uid)
                self._holdings.hold(uid, Holding("", shape.requests, shape))
        return found

    def release(self, uid: str) -> None:
        """Give back what a pod took that is gone or has ended; an unknown one took nothing."""
        self._holdings.drop(uid)

    def fits(self, shape: FitShape) -> bool:
        """Tell whether some node could hold one more pod of the shape."""
        self._settle()
        return self._know(shape).candidates.any_feasible

    def count(self, shape: FitShape) -> int:
        """Return how many more pods of the shape all nodes together could hold."""
        self._settle()
        known = self._know(shape)
        if known.counting is None:
            known.counting = Counting(shape, self._table)
        return known.counting.count()

    def reserve(
        self, uids: Sequence[str], shape: FitShape, avoided: Container[str] = ()
    ) -> tuple[str, ...]:
        """Take room for pods that no node has room for yet, and return the nodes that it is on.

        Each is put where least is lacking, among nodes that admit it and are not to be avoided, as
        if it were free; then less than nothing may be. Within a trial, which gives it back;
        `release` does so earlier.
        """
        self._settle()
        nearest = [
            (lack(seat, shape), seat.name, seat)
            for seat in self._know(shape).candidates.admitted()
            if seat.name not in avoided
        ]
        heapify(nearest)
        found = []
        for uid in uids if nearest else ():
            _, name, seat = nearest[0]
            self._take(uid, shape, name, self._holdings.drop(uid))
            heapreplace(nearest, (lack(seat, shape), name, seat))
            found.append(name)
        return tuple(found)

    def reserve_on(self, uid: str, shape: FitShape, node_name: str) -> bool:
        """Take room for a pod on one node as if enough were free; False if it admits no such pod.

        Within a trial, which gives it back; `release` does so earlier.
        """
        self._settle()
        seat = self._table.get(node_name)
        if seat is None or seat.node is None or not admits(shape.constraints, seat.node):
            return False
        if not holds(seat.node.allocatable, shape.requests):
            return False
        self._take(uid, shape, node_name, self._holdings.drop(uid))
        return True

    def could_ever_fit(self, shape: FitShape) -> bool:
        """Tell whether some node would hold it if it were empty, ready and open."""
        return self._know(shape).candidates.any_possible

    def explain(self, shape: FitShape) -> FitReport:
        """Return how many nodes would hold one more, and the others by why they would not."""
        self._settle()
        known = self._know(shape)
        if known.reasons is None:
            known.reasons = Reasons(shape, self._table)
        return known.reasons.report()

    def trial(self) -> "Trial":
        """Return a context at whose end its assumptions are undone, unless they are kept.

        Trials may be nested; one that is kept within another is undone with that other. Room that
        appears meanwhile goes to pods that wait for it afterwards.
        """
        self._settle()
        return Trial(self._trials, self._holdings)

    def node_of(self, uid: str) -> str | None:
        """Return the node that a pod takes from; None if it takes from none."""
        self._settle()
        holding = self._holdings.get(uid)
        return (holding.node or None) if holding is not None else None

    def unplaced(self) -> tuple[str, ...]:
        """Return the released pods that no node holds."""
        self._settle()
        return tuple(uid for waiting in self._holdings.unplaced.values() for uid in waiting)

    def free(self, node_name: str) -> Mapping[str, int]:
        """Return what is free on a node by name, without zeros; negative where too much is taken.

        A node that is not known has nothing.
        """
        self._settle()
        seat = self._table.get(node_name)
        return dict(seat.free) if seat is not None and seat.node is not None else {}

    def _assumed_on(self, uid: str, shape: FitShape, node: str) -> str | None:
        """Assume a pod that is not bound on one node, or else on its own, if that takes it."""
        self._settle()
        before = self._holdings.get(uid)
        if before is not None and before.shape in (None, shape):
            return None
        name = node or (before.node if before is not None else "")
        if not name:
            return None
        self._holdings.drop(uid)
        if self._takes(name, shape):
            self._take(uid, shape, name, before)
            return name
        if before is not None:
            self._holdings.hold(uid, before)
        return None

    def _takes(self, name: str, shape: FitShape) -> bool:
        seat = self._table.get(name)
        return (
            seat is not None
            and seat.node is not None
            and admits(shape.constraints, seat.node)
            and holds(seat.free, shape.requests)
        )

    def _take(self, uid: str, shape: FitShape, node: str, before: Holding | None) -> None:
        """Assume a pod that is not held on a node, and note it for the trial, if there is one."""
        made = Holding(node, shape.requests, shape)
        self._holdings.hold(uid, made)
        if self._trials:
            self._trials[-1].append(Tried(uid, made, before))

    def _know(self, shape: FitShape) -> _Known:
        found = self._known.get(shape)
        if found is not None:
            self._known.move_to_end(shape)
            return found
        found = self._known[shape] = _Known(Candidates(shape, self._table))
        if len(self._known) > self._max_shapes:
            self._known.popitem(last=False)
        return found

    def _settle(self) -> None:
        """Place what waits for room, shape by shape, if some may have appeared."""
        if self._trials or not self._holdings.room_appeared:
            return
        self._holdings.room_appeared = False
        for shape, waiting in list(self._holdings.unplaced.items()):
            candidates = self._know(shape).candidates
            for uid, holding in list(waiting.items()):
                seat = candidates.best()
                if seat is None:
                    break
                self._holdings.move(uid, holding, seat.name)
