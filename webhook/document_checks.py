# SPDX-License-Identifier: Apache-2.0
"""Finds what would be wrong with a set of documents that is not served, nor shall be.

A load takes its time, so it runs in a thread of its own, one at a time, and few may wait for it.
Which sets are asked about, and what is answered, is not known here.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from policies.documents.problems import Problem
from policies.documents.source import SourceText
from reconciler.runtime.documents import DocumentState, Load

MOST_WAITING: Final = 16
"""So many loads wait; who asks for one more is told to come again."""

_KEPT: Final = 4
"""The two passes of one review, and the set without its change, ask the same again."""

Sources = tuple[SourceText, ...]
Problems = tuple[Problem, ...]


class ApiSources(Protocol):
    """The documents in the API."""

    @property
    def is_synced(self) -> bool:
        """Tell whether they are known."""

    def sources(self) -> Sources:
        """Return them as they were last seen."""

    async def fresh(self) -> Sources:
        """Return them as they are now. Raises ApiError."""


class NoSources:
    """No API to keep documents in."""

    is_synced = True

    def sources(self) -> Sources:
        """Return nothing."""
        return ()

    async def fresh(self) -> Sources:
        """Return nothing."""
        return ()


class DocumentChecks:
    """The documents as they are, and what a load of others would find."""

    def __init__(
        self, load: Load, state: Callable[[], DocumentState], api: ApiSources | None = None
    ) -> None:
        """`state` is that of the documents now; `load` must not touch what is served."""
        self.api: ApiSources = api or NoSources()
        self._load = load
        self._state = state
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="document-check")
        self._waiting = 0
        self._found: OrderedDict[Sources, Problems] = OrderedDict()

    @property
    def is_ready(self) -> bool:
        """Tell whether the documents of files and API are known, so that there is a whole set."""
        return self.api.is_synced and bool(self.files())

    @property
    def is_busy(self) -> bool:
        """Tell whether as many wait already as may."""
        return self._waiting >= MOST_WAITING

    @property
    def known(self) -> Problems:
        """Return what is wrong with the documents as they were last loaded."""
        return self._state().problems

    def files(self) -> Sources:
        """Return the documents of files as they were last read."""
        return tuple(source for source in self._state().newest if source.has_lines)

    async def problems(self, sources: Sources) -> Problems:
        """Return what a load of these texts finds."""
        if sources in self._found:
            self._found.move_to_end(sources)
            return self._found[sources]
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._worker, self._find, sources)
        finally:
            self._waiting -= 1
        self._found[sources] = found
        while len(self._found) > _KEPT:
            self._found.popitem(last=False)
        return found

    def close(self) -> None:
        """Let the thread end; what waits is not looked at any more."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _find(self, sources: Sequence[SourceText]) -> Problems:
        return self._load(sources).problems
