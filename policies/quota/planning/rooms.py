# SPDX-License-Identifier: Apache-2.0
"""Room on nodes while a plan is made: who has some, who takes it, and who keeps some for later.

Works within a trial of the index, so that nothing of it lasts. Quota must not be here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from policies.cluster.fit import FitIndex
from policies.quota.planning.options import Option
from policies.quota.planning.verdict import Piece, Way

Members: TypeAlias = Sequence[tuple[str, Option]]
"""UIDs of pods, each with where it is to go."""


@dataclass(frozen=True, slots=True)
class _Kept:
    members: Members
    owed: bool


class Rooms:
    """The nodes of one plan."""

    def __init__(self, fit: FitIndex) -> None:
        self._fit = fit
        self._counts: dict[int, int] = {}
        self._reached: dict[int, bool] = {}
        self._kept: list[_Kept] = []

    def reaches(self, option: Option) -> bool:
        """Tell whether some node could hold it if it were empty."""
        if option.without_nodes:
            return True
        found = self._reached.get(id(option))
        if found is None:
            found = self._reached[id(option)] = self._fit.could_ever_fit(option.fit)
        return found

    def has(self, way: Way, pieces: Sequence[Piece]) -> bool:
        """Tell whether nodes had room for each piece by itself before the plan took any."""
        for piece, option in zip(pieces, way.options, strict=True):
            if option.without_nodes:
                continue
            if self._count(option, piece.count) < piece.count:
                return False
        return True

    def place(self, members: Members, *, owed: bool) -> bool:
        """Take room for all of these, or none.

        What is owed may take room that is kept for work that would borrow.
        """
        if self._placed(members):
            return True
        giving = [kept for kept in self._kept if not kept.owed] if owed else []
        if not giving:
            return False
        for kept in giving:
            for uid, _ in kept.members:
                self._fit.release(uid)
        found = self._placed(members)
        for kept in giving:
            self._take(kept)
        return found

    def keep(self, members: Members, *, owed: bool) -> None:
        """Keep room for these from those after them: what there is, and where least is lacking."""
        kept = _Kept([(f"kept for {uid}", option) for uid, option in members], owed)
        self._kept.append(kept)
        self._take(kept)

    def _count(self, option: Option, needed: int) -> int:
        """Return how many there is room for; 1 stands for any number if no more are needed."""
        key = id(option) if needed > 1 else -id(option)
        found = self._counts.get(key)
        if found is None:
            fit = self._fit
            found = fit.count(option.fit) if needed > 1 else int(fit.fits(option.fit))
            self._counts[key] = found
        return found

    def _placed(self, members: Members) -> bool:
        if len(members) == 1:
            uid, option = members[0]
            return self._fit.assume(uid, option.fit) is not None or option.without_nodes
        with self._fit.trial() as trial:
            for uid, option in members:
                if self._fit.assume(uid, option.fit) is None and not option.without_nodes:
                    return False
            trial.keep()
        return True

    def _take(self, kept: _Kept) -> None:
        missing: dict[int, tuple[Option, list[str]]] = {}
        for uid, option in kept.members:
            if self._fit.assume(uid, option.fit) is None and not option.without_nodes:
                missing.setdefault(id(option), (option, []))[1].append(uid)
        for option, uids in missing.values():
            self._fit.reserve(uids, option.fit)
