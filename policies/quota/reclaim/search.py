# SPDX-License-Identifier: Apache-2.0
"""Finds room for one group after another: the node that costs least, pod by pod.

Bids of nodes are kept in a heap for each kind of need and looked at again only when they come up,
since a plan makes them dearer, and nodes whose room has grown are put in front again.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from policies.quota.reclaim.bids import Bid, BidKey, Need, bid
from policies.quota.reclaim.board import Board
from policies.quota.reclaim.snapshot import EntitlementKey, Group, Member
from policies.quota.reclaim.units import Unit


class _NodeUnits:
    """The units with a pod on one node, and the best of what they have, for bounds."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.keys: set[EntitlementKey] = set()
        self.freeable: dict[str, int] = {}
        self.is_untold = 1
        self.order: tuple[int, ...] = ()
        self._counted: set[str] = set()

    def add(self, unit: Unit, node: str) -> None:
        """Take a unit of this node."""
        self.units.append(unit)
        order = unit.order[:-1]
        self.order = tuple(map(min, self.order, order)) if self.order else order
        if unit.is_told:
            self.is_untold = 0
        for piece in unit.pieces:
            self.keys.add(piece.key)
            if piece.node == node and piece.pod.uid not in self._counted:
                self._counted.add(piece.pod.uid)
                for name, amount in piece.pod.shape.fit.requests:
                    self.freeable[name] = self.freeable.get(name, 0) + amount


class _Offers:
    """The nodes that admit a shape, the cheapest first as far as is known."""

    def __init__(self, board: Board, need: Need, by_node: Mapping[str, _NodeUnits]) -> None:
        self._board = board
        self._need = need
        self._by_node = by_node
        self._known = {
            name: self._at_least(name)
            for name in board.snapshot.nodes
            if board.admits(need.shape, name) and self._could(name)
        }
        self._heap = [(key, name) for name, key in self._known.items()]
        heapify(self._heap)

    def grown(self, node: str) -> None:
        """Look at a node again, whose room has grown."""
        if self._board.admits(self._need.shape, node):
            self._put((), node)

    def best(self) -> Bid | None:
        """Return the cheapest bid, None where no node can make any."""
        while self._heap:
            key, node = heappop(self._heap)
            if self._known.get(node) != key:
                continue  # outdated
            del self._known[node]
            here = self._by_node.get(node)
            found = bid(self._board, node, here.units if here else (), self._need)
            if found is not None:
                self._put(found.key, node)
                if found.key <= key or self._heap[0] == (found.key, node):
                    return found
        return None

    def _put(self, key: BidKey, node: str) -> None:
        if self._known.get(node) != key:
            self._known[node] = key
            heappush(self._heap, (key, node))

    def _could(self, name: str) -> bool:
        """Tell whether a node would have room if all went that may."""
        units = self._by_node.get(name)
        most = units.freeable if units is not None else {}
        room = self._board.room(name)
        return all(
            room.get(n, 0) + most.get(n, 0) >= amount for n, amount in self._need.shape.requests
        )

    def _at_least(self, name: str) -> BidKey:
        """Return a key below which no bid of the node is: the best of each part of `Bid.key`."""
        units = self._by_node.get(name)
        if units is None or self._board.has_room(self._need.shape, name):
            return ()
        books = self._board.books
        return (
            0,
            min(books.entitlements[key].priority for key in units.keys),
            0,
            units.is_untold,
            1,
            min(-books.saturation(key) for key in units.keys),
            *units.order,
        )


class Search:
    """Chooses units for groups on a board."""

    def __init__(self, board: Board, units: Iterable[Unit]) -> None:
        self._board = board
        self._by_node: dict[str, _NodeUnits] = {}
        for unit in units:
            for node in {piece.node for piece in unit.pieces if piece.node}:
                self._by_node.setdefault(node, _NodeUnits()).add(unit, node)
        self._offers: dict[Need, _Offers] = {}

    def find(self, group: Group, givers: frozenset[EntitlementKey]) -> bool:
        """Place all of a group and choose who goes for it; or change nothing and tell so."""
        mark = self._board.mark()
        for member in _largest_first(group.members):
            need = Need(member.fit, member.amount.milli, givers)
            found = self._offers_of(need).best()
            if found is None:
                self.back_to(mark)
                return False
            for unit in found.units:
                self._board.choose(unit, group.key, found.node)
            self._board.place(group.key, member, found.node)
            self._note_growth()
        return True

    def _offers_of(self, need: Need) -> _Offers:
        self._note_growth()
        found = self._offers.get(need)
        if found is None:
            found = self._offers[need] = _Offers(self._board, need, self._by_node)
        return found

    def _note_growth(self) -> None:
        grown, self._board.grown = set(self._board.grown), []
        for offers in self._offers.values():
            for node in grown:
                offers.grown(node)

    def back_to(self, mark: int) -> None:
        """Take back everything that was done on the board since a mark."""
        if self._board.mark() == mark:
            return
        self._board.undo(mark)
        self._offers.clear()  # what was dear may be cheap again


def _largest_first(members: Iterable[Member]) -> Sequence[Member]:
    return sorted(members, key=lambda m: (-m.amount.milli, m.pod.name))
