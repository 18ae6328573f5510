# SPDX-License-Identifier: Apache-2.0
"""Tells people in Kubernetes Events what Sluice did to an object, without flooding the cluster.

Core v1 Events with a count: what `kubectl describe` shows as `5m (x3 over 20m)` on every version,
for which a role needs create, get and patch on one resource. The same event has the same name, so
another process that leads later goes on counting. What is worth telling is not decided here.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from reconciler.kube.backoff import DEFAULT_BACKOFF, Backoff
from reconciler.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
)
from reconciler.kube.event_object import (
    Count,
    EventType,
    Occurrence,
    Regarding,
    Reporter,
    cut_note,
    event_body,
    event_name,
    repeat_patch,
)
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import EVENTS, Target

__all__ = [
    "EventClient",
    "EventType",
    "Recorder",
    "RecorderHooks",
    "RecorderSettings",
    "Regarding",
    "Reporter",
]

_LOG: Final = logging.getLogger(__name__)

_REPORTER: Final = Reporter()


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """Who reports, and how much at most."""

    reporter: Reporter = _REPORTER
    events_per_second: float = 5.0
    burst: int = 25
    repeat_seconds: float = 60.0
    """Repeats within it are written together, as one count."""
    window_seconds: float = 600.0
    """An event that has not come for longer is forgotten here; the API forgets it too."""
    max_events: int = 2000
    """How many different ones are held; more are dropped, the newest first."""
    flush_seconds: float = 2.0
    """How long an ending process may go on writing."""
    backoff: Backoff = DEFAULT_BACKOFF


@dataclass(frozen=True, slots=True)
class RecorderHooks:
    """What metrics want to know. They must not raise."""

    dropped: Callable[[str], None] = lambda _reason: None
    """Called with the event's reason when it will never be written."""


class EventClient(Protocol):
    """The part of a client that recording needs."""

    async def get(self, target: Target) -> Mapping[str, object]:
        """Return the object as it is now."""
        ...

    async def create(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Create an object in a collection."""
        ...

    async def patch_json(
        self, target: Target, operations: Sequence[Mapping[str, object]]
    ) -> Mapping[str, object]:
        """Apply a JSON patch."""
        ...


@dataclass(slots=True)
class _Held:
    first: datetime
    last: datetime
    count: int = 0
    written: int = 0
    """How many of `count` the API knows; 0 before the Event was made."""
    is_new: bool = True
    seen_at: float = 0.0
    due_at: float = 0.0


_SETTINGS: Final = RecorderSettings()
_RUNTIME: Final = Runtime()
_HOOKS: Final = RecorderHooks()


class Recorder:
    """Takes events at any time, and writes them while `run` runs."""

    def __init__(
        self,
        client: EventClient,
        settings: RecorderSettings = _SETTINGS,
        runtime: Runtime = _RUNTIME,
        hooks: RecorderHooks = _HOOKS,
    ) -> None:
        self._client = client
        self._settings = settings
        self._runtime = runtime
        self._hooks = hooks
        self._held: OrderedDict[Occurrence, _Held] = OrderedDict()
        self._wake = asyncio.Event()
        self._tokens = float(settings.burst)
        self._filled_at = runtime.clock()
        self._failures = 0
        self._held_until = 0.0

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        type: EventType = EventType.NORMAL,  # noqa: A002 - the API's own name
        action: str = "",
    ) -> None:
        """Take an event; never waits and never fails. `reason` and `action` are UpperCamelCase."""
        what = Occurrence(regarding, type, reason, action or reason, cut_note(note))
        now, time = self._runtime.clock(), self._runtime.wall_clock()
        held = self._held.get(what)
        if held is None:
            self._forget(now)
            if len(self._held) >= self._settings.max_events:
                self._hooks.dropped(reason)
                return
            held = self._held[what] = _Held(first=time, last=time, due_at=now)
        held.count += 1
        held.last, held.seen_at = time, now
        self._held.move_to_end(what)
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled; then what is still unwritten, for a short time."""
        try:
            while True:
                await self._wait()
                await self._write_due()
        finally:
            await self._flush()

    async def _wait(self) -> None:
        seconds = self._seconds_to_next(self._runtime.clock())
        self._wake.clear()
        if seconds is None:
            await self._wake.wait()
        elif seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _seconds_to_next(self, now: float) -> float | None:
        """Return when something may be written, None if nothing waits."""
        due = min((held.due_at for held in self._waiting().values()), default=None)
        if due is None:
            return None
        token = 0.0 if self._refill(now) >= 1 else (1 - self._tokens) / self._rate
        return max(due - now, token, self._held_until - now, 0.0)

    @property
    def _rate(self) -> float:
        return self._settings.events_per_second

    def _waiting(self) -> dict[Occurrence, _Held]:
        return {what: held for what, held in self._held.items() if held.count > held.written}

    def _refill(self, now: float) -> float:
        passed, self._filled_at = now - self._filled_at, now
        self._tokens = min(float(self._settings.burst), self._tokens + passed * self._rate)
        return self._tokens

    async def _write_due(self) -> None:
        now = self._runtime.clock()
        if now < self._held_until:
            return
        due = [(what, held) for what, held in self._waiting().items() if held.due_at <= now]
        for what, held in sorted(due, key=lambda each: each[1].due_at):
            if self._refill(self._runtime.clock()) < 1:
                return
            self._tokens -= 1
            if not await self._write(what, held):
                return

    async def _write(self, what: Occurrence, held: _Held) -> bool:
        """Write one event; False when the server cannot be written to for now."""
        count = held.count
        try:
            await self._put(what, held, count)
        except (UnavailableError, TooManyRequestsError, UnauthorizedError) as error:
            self._hold(error)
            return False
        except ConflictError:
            held.due_at = self._runtime.clock()
            return True
        except ApiError as error:
            # Its namespace is ending, or we may not: trying again would not help.
            _LOG.warning("event %s of %s dropped: %s", what.reason, what.regarding.name, error)
            self._hooks.dropped(what.reason)
        except ValueError as error:
            # A namespace that no path can hold.
            _LOG.warning("event %s dropped: %s", what.reason, error)
            self._hooks.dropped(what.reason)
        self._failures = 0
        held.written = count
        held.due_at = self._runtime.clock() + self._settings.repeat_seconds
        return True

    async def _put(self, what: Occurrence, held: _Held, count: int) -> None:
        target = Target(EVENTS, event_name(what), what.namespace)
        if held.is_new:
            try:
                await self._make(what, held, count)
            except AlreadyExistsError:
                pass
            else:
                held.is_new = False
                return
        try:
            await self._add(target, held, count)
        except NotFoundError:
            # The API keeps Events for an hour; it begins anew.
            held.first = held.last
            await self._make(what, held, count - held.written)
        held.is_new = False

    async def _add(self, target: Target, held: _Held, count: int) -> None:
        found = await self._client.get(target)
        await self._client.patch_json(target, repeat_patch(found, count - held.written, held.last))

    async def _make(self, what: Occurrence, held: _Held, count: int) -> None:
        seen = Count(count, held.first, held.last)
        body = event_body(what, seen, self._settings.reporter)
        await self._client.create(Target(EVENTS, namespace=what.namespace), body)

    def _hold(self, error: ApiError) -> None:
        self._failures += 1
        seconds = self._settings.backoff.seconds(self._failures, self._runtime.uniform)
        self._held_until = self._runtime.clock() + max(seconds, error.retry_after_seconds or 0.0)
        _LOG.warning("events not written: %s; again in %.1f s", error, seconds)

    def _forget(self, now: float) -> None:
        """Drop what has not come for long and is written; the oldest come first."""
        while self._held:
            what, held = next(iter(self._held.items()))
            is_old = now - held.seen_at > self._settings.window_seconds
            if not is_old or held.count > held.written:
                return
            del self._held[what]

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(self._settings.flush_seconds):
                for what, held in self._waiting().items():
                    if not await self._write(what, held):
                        break
        except TimeoutError:
            pass
        if left := len(self._waiting()):
            _LOG.warning("%d events were not written before the end", left)
