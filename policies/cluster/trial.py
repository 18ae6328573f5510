# SPDX-License-Identifier: Apache-2.0
"""Assumptions that are made all or none: what was tried, and how it is undone."""

from dataclasses import dataclass
from types import TracebackType
from typing import Self

from policies.cluster.holdings import Holding, Holdings


@dataclass(frozen=True, slots=True)
class Tried:
    """An assumption made within a trial, and what the pod was before."""

    uid: str
    made: Holding
    before: Holding | None


class Trial:
    """Assumptions made while it lasts are taken back at its end, unless `keep` was called."""

    def __init__(self, trials: list[list[Tried]], holdings: Holdings) -> None:
        self._trials = trials
        self._holdings = holdings
        self._kept = False

    def keep(self) -> None:
        """Let the assumptions stand."""
        self._kept = True

    def __enter__(self) -> Self:
        self._trials.append([])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        tried = self._trials.pop()
        if not self._kept:
            for step in reversed(tried):
                self._undo(step)
        elif self._trials:
            self._trials[-1].extend(tried)

    def _undo(self, step: Tried) -> None:
        # One that was seen bound or gone in the meantime is no assumption any more.
        if self._holdings.get(step.uid) is step.made:
            self._holdings.drop(step.uid)
            if step.before is not None:
                seat = self._holdings.hold(step.uid, step.before)
                if seat is not None:
                    # A pod that was seen bound meanwhile may have taken the room.
                    self._holdings.make_way(seat)
