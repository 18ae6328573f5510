# SPDX-License-Identifier: Apache-2.0
"""Room on nodes while a plan is made: who has some, who takes it, and who keeps some for later.

Works within a trial of the index, so that nothing of it lasts. Quota must not be here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from policies.cluster.fit import FitIndex
from policies.cluster.shape import FitShape
from policies.quota.planning.options import Option
from policies.quota.planning.verdict import Piece, Way

_MOST_SHUNNED: Final = 100
"""So many nodes are named on a pod at most."""

Need: TypeAlias = tuple[Option, int]
"""So many pods that go the same way; 0 asks whether one could be held by any node, if empty."""

Members: TypeAlias = Sequence[tuple[str, Option]]
"""UIDs of pods, each with where it is to go."""


@dataclass(frozen=True, slots=True)
class _Kept:
    members: Members
    owed: bool


class _Answers(dict[Need, bool]):
    """Whether nodes have room for a need, asked once in a plan, before it takes any."""

    def __init__(self, fit: FitIndex) -> None:
        super().__init__()
        self._fit = fit

    def __missing__(self, need: Need) -> bool:
        option, count = need
        found = self[need] = option.without_nodes or self._ask(option.fit, count)
        return found

    def _ask(self, shape: FitShape, count: int) -> bool:
        if count == 0:
            return self._fit.could_ever_fit(shape)
        return self._fit.fits(shape) if count == 1 else self._fit.count(shape) >= count


class Rooms:
    """The nodes of one plan."""

    def __init__(self, fit: FitIndex) -> None:
        self._fit = fit
        self._answers = _Answers(fit)
        self._kept: list[_Kept] = []
        self._kept_on: dict[str, bool] = {}
        """Nodes on which room is kept, and whether all of it is for work that would borrow."""

    def answers(self, needs: Iterable[Need]) -> tuple[bool, ...]:
        """Tell of each need whether nodes had room for it before the plan took any."""
        return tuple(map(self._answers.__getitem__, needs))

    def reaches(self, option: Option) -> bool:
        """Tell whether some node could hold it if it were empty."""
        return self._answers[option, 0]

    def has(self, way: Way, pieces: Sequence[Piece]) -> bool:
        """Tell whether nodes had room for each piece by itself before the plan took any."""
        for piece, option in zip(pieces, way.options, strict=True):
            if not self._answers[option, piece.count]:
                return False
        return True

    def place(self, members: Members, *, owed: bool, needs_room: bool = False) -> bool:
        """Take room for all of these, or none.

        What is owed may take room that is kept for work that would borrow. What needs room is not
        placed without any, even in a pool that releases without nodes.
        """
        if self._placed(members, needs_room=needs_room):
            return True
        giving = [kept for kept in self._kept if not kept.owed] if owed else []
        if not giving:
            return False
        for kept in giving:
            for uid, _ in kept.members:
                self._fit.release(uid)
        found = self._placed(members, needs_room=needs_room)
        for kept in giving:
            self._take(kept)
        return found

    def shunned(self, option: Option, *, owed: bool) -> tuple[str, ...]:
        """Return the nodes that a pod must not take because of the room that is kept there.

        The scheduler does not know of it, and would use it for whatever was released.
        """
        found = [
            name
            for name, borrows in self._kept_on.items()
            if not (owed and borrows) and not _holds(self._fit.free(name), option.fit)
        ]
        return tuple(sorted(found)[:_MOST_SHUNNED])

    def keep(self, members: Members, *, owed: bool) -> None:
        """Keep room for these from those after them: what there is, and where least is lacking."""
        kept = _Kept([(f"kept for {uid}", option) for uid, option in members], owed)
        self._kept.append(kept)
        self._take(kept)

    def _placed(self, members: Members, *, needs_room: bool) -> bool:
        if len(members) == 1:
            uid, option = members[0]
            may_lack = option.without_nodes and not needs_room
            return self._fit.assume(uid, option.fit) is not None or may_lack
        with self._fit.trial() as trial:
            for uid, option in members:
                may_lack = option.without_nodes and not needs_room
                if self._fit.assume(uid, option.fit) is None and not may_lack:
                    return False
            trial.keep()
        return True

    def _take(self, kept: _Kept) -> None:
        nodes: list[str] = []
        missing: dict[int, tuple[Option, list[str]]] = {}
        for uid, option in kept.members:
            node = self._fit.assume(uid, option.fit)
            if node is not None:
                nodes.append(node)
            elif not option.without_nodes:
                missing.setdefault(id(option), (option, []))[1].append(uid)
        for option, uids in missing.values():
            nodes += self._fit.reserve(uids, option.fit)
        for node in nodes:
            self._kept_on[node] = self._kept_on.get(node, True) and not kept.owed


def _holds(free: Mapping[str, int], shape: FitShape) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in shape.requests)
