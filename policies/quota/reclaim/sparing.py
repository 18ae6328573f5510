# SPDX-License-Identifier: Apache-2.0
"""Spares whoever turns out not to be needed once everyone is placed, the last chosen first.

A unit stays if its room is free after all, or if those who were to have it find room elsewhere
among what others leave over.
"""

from collections.abc import Iterable, Mapping, Sequence

from policies.quota.reclaim.board import Board, Choice, Place


def spare_unneeded(board: Board) -> None:
    """Take units off the list until nobody on it can be spared."""
    leftovers, places = board.leftovers, _by_node(board.places)
    for choice in reversed(tuple(board.choices)):
        unit = choice.unit
        if unit.is_surplus and unit.gang in board.whole_gangs:
            continue  # what is left of a gang would be of no use
        moves = _Trial(board, leftovers, places).moves_without(choice)
        if moves is not None:
            for place, node in moves:
                board.move(place, node)
            board.spare(choice)
            leftovers, places = board.leftovers, _by_node(board.places)


def _by_node(places: Iterable[Place]) -> Mapping[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place in places:
        found.setdefault(place.node, []).append(place)
    return found


class _Trial:
    """Rooms as they would be if a unit stayed; the board itself stays as it is."""

    def __init__(
        self, board: Board, leftovers: Sequence[str], places: Mapping[str, list[Place]]
    ) -> None:
        self._board = board
        self._leftovers = leftovers
        self._places = places
        self._rooms: dict[str, dict[str, int]] = {}

    def moves_without(self, choice: Choice) -> list[tuple[Place, str]] | None:
        """Return who must move, and where, for a unit to stay; None if it is needed."""
        for piece in choice.pieces:
            self._add(piece.node, piece.pod.shape.fit.requests, -1)
        moves: list[tuple[Place, str]] = []
        for node in sorted({piece.node for piece in choice.pieces if piece.node}):
            staying = list(self._places.get(node, ()))
            for place in tuple(staying):
                if not _is_short(self._room(node), staying):
                    break
                found = self._elsewhere(place)
                if found is not None:
                    staying.remove(place)
                    self._add(node, place.member.fit.requests, 1)
                    self._add(found, place.member.fit.requests, -1)
                    moves.append((place, found))
            if _is_short(self._room(node), staying):
                return None
        return moves

    def _elsewhere(self, place: Place) -> str | None:
        shape = place.member.fit
        for node in self._leftovers:
            room = self._room(node)
            if (
                node != place.node
                and all(room.get(name, 0) >= amount for name, amount in shape.requests)
                and self._board.admits(shape, node)
            ):
                return node
        return None

    def _room(self, node: str) -> Mapping[str, int]:
        return self._rooms.get(node) or self._board.room(node)

    def _add(self, node: str, requests: Iterable[tuple[str, int]], sign: int) -> None:
        room = self._rooms.get(node)
        if room is None:
            room = self._rooms[node] = dict(self._board.room(node))
        for name, amount in requests:
            room[name] = room.get(name, 0) + sign * amount


def _is_short(room: Mapping[str, int], places: Iterable[Place]) -> bool:
    """Tell whether a node has too little for those who are placed there."""
    return any(room.get(name, 0) < 0 for place in places for name, _ in place.member.fit.requests)
