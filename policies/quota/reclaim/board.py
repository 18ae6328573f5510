# SPDX-License-Identifier: Apache-2.0
"""Where things stand while a plan is made: rooms, books, who is to go, who is placed where.

Every change can be undone, since a gang gets all of its room or none. What to change is not
decided here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from policies.cluster.constraints import admits
from policies.cluster.shape import FitShape
from policies.quota.gangs import GangKey
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.reclaim.books import Books
from policies.quota.reclaim.limits import Limits
from policies.quota.reclaim.snapshot import Group, Member, Rooms, Snapshot
from policies.quota.reclaim.units import Piece, Unit, is_ending

Requests = Iterable[tuple[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A unit that is to go, with the pieces of it that were not chosen before, and for whom."""

    unit: Unit
    pieces: tuple[Piece, ...]
    group: str
    node: str


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A waiting pod and the node that would hold it."""

    group: str
    member: Member
    node: str


class Board:
    """Mutable; made for one plan. `grown` are nodes whose room has grown; who asks empties it."""

    def __init__(self, snapshot: Snapshot, books: Books, limits: Limits) -> None:
        self.snapshot = snapshot
        self.books = books
        self.limits = limits
        self.choices: list[Choice] = []
        self.places: list[Place] = []
        self.chosen: set[str] = set()
        self.whole_gangs: set[GangKey] = set()
        self.grown: list[str] = []
        self._rooms: dict[str, dict[str, int]] = {}
        self._source: Rooms = snapshot.rooms
        self._budgets: dict[tuple[str, str], int] = {}
        self._undo: list[Callable[[], None]] = []
        self._kept: dict[str, tuple[str, Sequence[tuple[str, int]]]] = {}
        """By UID of a waiting pod where how much of what is free is kept for it."""
        self._lacking: dict[str, set[str]] = {}
        """By node the UIDs of those that what will be free there goes to first."""

    def room(self, node: str) -> Mapping[str, int]:
        """Return what would be free on a node."""
        return self._room(node)

    def with_devices(self) -> Iterator[str]:
        """Yield the nodes that have devices left."""
        return (node for node in self.snapshot.nodes if self.has_devices(node))

    def has_devices(self, node: str) -> bool:
        """Tell whether a node has any devices left."""
        return any(amount > 0 and "/" in name for name, amount in self._room(node).items())

    @property
    def leftovers(self) -> Sequence[str]:
        """Return the nodes that were looked at and have devices left."""
        return tuple(node for node in self._rooms if self.has_devices(node))

    def has_room(self, shape: FitShape, node: str) -> bool:
        """Tell whether a node has room for a shape, if it admits it."""
        room = self._room(node)
        return all(room.get(name, 0) >= amount for name, amount in shape.requests)

    def admits(self, shape: FitShape, node: str) -> bool:
        """Tell whether a node takes the shape if it has room."""
        found = self.snapshot.nodes.get(node)
        return found is not None and admits(shape.constraints, found)

    def give(self, node: str, requests: Requests) -> None:
        """Count room on a node as free."""
        room = self._room(node)
        for name, amount in requests:
            room[name] = room.get(name, 0) + amount
        self.grown.append(node)

    def take(self, node: str, requests: Requests) -> None:
        """Count room on a node as taken."""
        room = self._room(node)
        for name, amount in requests:
            room[name] = room.get(name, 0) - amount

    def keep_rooms(self) -> None:
        """Count as taken what the release planner keeps for waiting pods.

        What was to be freed for one in the last plan may be freed for another in this.
        """
        for uid, kept in self.snapshot.kept.items():
            taken: Sequence[tuple[str, int]] = kept.fit.requests
            if kept.is_repaid:
                room = self._room(kept.node)
                taken = [(name, max(0, min(n, room.get(name, 0)))) for name, n in taken]
            elif not self.has_room(kept.fit, kept.node):
                self._lacking.setdefault(kept.node, set()).add(uid)
            self.take(kept.node, taken)
            self._kept[uid] = kept.node, taken

    def open_kept(self, group: Group) -> Sequence[str]:
        """Count the room as free that is kept for pods of a group; return where that was."""
        opened: list[str] = []
        for member in group.members:
            uid = member.pod.uid
            kept = self._kept.get(uid)
            if kept is not None:
                self.give(*kept)
                opened.append(kept[0])
                self._undo.append(partial(self.take, *kept))
                lacking = self._lacking.get(kept[0], set())
                if uid in lacking:
                    lacking.remove(uid)
                    self._undo.append(partial(lacking.add, uid))
        return opened

    def is_owing(self, node: str) -> bool:
        """Tell whether a node lacks room that is kept there: what is freed is not for others.

        Whoever goes there would go for who keeps it, who may be of any cohort.
        """
        return bool(self._lacking.get(node))

    def owes_instead_of(self, group: Group) -> bool:
        """Tell whether a node would take a pod of a group, but owes others what is freed there."""
        own = {member.pod.uid for member in group.members}
        return any(
            bool(uids - own) and self.admits(member.fit, node)
            for node, uids in self._lacking.items()
            for member in group.members
        )

    def allowance(self, pdb: PodDisruptionBudget) -> int:
        """Return how many more pods a disruption budget would let go, as it was last seen."""
        return self._budgets.get((pdb.namespace, pdb.name), pdb.disruptions_allowed)

    def choose(self, unit: Unit, group: str, node: str) -> None:
        """Let a unit go for a group; what is left of it if parts of it go already."""
        pieces = self.left_of(unit)
        choice = Choice(unit, pieces, group, node)
        self._apply(choice, 1)
        self.choices.append(choice)
        self._undo.append(lambda: self._unchoose(choice))

    def spare(self, choice: Choice) -> None:
        """Let a chosen unit stay after all. For good: it cannot be undone."""
        self.choices.remove(choice)
        self._apply(choice, -1)

    def left_of(self, unit: Unit) -> tuple[Piece, ...]:
        """Return the pieces of a unit that do not go yet."""
        return tuple(piece for piece in unit.pieces if piece.pod.uid not in self.chosen)

    def place(self, group: str, member: Member, node: str) -> None:
        """Let a waiting pod have room on a node."""
        place = Place(group, member, node)
        self.take(node, member.fit.requests)
        self.places.append(place)
        self._undo.append(lambda: self._unplace(place))

    def move(self, place: Place, node: str) -> Place:
        """Let a placed pod have its room on another node. For good: it cannot be undone."""
        requests = place.member.fit.requests
        self.give(place.node, requests)
        self.take(node, requests)
        moved = Place(place.group, place.member, node)
        self.places[self.places.index(place)] = moved
        return moved

    def mark(self) -> int:
        """Return where to come back to."""
        return len(self._undo)

    def undo(self, mark: int) -> None:
        """Take back everything since a mark."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def _unchoose(self, choice: Choice) -> None:
        self.choices.pop()
        self._apply(choice, -1)

    def _unplace(self, place: Place) -> None:
        self.places.pop()
        self.give(place.node, place.member.fit.requests)

    def _apply(self, choice: Choice, sign: int) -> None:
        for piece in choice.pieces:
            pod = piece.pod
            if sign > 0:
                self.chosen.add(pod.uid)
                self.books.remove(piece.key, piece.amount)
                self.give(piece.node, pod.shape.fit.requests)
            else:
                self.chosen.discard(pod.uid)
                self.books.add(piece.key, piece.amount)
                self.take(piece.node, pod.shape.fit.requests)
            for pdb in piece.pdbs:
                self._budgets[(pdb.namespace, pdb.name)] = self.allowance(pdb) - sign
        if choice.unit.gang is not None and not choice.unit.is_surplus:
            (self.whole_gangs.add if sign > 0 else self.whole_gangs.discard)(choice.unit.gang)

    def _room(self, node: str) -> dict[str, int]:
        found = self._rooms.get(node)
        if found is None:
            found = self._rooms[node] = dict(self._source.free(node))
        return found


def give_what_comes(board: Board, within_seconds: int) -> None:
    """Count the room of pods that are about to be gone: no one else need go for it.

    Not that of pods which take longer, nor of those that should have been gone long ago.
    """
    snapshot = board.snapshot
    for holdings in snapshot.live.values():
        for pod, _ in holdings:
            if not pod.node or not is_ending(pod, snapshot):
                continue
            gone_at = snapshot.now if pod.deleted_at is None else pod.deleted_at
            if snapshot.now - _LATE_SECONDS <= gone_at <= snapshot.now + within_seconds:
                board.give(pod.node, pod.shape.fit.requests)


_LATE_SECONDS = 60
"""How long after its grace period a pod is still expected to go by itself."""
