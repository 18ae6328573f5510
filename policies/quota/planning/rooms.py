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
from policies.quota.planning.values import KeptRoom
from policies.quota.planning.verdict import Piece, Way

_MOST_SHUNNED: Final = 100
"""So many nodes are named on a pod at most."""

Need: TypeAlias = tuple[Option, int]
"""So many pods that go the same way; 0 asks whether one could be held by any node, if empty."""

Members: TypeAlias = Sequence[tuple[str, Option]]
"""UIDs of pods, each with where it is to go."""


@dataclass(slots=True)
class _Kept:
    """What is kept for one pod, by the UID that it goes by; `node` is empty where there is none."""

    option: Option
    owed: bool
    is_repaid: bool
    node: str


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
        self._kept: dict[str, _Kept] = {}

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
        """Take room for all of these, or none: what is kept for them, or any that is free.

        What is owed may take room that is kept for work that would borrow. Of what is taken back
        on one node for several, the first to come takes what there is so far. What needs room is
        not placed without any, even in a pool that releases without nodes.
        """
        own = self._without(uid for uid, _ in members if uid in self._kept)
        if self._placed(members, own, needs_room=needs_room):
            return True
        nodes = {kept.node for kept in own.values()}
        giving = self._without(
            uid
            for uid, kept in self._kept.items()
            if (owed and not kept.owed) or (kept.is_repaid and kept.node in nodes)
        )
        found = bool(giving) and self._placed(members, own, needs_room=needs_room)
        for uid, kept in {**giving, **({} if found else own)}.items():
            self._take(uid, kept)
        return found

    def shunned(self, option: Option, own: str, *, owed: bool) -> tuple[str, ...]:
        """Return the nodes that a pod must not take because of the room that is kept there.

        The scheduler does not know of it, and would use it for whatever was released. On its
        `own` node there is room for it, so that one is none of them.
        """
        names = {k.node for k in self._kept.values() if k.node and (k.owed or not owed)} - {own}
        found = [name for name in names if not _holds(self._fit.free(name), option.fit)]
        return tuple(sorted(found)[:_MOST_SHUNNED])

    @property
    def kept(self) -> Mapping[str, KeptRoom]:
        """Return what is kept, by UID."""
        return {
            uid: KeptRoom(uid, kept.node, kept.option.fit, kept.owed, kept.is_repaid)
            for uid, kept in self._kept.items()
            if kept.node
        }

    def keep(
        self,
        members: Members,
        nodes: Mapping[str, str],
        *,
        owed: bool,
        is_repaid: bool = False,
    ) -> Mapping[str, str]:
        """Keep room for these from those after them; return the node for each UID that has one.

        That is one of `nodes` as long as it would do, else where there is room, else where least
        is lacking, but for nodes where others have room taken back for them.
        """
        missing: dict[int, tuple[Option, list[str]]] = {}
        for uid, option in members:
            if uid in self._kept:
                continue
            self._take(uid, _Kept(option, owed, is_repaid, nodes.get(uid, "")))
            if not self._kept[uid].node and not option.without_nodes:
                missing.setdefault(id(option), (option, []))[1].append(uid)
        avoided = {k.node for k in self._kept.values() if k.is_repaid} if missing else ()
        for option, uids in missing.values():
            found = self._fit.reserve([_name(uid) for uid in uids], option.fit, avoided)
            for uid, node in zip(uids, found, strict=False):
                self._kept[uid].node = node
        return {uid: kept.node for uid, _ in members if (kept := self._kept[uid]).node}

    def _placed(self, members: Members, own: Mapping[str, _Kept], *, needs_room: bool) -> bool:
        with self._fit.trial() as trial:
            for uid, option in members:
                may_lack = option.without_nodes and not needs_room
                node = own[uid].node if uid in own else ""
                if self._fit.assume_on(uid, option.fit, node) is None and not may_lack:
                    return False
            trial.keep()
        return True

    def _without(self, uids: Iterable[str]) -> dict[str, _Kept]:
        """Give back what is kept for these, and return it."""
        found = {uid: self._kept.pop(uid) for uid in tuple(uids)}
        for uid in found:
            self._fit.release(_name(uid))
        return found

    def _take(self, uid: str, kept: _Kept) -> None:
        """Keep room on the node that it was kept on, lacking or not, or else where there is any."""
        before, fit = kept.node, kept.option.fit
        kept.node = self._fit.assume_on(_name(uid), fit, before) or ""
        if not kept.node and before and self._fit.reserve_on(_name(uid), fit, before):
            kept.node = before
        self._kept[uid] = kept


def _name(uid: str) -> str:
    """Return what stands in the index for a pod that room is kept for."""
    return f"kept for {uid}"


def _holds(free: Mapping[str, int], shape: FitShape) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in shape.requests)
