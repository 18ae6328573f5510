# SPDX-License-Identifier: Apache-2.0
"""Serves the newest good policy set of a directory, and follows the directory's changes.

Documents that stand elsewhere, as objects of the API do, are loaded together with the files, so
that there is one set and one generation over all.

A change is loaded in a worker thread beside the set that is served, and swapped in whole; if it
has errors the old set stays. File notifications say that something changed, never what: the tree
is read again as a whole. A slow poll covers file systems that notify nobody.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from watchfiles import awatch

from policies.documents.problems import Problem, Severity, has_errors
from policies.documents.source import SourceText
from policies.model.policyset import PolicySet
from reconciler.runtime.document_files import Reading, read_documents

_LOG: Final = logging.getLogger(__name__)
_LOG_LEVEL: Final = {
    Severity.ERROR: logging.ERROR,
    Severity.WARNING: logging.WARNING,
    Severity.NOTE: logging.INFO,
}
_SETTLE_ROUNDS: Final = 50


class Loaded(Protocol):
    """What a loader makes of texts; the set is None where there are errors."""

    @property
    def policy_set(self) -> PolicySet | None:
        """The compiled set."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Errors, warnings and notes."""


class MoreSources(Protocol):
    """Documents that stand in no file."""

    @property
    def is_synced(self) -> bool:
        """Tell whether all are known; before that nothing is loaded, as half a set would be."""

    def sources(self) -> tuple[SourceText, ...]:
        """Return them as they are now, always in the same order."""

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Have `subscriber` called in the event loop after every change."""


Load = Callable[[Sequence[SourceText]], Loaded]
"""Compiles texts; called in a worker thread."""


@dataclass(frozen=True, slots=True)
class Timing:
    """`settle_seconds`: a changed tree must read alike twice, this far apart, before it counts.

    Every `tick_seconds` a missed start of the watch is looked for, every `poll_seconds` the tree
    is compared by content.
    """

    settle_seconds: float = 0.1
    tick_seconds: float = 1.0
    poll_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class DocumentState:
    """`policy_set` is what is served: the newest good one, or None before there was any.

    `problems` are those of the newest content, and `is_broken` says that it is not what is served.
    `newest` are the texts of that content, `served` those that the set was made from.
    """

    policy_set: PolicySet | None = None
    problems: tuple[Problem, ...] = ()
    is_broken: bool = False
    newest: tuple[SourceText, ...] = ()
    served: tuple[SourceText, ...] = ()


class DocumentWatcher:
    """Holds the state; `refresh` once before serving, then `run` as a task until cancelled."""

    def __init__(
        self,
        root: Path,
        load: Load,
        *,
        more: MoreSources | None = None,
        on_change: Callable[[DocumentState], None] = lambda _: None,
        timing: Timing | None = None,
    ) -> None:
        """Read nothing yet. `on_change` is called in the event loop after every change of state.

        `more` are documents beside the directory's.
        """
        self._root = root
        self._load = load
        self._more = more
        self._subscribers: tuple[Callable[[DocumentState], None], ...] = (on_change,)
        self._timing = timing or Timing()
        self._state = DocumentState()
        self._digest = ""
        self._loaded: tuple[str, tuple[SourceText, ...]] = ("", ())
        self._directories: frozenset[Path] = frozenset()
        self._logged: frozenset[Problem] = frozenset()
        self._watch_error = ""
        self._lock = asyncio.Lock()

    @property
    def state(self) -> DocumentState:
        """Return what is served and what is wrong with the newest content."""
        return self._state

    def current(self) -> PolicySet | None:
        """Return the set that is served; None before a good one was loaded."""
        return self._state.policy_set

    def subscribe(self, subscriber: Callable[[DocumentState], None]) -> Callable[[], None]:
        """Have `subscriber` called in the event loop after every change of state, until the end.

        Calling what is returned is the end.
        """
        self._subscribers = (*self._subscribers, subscriber)

        def end() -> None:
            self._subscribers = tuple(item for item in self._subscribers if item is not subscriber)

        return end

    async def refresh(self) -> None:
        """Read the tree and load it if its content is new; problems are found in the state."""
        async with self._lock:
            reading = await self._read_settled()
            if reading is None:
                return
            self._directories = reading.directories
            self._digest = reading.digest
            if self._more is not None and not self._more.is_synced:
                return
            more = self._more.sources() if self._more is not None else ()
            if (reading.digest, more) != self._loaded:
                self._loaded = (reading.digest, more)
                sources = (*reading.sources, *more)
                self._conclude(
                    *await self._try(reading, sources),
                    self._state.newest if reading.problems else sources,
                )

    async def run(self) -> None:
        """Follow changes until cancelled."""
        if self._more is None:
            await self._follow_files()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_files(), name="policy files")
            tasks.create_task(self._follow(self._more), name="policy objects")

    async def _follow(self, more: MoreSources) -> None:
        changed = asyncio.Event()
        changed.set()
        more.subscribe(changed.set)
        while True:
            await changed.wait()
            # What is applied at once arrives one by one.
            await asyncio.sleep(self._timing.settle_seconds)
            changed.clear()
            await self.refresh()

    async def _follow_files(self) -> None:
        while True:
            try:
                await self._watch(self._directories)
            except (OSError, RuntimeError) as error:
                await self._go_without(error)

    async def _go_without(self, error: Exception) -> None:
        """Poll once where nothing could be watched."""
        before = self._directories
        await self.refresh()
        if self._directories != before:
            return  # one of them had gone away in between
        if str(error) != self._watch_error:
            self._watch_error = str(error)
            _LOG.warning("policy documents are polled, for they cannot be watched: %s", error)
        await asyncio.sleep(self._timing.poll_seconds)

    async def _watch(self, directories: frozenset[Path]) -> None:
        """Refresh on changes, until other directories than these have to be watched."""
        ticks = round(self._timing.poll_seconds / self._timing.tick_seconds)
        tick = 0
        async for changes in awatch(
            *directories,
            watch_filter=None,
            recursive=False,
            rust_timeout=round(self._timing.tick_seconds * 1000),
            yield_on_timeout=True,
        ):
            # The first tick finds what changed before the watch had begun.
            if changes or tick % ticks == 0:
                await self.refresh()
            if self._directories != directories:
                return
            tick += 1

    async def _read_settled(self) -> Reading | None:
        """Return the tree once it rests; None if it does not, and another notification will come.

        An editor or a checkout that is half way through may leave documents that load well.
        """
        reading = await asyncio.to_thread(read_documents, self._root)
        for _ in range(_SETTLE_ROUNDS):
            if reading.digest == self._digest:
                return reading
            await asyncio.sleep(self._timing.settle_seconds)
            again = await asyncio.to_thread(read_documents, self._root)
            if again.digest == reading.digest:
                return again
            reading = again
        return None

    async def _try(
        self, reading: Reading, sources: tuple[SourceText, ...]
    ) -> tuple[PolicySet | None, tuple[Problem, ...]]:
        if reading.problems:
            # Without the missing file the others would be blamed for what they refer to.
            return None, reading.problems
        try:
            loaded = await asyncio.to_thread(self._load, sources)
        except Exception:  # noqa: BLE001 - a bug in the loader must not end the watch; it is shown
            _LOG.exception("policy documents: internal error while loading")
            message = "internal error while loading; the log has the traceback"
            return None, (Problem(Severity.ERROR, message, file=str(self._root)),)
        good = None if has_errors(loaded.problems) else loaded.policy_set
        return good, loaded.problems

    def _conclude(
        self,
        policy_set: PolicySet | None,
        problems: tuple[Problem, ...],
        sources: tuple[SourceText, ...],
    ) -> None:
        served = self._state.policy_set
        is_broken = policy_set is None
        if policy_set is None or (served and served.generation == policy_set.generation):
            # The same content keeps its object, and whatever has been memorised for it.
            policy_set = served
        texts = self._state.served if is_broken else sources
        self._state = DocumentState(policy_set, problems, is_broken, sources, texts)
        self._log(problems)
        # Until the set is good again, what was logged before stays logged.
        self._logged = frozenset(problems) | (self._logged if is_broken else frozenset())
        generation = policy_set.generation if policy_set else "none"
        if is_broken:
            _LOG.error("policy documents are broken; serving generation %s", generation)
        else:
            files = sum(source.has_lines for source in sources)
            objects = f" and {len(sources) - files} objects" if self._more is not None else ""
            _LOG.info("policy documents: %d files%s, generation %s", files, objects, generation)
        for subscriber in self._subscribers:
            subscriber(self._state)

    def _log(self, problems: tuple[Problem, ...]) -> None:
        for problem in problems:
            if problem not in self._logged:
                _LOG.log(_LOG_LEVEL[problem.severity], "policy documents: %s", problem)
