# SPDX-License-Identifier: Apache-2.0
"""Puts the webhook together from its parts, and runs them as one process.

Here is decided what is connected to what; how each part works is its own module's matter.
Controllers are not known here: whoever starts them adds their activities.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from policies.decide import decide
from policies.model.facts import ClusterFacts, Facts
from policies.replicas import Replicas
from reconciler.runtime.api_documents import ApiDocuments
from reconciler.runtime.audit import AuditLog
from reconciler.runtime.audit_file import Rotation
from reconciler.runtime.document_health import count_documents, document_conditions
from reconciler.runtime.documents import DocumentState, DocumentWatcher
from reconciler.runtime.health import (
    Readiness,
    facts_fresh_condition,
    facts_synced_condition,
)
from reconciler.runtime.loading import Compiler
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import StopEvents, stop_on_signals
from reconciler.runtime.tasks import Activity, supervise
from webhook.document_checks import DocumentChecks
from webhook.screen import Screen
from webhook.server import Listen, WebhookServer, serve
from webhook.serving import Serving
from webhook.tls import ServerTls
from webhook.tls_sources import PemSource

_FIRST_LOAD_SECONDS = 5.0
"""How long the first call may be kept waiting for documents that the API does not give."""

_AUDIT_SECONDS = 5.0
"""How long the last audit lines may take to be written when the process ends."""


class FactsSource(Protocol):
    """Where facts come from; asked once per review, never waited for."""

    def facts(self, now: datetime) -> Facts:
        """Return the newest picture."""
        ...

    @property
    def is_synced(self) -> bool:
        """Tell whether there has been a whole picture yet."""
        ...


@dataclass(frozen=True, slots=True)
class FixedFacts:
    """Facts of a file, or none: they never grow old, and their own `now` stands."""

    given: Facts | None = None

    def facts(self, now: datetime) -> Facts:
        """Return the given facts, or that nothing is known."""
        return self.given or Facts(ClusterFacts({}), now)

    @property
    def is_synced(self) -> bool:
        """Tell that there is nothing to wait for."""
        return True


@dataclass(frozen=True, slots=True)
class Options:
    """Where things are. `audit` is a path or `-` for standard output."""

    policies: Path
    certificates: PemSource
    audit: str
    listen: Listen = field(default_factory=Listen)
    rotation: Rotation = field(default_factory=Rotation)


class Service:
    """One webhook process, not yet running. The constructor raises TlsError, AuditFileError."""

    def __init__(
        self,
        options: Options,
        compiler: Compiler,
        source: FactsSource,
        api: ApiDocuments | None = None,
    ) -> None:
        """`api` are the documents of the cluster, which somebody else keeps current."""
        self.metrics = Metrics()
        self.documents = DocumentWatcher(
            options.policies, compiler.load, more=api, on_change=self._documents_changed
        )
        self._api = api
        self._loaded = asyncio.Event()
        self._checks = DocumentChecks(
            lambda sources: compiler.load(sources, datetime.now(UTC)),
            lambda: self.documents.state,
            api,
        )
        self._source = source
        self._stale_seconds: int | None = None
        self._tls = ServerTls(options.certificates, self.metrics)
        self.audit = AuditLog(options.audit, self.metrics, options.rotation)
        self._server = WebhookServer(self._serving(compiler), self._tls, options.listen)

    def _serving(self, compiler: Compiler) -> Serving:
        return Serving(
            policies=self.documents.current,
            facts=self._facts,
            audit=self.audit,
            metrics=self.metrics,
            readiness=self.readiness,
            decide=Replicas(decide).decide,
            touches_gpus=Screen(compiler.catalog).touches_gpus,
            documents=self._checks,
        )

    async def run(
        self,
        ready: Callable[[int], None] | None = None,
        others: Mapping[str, Activity] | None = None,
    ) -> None:
        """Serve until SIGTERM or SIGINT beside the other activities; `ready` is told the port."""
        try:
            await self.documents.refresh()
            with stop_on_signals() as events:
                await supervise(
                    {
                        "webhook": self._serve(events, ready),
                        "policy documents": self.documents.run(),
                        "certificates": self._tls.watch(),
                        **(others or {}),
                    }
                )
        finally:
            self._checks.close()
            self.audit.close(_AUDIT_SECONDS)

    async def _serve(self, events: StopEvents, ready: Callable[[int], None] | None) -> None:
        if self._api is not None:
            # Whoever called before the set is whole could only be refused. It is not waited for
            # for ever, since /readyz says what is missing.
            await _either(self._loaded, events.stop, _FIRST_LOAD_SECONDS)
        await serve(self._server, events, ready)

    def readiness(self) -> Readiness:
        """Return the conditions that /readyz shows."""
        facts = self._facts()
        return Readiness(
            (
                *document_conditions(self.documents.state, self._api),
                facts_synced_condition(synced=self._source.is_synced),
                facts_fresh_condition(facts.stale_seconds),
            )
        )

    def _facts(self) -> Facts:
        facts = self._source.facts(datetime.now(UTC))
        if facts.stale_seconds != self._stale_seconds:
            self._stale_seconds = facts.stale_seconds
            self.metrics.facts_age(facts.stale_seconds or 0)
        return facts

    def _documents_changed(self, state: DocumentState) -> None:
        self._loaded.set()
        count_documents(self.metrics, state)


async def _either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    """Wait until one of the events is set, at most so long."""
    waits = {asyncio.create_task(event.wait()) for event in (one, other)}
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
