# SPDX-License-Identifier: Apache-2.0
"""What the leader may have sent and does not know the outcome of, as its Lease says.

Whatever writes on the strength of being the leader declares it here first, and settles it when its
outcome is known. Declarations that come together share one write of the Lease.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from reconciler.kube.intents import MAX_INTENTS, Intent, count_fitting

_KEEP: Final = 0.8
"""How full the list may get before only settling makes room: releases must not crowd out all."""


class Declarer(Protocol):
    """The part of leadership that this needs."""

    async def declare(self, intents: Sequence[Intent]) -> None:
        """Have the Lease say exactly this. Raises LeadershipLostError."""
        ...


class Outstanding:
    """Intents by the UID of their pod. For one leadership; a new one begins with what it inherits.

    What was settled stays on the Lease until the next declaration, which does no harm: it is then
    seen to be settled by whoever inherits it.
    """

    def __init__(self, leadership: Declarer, inherited: Iterable[Intent] = ()) -> None:
        self._leadership = leadership
        self._intents: dict[str, Intent] = {intent.uid: intent for intent in inherited}
        self._lock = asyncio.Lock()
        self._asked = 0
        self._written = 0

    def __len__(self) -> int:
        return len(self._intents)

    def __contains__(self, uid: str) -> bool:
        return uid in self._intents

    @property
    def intents(self) -> Mapping[str, Intent]:
        """Return what is outstanding, by UID."""
        return self._intents

    @property
    def room(self) -> int:
        """Return how many more releases may be declared now; some places are kept for the rest."""
        return max(0, int(MAX_INTENTS * _KEEP) - len(self._intents))

    def fitting(self, batch: Sequence[Intent]) -> int:
        """Return how many of these, from the first on, may be declared now.

        Long names and charges fill the Lease before there are too many.
        """
        again = {intent.uid for intent in batch}
        known = [intent for uid, intent in self._intents.items() if uid not in again]
        return max(0, count_fitting([*known, *batch]) - len(known))

    async def declare(self, batch: Iterable[Intent]) -> None:
        """Return once the Lease names every one of these; only then may they be sent.

        Raises LeadershipLostError, and ValueError where there is no room (see `fitting`).
        """
        listed = tuple(batch)
        if self.fitting(listed) < len(listed):
            raise ValueError(f"{len(listed)} more intents than the Lease has room for")
        self._intents.update({intent.uid: intent for intent in listed})
        self._asked += 1
        asked = self._asked
        async with self._lock:
            if self._written >= asked:
                return  # whoever wrote while this waited has written it too
            covers = self._asked
            await self._leadership.declare(tuple(self._intents.values()))
            self._written = covers

    def settle(self, uid: str) -> None:
        """Drop an intent: its outcome is known, or can no longer be."""
        self._intents.pop(uid, None)

    def settle_only(self, intent: Intent) -> None:
        """Drop this intent, but not another that was declared for the same pod meanwhile."""
        if self._intents.get(intent.uid) is intent:
            del self._intents[intent.uid]
