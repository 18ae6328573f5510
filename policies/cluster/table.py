# SPDX-License-Identifier: Apache-2.0
"""Nodes in slots, with what is free on each, and which slots changed after which moment.

Whoever keeps judgements of nodes looks again only at what changed since it looked last. Pods and
shapes must not be here.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from policies.cluster.nodes import Node

S = TypeVar("S", bound=Hashable)

Pairs = Iterable[tuple[str, int]]
"""Amounts by resource name."""

_NO_SLOT: Final = -1


@dataclass(slots=True)
class Seat:
    """A node's place: `free` is what it offers less what pods take, negative where too much is.

    `node` is None where pods are known to be on a node that has not been seen. `pods` is how many
    take from it. A name that is not in `free` has nothing.
    """

    name: str
    node: Node | None = None
    slot: int = _NO_SLOT
    pods: int = 0
    free: dict[str, int] = field(default_factory=dict)

    def add(self, amounts: Pairs, sign: int) -> None:
        """Add amounts to what is free, or take them (-1)."""
        free = self.free
        for name, amount in amounts:
            left = free.get(name, 0) + sign * amount
            if left:
                free[name] = left
            else:
                free.pop(name, None)


def holds(amounts: Mapping[str, int], requests: Pairs) -> bool:
    """Tell whether the amounts are enough for the requests."""
    for name, amount in requests:  # noqa: SIM110 - a generator costs twice as much, for each node
        if amounts.get(name, 0) < amount:
            return False
    return True


class ChangeLog(Generic[S]):
    """The latest change of each slot, in the order of time; `now` counts changes.

    Slots may be anything that can be hashed.
    """

    def __init__(self) -> None:
        self.now = 0
        self._latest: OrderedDict[S, int] = OrderedDict()

    def touch(self, slot: S) -> None:
        """Note that something changed there."""
        self.now += 1
        self._latest[slot] = self.now
        self._latest.move_to_end(slot)

    def drop(self, slot: S) -> None:
        """Forget a slot: whoever keeps something of it has to be told otherwise."""
        self._latest.pop(slot, None)

    def since(self, moment: int) -> Iterator[S]:
        """Yield the slots that changed after `now` was this."""
        for slot, at in reversed(self._latest.items()):
            if at <= moment:
                return
            yield slot


class NodeTable:
    """Seats by name and by slot; slots of nodes that are gone are used again.

    `nature` logs changes of nodes themselves, `room` changes of what is free.
    """

    def __init__(self) -> None:
        self.seats: list[Seat | None] = []
        self.nature: ChangeLog[int] = ChangeLog()
        self.room: ChangeLog[int] = ChangeLog()
        self._by_name: dict[str, Seat] = {}
        self._vacant: list[int] = []

    def get(self, name: str) -> Seat | None:
        """Return the seat of this name, None where neither a node nor a pod on it is known."""
        return self._by_name.get(name)

    def put(self, node: Node) -> Seat | None:
        """Take a node as it is now; None if nothing of it has changed."""
        seat = self._seat(node.name)
        if seat.node == node:
            return None
        if seat.node is None:
            seat.slot = self._vacant.pop() if self._vacant else len(self.seats)
            self.seats[seat.slot : seat.slot + 1] = [seat]
        else:
            seat.add(seat.node.allocatable.items(), -1)
        seat.node = node
        seat.add(node.allocatable.items(), 1)
        self.nature.touch(seat.slot)
        return seat

    def remove(self, name: str) -> Seat | None:
        """Forget a node; the pods on it go on taking, should it come back. None if unknown."""
        seat = self._by_name.get(name)
        if seat is None or seat.node is None:
            return None
        seat.add(seat.node.allocatable.items(), -1)
        self.seats[seat.slot] = None
        self.nature.touch(seat.slot)
        self._vacant.append(seat.slot)
        seat.node, seat.slot = None, _NO_SLOT
        self._drop_unused(seat)
        return seat

    def take(self, name: str, requests: Pairs) -> Seat:
        """Take a pod's requests from a node, known or not."""
        seat = self._seat(name)
        seat.pods += 1
        self._move(seat, requests, -1)
        return seat

    def give(self, name: str, requests: Pairs) -> None:
        """Give back what `take` took."""
        seat = self._by_name[name]
        seat.pods -= 1
        self._move(seat, requests, 1)
        self._drop_unused(seat)

    def _move(self, seat: Seat, requests: Pairs, sign: int) -> None:
        seat.add(requests, sign)
        if seat.node is not None:
            self.room.touch(seat.slot)

    def _seat(self, name: str) -> Seat:
        seat = self._by_name.get(name)
        if seat is None:
            seat = self._by_name[name] = Seat(name)
        return seat

    def _drop_unused(self, seat: Seat) -> None:
        if seat.node is None and not seat.pods:
            del self._by_name[seat.name]
