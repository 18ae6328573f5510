# SPDX-License-Identifier: Apache-2.0
"""Spares whoever turns out not to be needed once everyone is placed, the last chosen first.

A unit stays if its room is free after all, or if those who were to have it find room elsewhere
among what others leave over.
"""

from collections.abc import Iterable, Mapping

from policies.quota.reclaim.board import Board, Choice, Place


def spare_unneeded(board: Board) -> None:
    """Take units off the list until nobody on it can be spared."""
    for choice in reversed(tuple(board.choices)):
        unit = choice.unit
        if unit.is_surplus and unit.gang in board.whole_gangs:
            continue  # what is left of a gang would be of no use
        moves = _moves_without(board, choice)
        if moves is not None:
            for place, node in moves:
                board.move(place, node)
            board.spare(choice)


def _moves_without(board: Board, choice: Choice) -> list[tuple[Place, str]] | None:
    """Return who must move, and where, for a unit to stay; None if it is needed."""
    room = {node: dict(board.room(node)) for node in board.touched}
    for piece in choice.pieces:
        if piece.node:
            _add(room[piece.node], piece.pod.shape.fit.requests, -1)
    moves: list[tuple[Place, str]] = []
    for node in sorted({piece.node for piece in choice.pieces if piece.node}):
        staying = [place for place in board.places if place.node == node]
        for place in tuple(staying):
            if not _is_short(room[node], staying):
                break
            found = _elsewhere(board, place, room)
            if found is not None:
                staying.remove(place)
                _add(room[node], place.member.pod.shape.fit.requests, 1)
                _add(room[found], place.member.pod.shape.fit.requests, -1)
                moves.append((place, found))
        if _is_short(room[node], staying):
            return None
    return moves


def _elsewhere(board: Board, place: Place, room: Mapping[str, Mapping[str, int]]) -> str | None:
    shape = place.member.pod.shape.fit
    for node, free in room.items():
        if (
            node != place.node
            and all(free.get(name, 0) >= amount for name, amount in shape.requests)
            and board.admits(shape, node)
        ):
            return node
    return None


def _is_short(room: Mapping[str, int], places: Iterable[Place]) -> bool:
    """Tell whether a node has too little for those who are placed there."""
    return any(
        room.get(name, 0) < 0 for place in places for name, _ in place.member.pod.shape.fit.requests
    )


def _add(room: dict[str, int], requests: Iterable[tuple[str, int]], sign: int) -> None:
    for name, amount in requests:
        room[name] = room.get(name, 0) + sign * amount
