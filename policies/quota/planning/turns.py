# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is to keep what it lacks, where, and for how long.

Nobody knows how long pods run, so nobody knows whether what one waits for will ever come free.
Therefore a turn has an end, and a rest follows one that was in vain: of the lane, so that others
get by, and a longer one of whoever had it. Who stands in a lane is not decided here.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Lane: TypeAlias = tuple[str, str]
"""Those of whom one at a time keeps something: the kind of lane, and a pool or a tenant."""

_MOST_DOUBLINGS: Final = 6


@dataclass(slots=True)
class _Turn:
    """`until` is when it ends; before `rests_until` the next one cannot begin (Unix seconds)."""

    until: int
    in_vain: int = 0
    rests_until: int = 0
    nodes: Mapping[str, str] = field(default_factory=dict)


class Turns:
    """Remembers them from one plan to the next. Whoever has one is named by its first pod's UID."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._current: dict[Lane, str] = {}
        self._rests: dict[Lane, int] = {}

    def next(self, lane: Lane, standing: Iterable[str], now: int, seconds: int) -> str | None:
        """Return whose turn it is of those who stand in a lane, the first of them first.

        A turn lasts so many seconds, and there is none of no time. One in vain is followed by a
        rest of the lane that is as long, and by one of its owner that is twice as long, and doubles
        each time.
        """
        current, first = self._current.get(lane), None
        for uid in standing:
            if uid == current:
                if now < self._turns[uid].until:
                    return uid
                self._end(lane, uid, now, seconds)
                return None
            if first is None and self._may_begin(uid, now):
                first = uid
                if current is None:
                    break
        self._current.pop(lane, None)
        if first is None or seconds <= 0 or now < self._rests.get(lane, 0):
            return None
        return self._begin(lane, first, now, seconds)

    def nodes(self, uid: str) -> Mapping[str, str]:
        """Return on which nodes room was kept last for the pods of one, by UID."""
        turn = self._turns.get(uid)
        return turn.nodes if turn is not None else {}

    def kept(self, uid: str, nodes: Mapping[str, str]) -> None:
        """Know on which nodes room is kept: it stays there, or several would be drained."""
        turn = self._turns.get(uid)
        if turn is not None:
            turn.nodes = nodes

    def forget_all_but(self, waiting: Container[str]) -> None:
        """Forget whoever waits no more."""
        for uid in [uid for uid in self._turns if uid not in waiting]:
            del self._turns[uid]
        for lane in [lane for lane, uid in self._current.items() if uid not in waiting]:
            del self._current[lane]

    def _may_begin(self, uid: str, now: int) -> bool:
        turn = self._turns.get(uid)
        return turn is None or turn.rests_until <= now

    def _begin(self, lane: Lane, uid: str, now: int, seconds: int) -> str:
        turn = self._turns.setdefault(uid, _Turn(until=0))
        if turn.until <= now:
            turn.until, turn.nodes = now + seconds, {}
        self._current[lane] = uid
        return uid

    def _end(self, lane: Lane, uid: str, now: int, seconds: int) -> None:
        turn = self._turns[uid]
        turn.in_vain += 1
        turn.rests_until = now + (seconds << min(turn.in_vain, _MOST_DOUBLINGS))
        self._rests[lane] = now + seconds
        del self._current[lane]
