# SPDX-License-Identifier: Apache-2.0
"""Keeps a store true to a collection of the API server: list, watch, and what can go wrong.

It recovers from every failure of the server or the network by itself, and says how long it has
been out of touch; a failure of our own code (a view, a subscriber) ends `run` with that error, so
that nothing goes on half alive. What the objects mean is not known here.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, Protocol

from reconciler.kube.backoff import DEFAULT_BACKOFF, Backoff, Uniform
from reconciler.kube.client import Page
from reconciler.kube.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    MalformedAnswerError,
    SilenceError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
)
from reconciler.kube.resources import Selection
from reconciler.kube.slices import U, in_slices
from reconciler.kube.store import Change, Key, Store, T, View, parse_version
from reconciler.kube.stream import EventType, WatchEvent

_LOG: Final = logging.getLogger(__name__)

Subscriber = Callable[[Change[T]], None]


class Source(Protocol):
    """The part of a client that a reflector needs."""

    async def list_page(
        self, selection: Selection, *, limit: int, continue_token: str = ""
    ) -> Page:
        """Return a page of a consistent list."""
        ...

    def watch(
        self, selection: Selection, version: str, *, seconds: float, silence_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
        ...


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """Times and sizes; the defaults are meant for production."""

    page_size: int = 500
    watch_seconds: tuple[float, float] = (300.0, 600.0)
    """A watch is renewed after a random time between these, so that replicas spread."""
    silence_seconds: float = 20.0
    """A watch that is silent for longer is taken for dead and opened anew."""
    backoff: Backoff = DEFAULT_BACKOFF
    slice_seconds: float = 0.01
    """A list is read and published with a pause after so long, in which others have their turn."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time and chance, so that tests can set them."""

    clock: Callable[[], float] = time.monotonic
    uniform: Uniform = random.uniform
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    wall_clock: Callable[[], datetime] = _utc_now
    """For times that people read; nothing is decided by it."""


@dataclass(slots=True)
class Counters:
    """What happened since the start, for metrics."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    failures: int = 0


_SETTINGS: Final = ReflectorSettings()
_RUNTIME: Final = Runtime()
_QUIET_SHARE: Final = (0.6, 0.9)
_SHORT_SECONDS: Final = 1.0


class Reflector(Generic[T]):
    """The views of one selection, kept current while `run` runs."""

    def __init__(
        self,
        source: Source,
        selection: Selection,
        view: View[T],
        settings: ReflectorSettings = _SETTINGS,
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the first list is complete and every subscriber has seen it; never cleared."""
        self.counters = Counters()
        self._source = source
        self._selection = selection
        self._store = Store(view)
        self._settings = settings
        self._runtime = runtime
        self._subscribers: tuple[Subscriber[T], ...] = ()
        self._on_rewind: Callable[[], None] = lambda: None
        self._contact = runtime.clock()
        self._must_list = True
        self._is_publishing = False
        self._is_quiet = False
        self._opened = self._contact
        self._failures = 0
        self._relists = 0

    def get(self, key: Key) -> T | None:
        """Return the view of an object, None where there is none."""
        return self._store.get(key)

    def values(self) -> tuple[T, ...]:
        """Return all views, in no particular order."""
        return self._store.values()

    def __len__(self) -> int:
        return len(self._store)

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Have `subscriber` called with every change from now on, in order, as it happens.

        It must not block and not raise: what it raises ends `run`.
        """
        self._subscribers = (*self._subscribers, subscriber)

    def on_rewind(self, listener: Callable[[], None]) -> None:
        """Have a listener called when the server has gone back in time, as after a restore.

        It is called before the older list is published, and may raise, which ends `run`.
        """
        self._on_rewind = listener

    @property
    def is_whole(self) -> bool:
        """Whether subscribers have been told of all that is held; not so within a list."""
        return not self._is_publishing

    def seconds_since_contact(self, now: float) -> float:
        """Return how old the picture may be at monotonic time `now`: since the server last spoke.

        Before the first contact it counts from the start; see `synced`.
        """
        return max(0.0, now - self._contact)

    async def run(self) -> None:
        """Keep the store current until cancelled; raises only what is a fault of our own."""
        while True:
            try:
                if self._must_list:
                    await self._list()
                elif self._failures:
                    await self._compare_histories()
                await self._watch()
            except SilenceError as error:
                # No fault yet: a quiet collection looks the same. Asking again will tell.
                self._is_quiet = True
                _LOG.debug("%s", error)
            except ApiError as error:
                self._must_list = self._must_list or not _resumable(error)
                await self._pause(error)

    async def _list(self) -> None:
        draft, token, version = self._store.draft(), "", 0
        while True:
            page = await self._source.list_page(
                self._selection, limit=self._settings.page_size, continue_token=token
            )
            await self._in_slices(page.items, draft.add)
            version, token = parse_version(page.version), page.continue_token
            if not token:
                break
        self.counters.lists += 1
        if version < int(self._store.version):
            self._on_rewind()
        await self._publish_list(self._store.replace(draft, version))
        # Only now: while a list was being read the picture was still the old one.
        self._touch()
        self._must_list, self._failures = False, 0
        self.synced.set()

    async def _compare_histories(self) -> None:
        """Make sure after an outage that the server has not gone back in time.

        One restored from a backup accepts a watch from a version that it has not reached yet, and
        is silent until it has. Raises GoneError.
        """
        page = await self._source.list_page(self._selection, limit=1)
        if parse_version(page.version) < int(self._store.version):
            raise GoneError(f"the server is at {page.version}, before {self._store.version}")

    async def _watch(self) -> None:
        events = self.counters.events
        async with self._source.watch(
            self._selection,
            self._store.version,
            seconds=self._watch_seconds(),
            silence_seconds=self._settings.silence_seconds,
        ) as stream:
            self._touch()
            self._opened = self._runtime.clock()
            self.counters.watches += 1
            async for event in stream:
                self._take(event)
        if events == self.counters.events and self._open_seconds() < _SHORT_SECONDS:
            raise UnavailableError(f"the watch of {self._selection} ended as soon as it began")
        self._failures = self._relists = 0

    def _watch_seconds(self) -> float:
        """Ask for short watches of a quiet collection.

        A server sends bookmarks every minute and at the end of a watch. Short ones therefore bring
        proof of life, and a version that stays fresh, within the time that silence is borne.
        """
        if self._is_quiet:
            low, high = _QUIET_SHARE
            silence = self._settings.silence_seconds
            return self._runtime.uniform(low * silence, high * silence)
        return self._runtime.uniform(*self._settings.watch_seconds)

    def _take(self, event: WatchEvent) -> None:
        self._touch()
        self.counters.events += 1
        self._failures = 0
        if self._open_seconds() >= self._settings.backoff.cap_seconds:
            self._relists = 0
        if event.type is not EventType.BOOKMARK:
            self._is_quiet = False
        self._publish(self._store.apply(event))

    def _open_seconds(self) -> float:
        return self._runtime.clock() - self._opened

    def _publish(self, changes: Iterable[Change[T]]) -> None:
        for change in changes:
            for subscriber in self._subscribers:
                subscriber(change)

    async def _publish_list(self, changes: Iterable[Change[T]]) -> None:
        self._is_publishing = True
        await self._in_slices(changes, lambda change: self._publish((change,)))
        self._is_publishing = False

    async def _in_slices(self, items: Iterable[U], act: Callable[[U], None]) -> None:
        await in_slices(items, act, self._settings.slice_seconds, self._runtime.clock)

    def _touch(self) -> None:
        self._contact = self._runtime.clock()

    async def _pause(self, error: ApiError) -> None:
        self.counters.failures += 1
        self._failures += 1
        # Lists are dear, so their count outlives the few events that a watch brings in between.
        self._relists += self._must_list
        seconds = max(
            self._settings.backoff.seconds(
                max(self._failures, self._relists), self._runtime.uniform
            ),
            error.retry_after_seconds or 0.0,
        )
        _LOG.warning(
            "%s: %s (%s); %s in %.1f s",
            self._selection,
            error,
            type(error).__name__,
            "listing again" if self._must_list else "watching again",
            seconds,
        )
        await self._runtime.sleep(seconds)


_RESUMABLE: Final = (UnavailableError, TooManyRequestsError, UnauthorizedError, ForbiddenError)


def _resumable(error: ApiError) -> bool:
    """Tell whether the watch may go on from where it was; if not, only a new list is the truth."""
    return isinstance(error, _RESUMABLE) and not isinstance(error, MalformedAnswerError)
