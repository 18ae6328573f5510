# SPDX-License-Identifier: Apache-2.0
"""Writes statuses by server-side apply, as the one owner of their fields.

What is to be said is not decided here.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from policies.documents.kinds import Kind
from policies.model.keys import API_VERSION
from reconciler.kube.document_resources import resource_of
from reconciler.kube.errors import ApiError, ConflictError, NotFoundError
from reconciler.kube.resources import Target
from reconciler.tenants.plan import Write
from reconciler.tenants.view import Object, Seen, seen

FIELD_MANAGER: Final = "sluice-status"
TENANTS: Final = resource_of(Kind.TENANT)

_LOG: Final = logging.getLogger(__name__)


class Applier(Protocol):
    """The part of a client that is needed."""

    async def apply(
        self, target: Target, body: Mapping[str, object], *, field_manager: str, force: bool = True
    ) -> Mapping[str, object]:
        """Server-side apply."""
        ...


@dataclass(frozen=True, slots=True)
class WriteLimits:
    """How many statuses are written at once, and at most in one round."""

    concurrency: int = 8
    per_round: int = 100


_LIMITS: Final = WriteLimits()


class StatusWriter:
    """Writes statuses, and knows them before their watch shows them."""

    def __init__(
        self,
        applier: Applier,
        is_held: Callable[[], bool],
        limits: WriteLimits = _LIMITS,
        failed: Callable[[ApiError], None] = lambda _error: None,
    ) -> None:
        """`failed` is told of each write that has to be tried again."""
        self._applier = applier
        self._is_held = is_held
        self._limits = limits
        self._failed = failed
        self._ahead: dict[str, Seen] = {}
        self._begun: dict[str, int] = {}
        """The round in which each was last written, so that all have their turn."""
        self._round = 0
        self._logged = ""

    def newest(self, objects: Iterable[Seen]) -> tuple[Seen, ...]:
        """Return the objects as watched or, where that is newer, as answered to a write."""
        listed = tuple(objects)
        known = {item.uid for item in listed}
        self._ahead = {uid: item for uid, item in self._ahead.items() if uid in known}
        self._begun = {uid: number for uid, number in self._begun.items() if uid in known}
        return tuple(self._newer(item) for item in listed)

    async def carry_out(self, writes: Iterable[Write]) -> int:
        """Write what is due, and return how many writes have failed.

        Those that have not been written for longest go first; what is too much for one round has
        its turn when it is due again.
        """
        self._round += 1
        due = sorted(writes, key=lambda write: self._begun.get(write.uid, 0))
        slots = asyncio.Semaphore(self._limits.concurrency)

        async def write_one(write: Write) -> bool:
            async with slots:
                return await self._write(write)

        done = await asyncio.gather(*map(write_one, due[: self._limits.per_round]))
        return done.count(False)

    async def _write(self, write: Write) -> bool:
        if not self._is_held():
            return True
        self._begun[write.uid] = self._round
        target = Target(TENANTS, write.name, subresource="status")
        try:
            raw = await self._applier.apply(target, body_of(write), field_manager=FIELD_MANAGER)
        except (ConflictError, NotFoundError):
            return True  # another object by now, or none: its watch shows it
        except ApiError as error:
            self._failed(error)
            self._complain(write, error)
            return False
        item = seen(raw)
        self._ahead[item.uid] = item
        return True

    def _newer(self, item: Seen) -> Seen:
        ahead = self._ahead.get(item.uid)
        if ahead is None or ahead.version > item.version:
            return ahead or item
        del self._ahead[item.uid]
        return item

    def _complain(self, write: Write, error: ApiError) -> None:
        text = f"tenant {write.name}: its status not written: {error}"
        if text != self._logged:
            self._logged = text
            _LOG.warning("%s", text)


def body_of(write: Write) -> Object:
    """Return the object as it is applied, to this very one."""
    return {
        "apiVersion": API_VERSION,
        "kind": str(Kind.TENANT),
        "metadata": {"name": write.name, "uid": write.uid},
        "status": write.status,
    }
