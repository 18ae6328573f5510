# SPDX-License-Identifier: Apache-2.0
"""Elects one leader among processes by a Lease, and runs its work while it leads.

What it promises: by their own clocks no two electors hold the Lease at once; work is cancelled and
waited for before another may start; what a leader has declared reaches its successor. It cannot
stop a write that a frozen process had already decided on: preconditions and intents do. What the
work is must not be known here.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from policies.model.term import LeaseTerm
from reconciler.kube.errors import AlreadyExistsError, ApiError, ConflictError
from reconciler.kube.intents import (
    Intent,
    UnreadableIntentsError,
    decode_intents,
    encode_intents,
)
from reconciler.kube.lease import LeaseRecord, Observation, StoredLease, Term, may_take, observe
from reconciler.kube.lease_door import ElectorSettings, LeaseClient, LeaseDoor
from reconciler.kube.reflector import Runtime
from reconciler.kube.term import SPREAD, LeadershipLostError, Office
from reconciler.runtime.tasks import Activity

__all__ = [
    "Elector",
    "ElectorHooks",
    "ElectorSettings",
    "Leadership",
    "LeadershipLostError",
    "LeaseClient",
    "WorkNotStoppedError",
]

_LOG: Final = logging.getLogger(__name__)
_REMEMBERED_TERMS: Final = 16
_RELEASE_SECONDS: Final = 2.0


class WorkNotStoppedError(RuntimeError):
    """Work goes on although its leadership is over: the process must end."""


@dataclass(frozen=True, slots=True)
class ElectorHooks:
    """What metrics want to know. They must not raise."""

    led: Callable[[bool], None] = lambda _is_leading: None
    """Called when leading begins and when the work has ended."""
    seen: Callable[[str], None] = lambda _holder: None
    """Called with each new holder that is seen, empty where there is none."""
    failed: Callable[[ApiError], None] = lambda _error: None
    """Called when a call fails; a conflict is no failure."""


_RUNTIME: Final = Runtime()
_HOOKS: Final = ElectorHooks()


@dataclass(frozen=True, slots=True)
class _Inheritance:
    intents: tuple[Intent, ...]
    is_unreadable: bool


class Leadership:
    """What the work of a leader is handed: what it inherits, and its right to act."""

    def __init__(self, identity: str, office: Office, inheritance: _Inheritance) -> None:
        self.identity = identity
        self.inherited = inheritance.intents
        """What the past leader had declared; it may still land until it is settled."""
        self.inherited_unreadable = inheritance.is_unreadable
        """Whether the past leader's declaration is lost, so that anything may still land."""
        self._office = office

    def is_held(self) -> bool:
        """Tell, by our own monotonic clock, whether it is certain that no one else leads."""
        return self._office.is_held()

    @property
    def term(self) -> LeaseTerm:
        """The term, as releases name it now."""
        return self._office.term

    async def declare(self, intents: Sequence[Intent]) -> None:
        """Replace the declared intents; returns once the Lease has them. Counts as a renewal.

        Raises LeadershipLostError when not held any more, and then nothing of it may be done;
        ValueError above MAX_INTENTS or MAX_BYTES (see `count_fitting`).
        """
        await self._office.declare(encode_intents(intents))


class Elector:
    """A candidate while `run` runs."""

    def __init__(
        self,
        client: LeaseClient,
        settings: ElectorSettings,
        runtime: Runtime = _RUNTIME,
        hooks: ElectorHooks = _HOOKS,
    ) -> None:
        self._door = LeaseDoor(client, settings)
        self._settings = settings
        self._runtime = runtime
        self._hooks = hooks
        self._observation: Observation | None = None
        self._own: deque[Term] = deque(maxlen=_REMEMBERED_TERMS)
        """Terms that this elector took or tried to take; no work runs in any while it campaigns."""
        self._has_seen_lease = False
        self._holder = ""
        self._office: Office | None = None

    @property
    def is_leading(self) -> bool:
        """Whether it holds the Lease now."""
        return self._office is not None and self._office.is_held()

    @property
    def holder(self) -> str:
        """The identity that was last seen to hold the Lease, empty where none was."""
        return self._holder

    async def run(self, lead: Callable[[Leadership], Activity]) -> None:
        """Campaign for ever, and run `lead` while leading; it is cancelled when that is lost.

        Returns when the work returns, and raises its error, after releasing the Lease; so does
        being cancelled. Raises WorkNotStoppedError when the work does not stop in time.
        """
        while True:
            office, inheritance = await self._campaign()
            leadership = Leadership(self._settings.identity, office, inheritance)
            self._office = office
            self._hooks.led(True)
            try:
                is_lost = await self._serve(office, lead(leadership))
            finally:
                self._office = None
                self._hooks.led(False)
            if not is_lost:
                return

    # Campaigning

    async def _campaign(self) -> tuple[Office, _Inheritance]:
        while True:
            wait = 0.0
            try:
                if (won := await self._try_to_take()) is not None:
                    return won
            except (ConflictError, AlreadyExistsError) as error:
                _LOG.debug("lease %s: %s", self._settings.name, error)
            except ApiError as error:
                _LOG.warning("lease %s not read or taken: %s", self._settings.name, error)
                self._hooks.failed(error)
                wait = min(error.retry_after_seconds or 0.0, self._settings.lease_seconds)
            retry = self._settings.retry_seconds
            # Early rather than late: a Lease that was released is then found within `retry`.
            await self._runtime.sleep(max(wait, self._runtime.uniform(SPREAD * retry, retry)))

    async def _try_to_take(self) -> tuple[Office, _Inheritance] | None:
        stored = await self._door.read(self._settings.call_seconds)
        now = self._runtime.clock()
        record = stored.record if stored else None
        self._observation = observe(self._observation, record, now)
        self._see(record.holder if record else "")
        self._has_seen_lease |= stored is not None
        if not may_take(self._observation, self._own, self._settings.lease_seconds, now):
            return None
        return await self._take(stored)

    async def _take(self, stored: StoredLease | None) -> tuple[Office, _Inheritance] | None:
        settings, runtime = self._settings, self._runtime
        before = stored.record if stored else LeaseRecord()
        record = before.taken(settings.identity, settings.lease_seconds, runtime.wall_clock())
        intents = stored.intents if stored else None
        self._own.append(record.term)
        sent = runtime.clock()
        taken = await self._door.write(
            stored,
            record,
            # What cannot be read stays until the new leader declares, which it does knowingly.
            encode_intents(()) if intents is None else intents,
            settings.call_seconds,
        )
        self._see(settings.identity)
        office = Office(self._door, (taken, sent), settings, runtime, self._hooks.failed)
        if not office.is_held():
            return None
        inheritance = self._inherit(stored)
        _LOG.info(
            "%s leads by lease %s, after %s, with %d intents to settle",
            settings.identity,
            settings.name,
            before.holder or "no one",
            len(inheritance.intents),
        )
        return office, inheritance

    def _inherit(self, stored: StoredLease | None) -> _Inheritance:
        if stored is None:
            # One that was deleted has taken its intents with it.
            return _Inheritance((), self._has_seen_lease)
        if stored.intents is None:
            return _Inheritance((), stored.record.term != LeaseRecord().term)
        try:
            return _Inheritance(decode_intents(stored.intents), is_unreadable=False)
        except UnreadableIntentsError as error:
            _LOG.error("intents of lease %s not understood: %s", self._settings.name, error)
            return _Inheritance((), is_unreadable=True)

    def _see(self, holder: str) -> None:
        if holder != self._holder:
            self._holder = holder
            self._hooks.seen(holder)

    # Leading

    async def _serve(self, office: Office, activity: Activity) -> bool:
        """Run the work until it or the leadership ends; True when it was the leadership."""
        work = asyncio.create_task(activity, name="work of the leader")
        keep = asyncio.create_task(office.keep(), name="renewal of the lease")
        is_lost = False
        try:
            await asyncio.wait((work, keep), return_when=asyncio.FIRST_COMPLETED)
            is_lost = not work.done()
        finally:
            try:
                await self._stop(work)
            finally:
                await _cancel(keep)
                office.end()
            if not is_lost:
                await office.release(min(_RELEASE_SECONDS, self._settings.call_seconds))
            failure = _failure(work)
            if failure is not None:
                # Raised even in place of a cancellation: a fault of the work must be seen.
                raise failure
        if not keep.cancelled():
            keep.result()
        return is_lost or _is_loss(work)

    async def _stop(self, work: "asyncio.Task[None]") -> None:
        work.cancel()
        seconds = self._settings.stop_seconds
        await asyncio.wait((work,), timeout=seconds)
        if not work.done():
            self._own.clear()
            raise WorkNotStoppedError(
                f"the work of the leader did not stop within {seconds:g} s, "
                f"at {work.get_stack(limit=1)}"
            )


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait((task,))


def _failure(work: "asyncio.Task[None]") -> BaseException | None:
    """Return the error of work that has ended, None if it is only that leadership was lost."""
    error = None if work.cancelled() else work.exception()
    if isinstance(error, BaseExceptionGroup):
        return error.split(LeadershipLostError)[1]
    return None if isinstance(error, LeadershipLostError) else error


def _is_loss(work: "asyncio.Task[None]") -> bool:
    return not work.cancelled() and work.exception() is not None
