# SPDX-License-Identifier: Apache-2.0
"""Samples straight from exporters, where there is no Prometheus: many pages, a few at once.

How pages are found (endpoints) and read (exposition) must not be here.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from policies.telemetry.names import EXPORTERS, exporters
from reconciler.telemetry.endpoints import Endpoint
from reconciler.telemetry.exposition import ACCEPT, Memory, Page, PageReader
from reconciler.telemetry.http import Http, HttpLimits
from reconciler.telemetry.source import Report, SourceError, Take

_HEADERS: Final = {"Accept": ACCEPT}
_NAMED_PROBLEMS: Final = 3


@dataclass(frozen=True, slots=True)
class ScrapeSettings:
    """How pages are read. The limits are those of one page; `concurrency` is how many at once."""

    exporters: tuple[str, ...] = EXPORTERS
    limits: HttpLimits = field(
        default_factory=lambda: HttpLimits(seconds=5.0, max_bytes=8 * 2**20, connections=32)
    )
    concurrency: int = 32


class Scrape:
    """The exporters of a cluster. Use `http` as an async context manager around it."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        http: Http,
        settings: ScrapeSettings,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._endpoints = endpoints
        self._http = http
        self._settings = settings
        self._clock = clock
        self._reader = PageReader(exporters(settings.exporters))
        self._memories: dict[str, Memory] = {}

    @property
    def name(self) -> str:
        """The source's name."""
        return "scrape"

    @property
    def is_by_node(self) -> bool:
        """Return True: an exporter shows its own node."""
        return True

    async def read(self, nodes: AbstractSet[str], take: Take) -> Report:
        """Scrape the exporters of these nodes. Raises SourceError if none of them answered."""
        known = list(self._endpoints)
        wanted = [endpoint for endpoint in known if endpoint.node in nodes]
        urls = {endpoint.url for endpoint in known}
        self._memories = {url: kept for url, kept in self._memories.items() if url in urls}
        failures: dict[str, str] = {}
        malformed = 0
        waiting = iter(wanted)

        async def work() -> None:
            nonlocal malformed
            for endpoint in waiting:
                try:
                    page = await self._scrape(endpoint)
                except SourceError as error:
                    failures[endpoint.url] = f"{endpoint.node}: {error}"
                    continue
                malformed += page.malformed
                take(page.samples)

        workers = min(self._settings.concurrency, len(wanted))
        await asyncio.gather(*(work() for _ in range(workers)))
        if wanted and len(failures) == len(wanted):
            raise SourceError(_told(failures))
        return Report((_told(failures),) if failures else (), malformed)

    async def _scrape(self, endpoint: Endpoint) -> Page:
        answer = await self._http.get(endpoint.url, _HEADERS)
        if not answer.is_success:
            raise SourceError(f"status {answer.status}: {answer.excerpt}")
        memory = self._memories.setdefault(endpoint.url, Memory())
        return self._reader.read(answer.body, self._clock(), endpoint.node, memory)


def _told(failures: dict[str, str]) -> str:
    """Return one line for all, that is the same for the same nodes and errors."""
    ordered = sorted(failures.values())
    named = "; ".join(ordered[:_NAMED_PROBLEMS])
    more = len(ordered) - _NAMED_PROBLEMS
    return f"exporters that gave nothing: {named}" + (f"; and {more} more" if more > 0 else "")
