# SPDX-License-Identifier: Apache-2.0
"""Finds room for one group after another: the node that costs least, pod by pod.

For each kind of need, nodes stand in lines by whom they would take from: within a line the order
does not depend on who is how full, which changes with every choice. Bids are looked at again only
when they come up, since a plan makes them dearer, and nodes whose room has grown are put in front.
"""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Final, TypeAlias

from policies.quota.reclaim.bids import Bid, BidKey, Need, bid
from policies.quota.reclaim.board import Board
from policies.quota.reclaim.books import Books
from policies.quota.reclaim.snapshot import EntitlementKey, Group, Member
from policies.quota.reclaim.stock import Stock
from policies.quota.reclaim.units import Unit

_MOST_LOOKS: Final = 64
"""So many nodes are looked at beside the best found so far, where bounds do not tell it apart."""
_FULL_AT: Final = 5
"""Where in `Bid.key` stands who is fuller; `_TIES` at its end only tell equals apart."""
_TIES: Final = 2

_Line: TypeAlias = list[tuple[BidKey, str]]
"""A heap of keys without who is fuller, each with its node."""
_NOBODY: Final[EntitlementKey] = ("", "")
"""Names the line of nodes where nobody need go, or that must be looked at first."""


class _Lines:
    """Heaps of what nodes would take, by whose fullness decides; the cheapest of all in front."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._lines: dict[EntitlementKey, _Line] = {}
        self._tops: list[tuple[BidKey, EntitlementKey]] = []
        self._known: dict[EntitlementKey, BidKey] = {}
        """What stands in `_tops` of each line; other entries there are outdated."""

    def begin(self, giver: EntitlementKey, line: _Line) -> None:
        """Have a line that is in order."""
        self._lines[giver] = line
        self._show(giver)

    def put(self, giver: EntitlementKey, key: BidKey, node: str) -> None:
        """Let a node stand in a line."""
        line = self._lines.setdefault(giver, [])
        heappush(line, (key, node))
        if line[0][1] == node:
            self._show(giver)

    def refresh(self) -> None:
        """Know that some may be less full than before."""
        for giver in self._lines:
            self._show(giver)

    def least(self) -> BidKey | None:
        """Return the key below which nothing in any line is, None where nobody stands in one."""
        tops = self._tops
        while tops:
            key, giver = tops[0]
            if self._known.get(giver) != key:
                heappop(tops)
                continue
            line = self._lines[giver]
            now = self._whole(giver, line[0][0]) if line else None
            if now == key:
                return key
            heappop(tops)
            del self._known[giver]
            self._show(giver)
        return None

    def pop(self) -> str:
        """Return the node of the least key, which is the first then no more."""
        giver = self._tops[0][1]
        line = self._lines[giver]
        _, node = heappop(line)
        while line and line[0][1] == node:
            heappop(line)
        return node

    def _show(self, giver: EntitlementKey) -> None:
        line = self._lines[giver]
        if line:
            key = self._known[giver] = self._whole(giver, line[0][0])
            heappush(self._tops, (key, giver))

    def _whole(self, giver: EntitlementKey, key: BidKey) -> BidKey:
        if giver == _NOBODY:
            return key
        return (*key[:_FULL_AT], -self._books.saturation(giver), *key[_FULL_AT:])


class _Offers:
    """What nodes would take for one kind of need, the cheapest first as far as is known."""

    def __init__(self, board: Board, need: Need, stock: Stock, roomy: Iterable[str]) -> None:
        self._board = board
        self._need = need
        self._stock = stock
        self._givers = tuple(sorted(need.givers))
        self._lines = _Lines(board.books)
        self._lines.begin(_NOBODY, [((), node) for node in sorted(roomy)])
        entitlements = board.books.entitlements
        for key in self._givers:
            # No bid that takes the unit of such a rank, or a worse one, is below this.
            begin = (0, entitlements[key].priority, 0)
            front = stock.front(key)
            self._lines.begin(key, [((*begin, r[0], 1, *r[1:]), node) for r, node in front])

    def renew(self, nodes: Iterable[str]) -> None:
        """Look at nodes again that may be cheaper than they were."""
        for node in nodes:
            self._lines.put(_NOBODY, (), node)
        self._lines.refresh()

    def best(self, looked: list[tuple["_Offers", str]]) -> Bid | None:
        """Return the cheapest bid, None where no node can make any. Notes whom it looked at."""
        best: Bid | None = None
        looks = 0
        while looks < _MOST_LOOKS and (least := self._lines.least()) is not None:
            if best is not None and _is_at_most(best, least):
                break
            node = self._lines.pop()
            looked.append((self, node))
            found = self._bid(node)
            if found is None:
                continue
            self._put(found)
            if best is None or found.key < best.key:
                best = found
            else:
                looks += 1
        return best

    def _bid(self, node: str) -> Bid | None:
        board, shape = self._board, self._need.shape
        if not board.admits(shape, node):
            return None
        if board.has_room(shape, node):
            return bid(board, node, (), self._need)
        room, most = board.room(node), self._stock.freeable(node, self._givers)
        if any(room.get(n, 0) + most.get(n, 0) < amount for n, amount in shape.requests):
            return None
        return bid(board, node, tuple(self._stock.units(node, self._givers)), self._need)

    def _put(self, found: Bid) -> None:
        givers = {piece.key for unit in found.units for piece in unit.pieces}
        if not givers:
            self._lines.put(_NOBODY, found.key, found.node)
            return
        giver = min(givers, key=lambda key: (self._board.books.saturation(key), key))
        key = (*found.key[:_FULL_AT], *found.key[_FULL_AT + 1 :])
        self._lines.put(giver, key, found.node)


def _is_at_most(found: Bid, least: BidKey) -> bool:
    """Tell whether a bid is as good as any can be: among equals of one pod any is."""
    is_single = len(found.units) == 1 and len(found.units[0].pieces) == 1
    return found.key <= least or (is_single and found.key[:-_TIES] <= least)


class Search:
    """Chooses units for groups on a board."""

    def __init__(self, board: Board, units: Iterable[Unit]) -> None:
        self._board = board
        self._stock = Stock(units)
        self._roomy = dict.fromkeys(board.with_devices())
        """Nodes that have, or had, devices left."""
        self._offers: dict[Need, tuple[_Offers, int]] = {}
        """Each with how much of `_growth` it knows."""
        self._growth: list[str] = []
        self._looked: list[tuple[_Offers, str]] = []

    def open_kept(self, group: Group) -> None:
        """Count the room as free that is kept for a group, and look there again.

        A node that owed it what is freed made no bid to others, even if nothing is left on it.
        """
        self._growth.extend(self._board.open_kept(group))

    def find(self, group: Group, givers: frozenset[EntitlementKey]) -> bool:
        """Place all of a group and choose who goes for it; or change nothing and tell so."""
        mark = self._board.mark()
        self._looked.clear()
        self._note_growth()
        for member in _largest_first(group.members):
            need = Need(member.fit, member.amount.milli, givers)
            found = self._offers_of(need).best(self._looked)
            if found is None:
                self.back_to(mark)
                return False
            if self._board.mark() == mark:
                self._looked.clear()  # what was looked at before anything changed is true still
            for unit in found.units:
                self._board.choose(unit, group.key, found.node)
            self._board.place(group.key, member, found.node)
            self._note_growth()
        return True

    def _offers_of(self, need: Need) -> _Offers:
        found, known = self._offers.get(need, (None, 0))
        if found is None:
            found = _Offers(self._board, need, self._stock, self._roomy)
        elif len(self._growth) > known:
            found.renew(dict.fromkeys(self._growth[known:]))
        self._offers[need] = found, len(self._growth)
        return found

    def _note_growth(self) -> None:
        """Note the nodes that have more room than before, not those where it is taken already."""
        for node in dict.fromkeys(self._board.grown):
            if self._board.has_devices(node):
                self._roomy[node] = None
                self._growth.append(node)
        self._board.grown = []

    def back_to(self, mark: int) -> None:
        """Take back everything that was done on the board since a mark."""
        if self._board.mark() == mark:
            return
        self._board.undo(mark)
        self._board.grown = []
        for offers, node in self._looked:
            offers.renew((node,))  # it may be cheap again
        self._looked.clear()


def _largest_first(members: Iterable[Member]) -> Sequence[Member]:
    return sorted(members, key=lambda m: (-m.amount.milli, m.pod.name))
