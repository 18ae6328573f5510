# SPDX-License-Identifier: Apache-2.0
"""Which units would have to go so that one node could hold one pod, and how dear that is.

Greedy in the order of giving back, then whoever turns out not to be needed is spared again. A unit
that frees nothing of what lacks is never part of it. Which node is best is decided elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from policies.cluster.shape import FitShape
from policies.quota.reclaim.board import Board
from policies.quota.reclaim.snapshot import EntitlementKey
from policies.quota.reclaim.units import Piece, Unit, amounts

BidKey: TypeAlias = tuple[int | str, ...]
"""The lower, the rather. Where nobody need go it begins with -1; empty is below all."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a node is asked for: room for a shape of so many milli-GPU, at whose expense.

    Units may be taken back only from entitlements of `givers`.
    """

    shape: FitShape
    milli: int
    givers: frozenset[EntitlementKey]


@dataclass(frozen=True, slots=True)
class Bid:
    """Units of a node that are enough, in the order in which they were found."""

    key: BidKey
    node: str
    units: tuple[Unit, ...]


def bid(board: Board, node: str, units: Sequence[Unit], need: Need) -> Bid | None:
    """Return the best that a node can offer, None where nothing would be enough."""
    if not _lacking(board, node, need.shape, ()):
        return Bid((-1, _left_over(board, node, need.shape)), node, ())
    if board.is_owing(node):
        return None
    usable = [unit for unit in units if _is_usable(board, unit, need)]
    ranked = sorted(usable, key=lambda unit: _rank(board, unit, need))
    found = _enough(board, node, ranked, need.shape)
    if found is None or len(found) > 1:
        # One that is large enough alone may be better, or all that its tenant can spare.
        larger = sorted(ranked, key=lambda unit: -_freed(board, node, unit, need.shape))
        other = _enough(board, node, larger, need.shape)
        bids = [_priced(board, node, chosen, need) for chosen in (found, other) if chosen]
        return min(bids, key=lambda b: b.key, default=None)
    return _priced(board, node, found, need)


def _left_over(board: Board, node: str, shape: FitShape) -> int:
    """Return what a pod would leave of the devices it asks: the tightest node is the best."""
    room, asked = board.room(node), dict(shape.requests)
    return sum(room.get(name, 0) - asked[name] for name in shape.devices)


def _is_usable(board: Board, unit: Unit, need: Need) -> bool:
    left = board.left_of(unit)
    return bool(left) and all(piece.key in need.givers for piece in left)


def _rank(board: Board, unit: Unit, need: Need) -> tuple[object, ...]:
    """Put units in the order of giving back: tenants first, then pods.

    Before it counts who is fuller, a unit of many times what is needed comes after smaller ones.
    """
    keys = {piece.key for piece in unit.pieces}
    return (
        max(board.books.entitlements[key].priority for key in keys),
        not unit.is_told,
        _times(sum(piece.amount.milli for piece in board.left_of(unit)), need),
        -min(board.books.saturation(key) for key in keys),
        unit.order,
    )


def _enough(
    board: Board, node: str, ranked: Sequence[Unit], shape: FitShape
) -> tuple[Unit, ...] | None:
    """Add units until the shape fits, then spare those that it fits without.

    Those that disruption budgets would refuse, or refuse beside the others, come last.
    """
    taken: list[Unit] = []
    lacking = _lacking(board, node, shape, taken)
    for with_blocked in (False, True):
        for unit in ranked:
            if not lacking:
                break
            if unit in taken or not _helps(board, node, unit, lacking):
                continue
            both = [*taken, unit]
            if _can_spare(board, both) and (with_blocked or not _is_blocked(board, both)):
                taken = both
                lacking = _lacking(board, node, shape, taken)
    if lacking:
        return None
    for unit in reversed(taken[:-1]):
        rest = [other for other in taken if other is not unit]
        is_part = unit.is_surplus and any(other.gang == unit.gang for other in rest)
        if not is_part and not _lacking(board, node, shape, rest):
            taken = rest
    return tuple(taken)


def _pieces(board: Board, units: Iterable[Unit]) -> dict[str, Piece]:
    return {piece.pod.uid: piece for unit in units for piece in board.left_of(unit)}


def _lacking(board: Board, node: str, shape: FitShape, taken: Iterable[Unit]) -> Mapping[str, int]:
    """Return what the node lacks for the shape once these units are gone."""
    room = board.room(node)
    lacking = {
        name: amount - room.get(name, 0)
        for name, amount in shape.requests
        if amount > room.get(name, 0)
    }
    if not lacking:
        return lacking
    for piece in _pieces(board, taken).values():
        if piece.node == node:
            for name, amount in piece.pod.shape.fit.requests:
                if name in lacking:
                    lacking[name] -= amount
    return {name: amount for name, amount in lacking.items() if amount > 0}


def _helps(board: Board, node: str, unit: Unit, lacking: Mapping[str, int]) -> bool:
    return any(
        name in lacking
        for piece in board.left_of(unit)
        if piece.node == node
        for name, _ in piece.pod.shape.fit.requests
    )


def _can_spare(board: Board, units: Sequence[Unit]) -> bool:
    """Tell whether every tenant stays at its guarantee or above without all of these."""
    wanted = amounts(_pieces(board, units).values())
    return all(board.books.can_spare(key, amount) for key, amount in wanted.items())


def _freed(board: Board, node: str, unit: Unit, shape: FitShape) -> int:
    """Return how much of the shape's devices a unit holds on a node."""
    devices = shape.devices or tuple(name for name, _ in shape.requests)
    return sum(
        amount
        for piece in board.left_of(unit)
        if piece.node == node
        for name, amount in piece.pod.shape.fit.requests
        if name in devices
    )


def _is_blocked(board: Board, units: Iterable[Unit]) -> bool:
    """Tell whether disruption budgets would refuse, as far as is known, to let all of these go."""
    units = tuple(units)
    if any(unit.is_refused for unit in units):
        return True
    return _is_over(board, _pieces(board, units).values())


def _is_over(board: Board, pieces: Iterable[Piece]) -> bool:
    """Tell whether these together are more than disruption budgets allow, as last seen."""
    asked: dict[tuple[str, str], int] = {}
    for piece in pieces:
        if len(piece.pdbs) > 1:
            return True  # the Eviction API never lets go what several budgets cover
        for pdb in piece.pdbs:
            key = (pdb.namespace, pdb.name)
            asked[key] = asked.get(key, 0) + 1
            if asked[key] > board.allowance(pdb):
                return True
    return False


def _priced(board: Board, node: str, units: tuple[Unit, ...], need: Need) -> Bid:
    """Return units with what decides between nodes, the worst of them first in each respect.

    After tenants' priority: what fits a disruption budget, who knows already, then how many times
    more would be disturbed than is needed; only then who is fuller, and which pods.
    """
    pieces = list(_pieces(board, units).values())
    keys = {piece.key for piece in pieces}
    milli = sum(amount.milli for amount in amounts(pieces).values())
    where = [(piece.key[0], piece.node) for piece in pieces]
    key: BidKey = (
        int(_is_blocked(board, units)),
        max(board.books.entitlements[key].priority for key in keys),
        int(not board.limits.could_ever(where)),
        int(not all(unit.is_told for unit in units)),
        _times(milli, need),
        -min(board.books.saturation(key) for key in keys),
        *_worst_order(units),
        len(pieces),
        min(piece.pod.uid for piece in pieces),
    )
    return Bid(key, node, units)


def _times(milli: int, need: Need) -> int:
    """Return how many times what is needed this is; what is less is as good as the same."""
    return max(1, milli // max(1, need.milli))


def _worst_order(units: Sequence[Unit]) -> tuple[int, ...]:
    """Return the worst of each respect in which units of one tenant are ordered."""
    return (
        max(unit.order[0] for unit in units),
        max(unit.order[1] for unit in units),
        max(unit.order[2] for unit in units),
        max(unit.order[3] for unit in units),
    )
