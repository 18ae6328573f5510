# SPDX-License-Identifier: Apache-2.0
"""Counts and audits answered reviews, some at a time.

The code of metrics and audit lines runs two to three times as fast over many reviews in a row as
once between two of them (processor caches); so they are gathered for a few milliseconds, after
their answers have gone out. What a line or a metric says must not be here.
"""

import logging
from collections.abc import Callable
from typing import Final

from reconciler.runtime.audit_record import AuditEntry
from webhook.serving import AuditSink, ReviewMetrics

logger = logging.getLogger(__name__)

BATCH: Final = 32
"""At most so many wait, and keep their pods in memory."""
DELAY_SECONDS: Final = 0.005

Later = Callable[[float, Callable[[], None]], object]
"""Calls a function after so many seconds, on the same thread, such as a loop's call_later."""


class Recorder:
    """Takes what has been answered. Without `later` everything is recorded at once."""

    def __init__(
        self, metrics: ReviewMetrics, audit: AuditSink, later: Later | None = None
    ) -> None:
        self._metrics = metrics
        self._audit = audit
        self._later = later
        self._waiting: list[AuditEntry] = []

    def add(self, entry: AuditEntry) -> None:
        """Take one answered review."""
        waiting = self._waiting
        waiting.append(entry)
        if self._later is None or len(waiting) >= BATCH:
            self.flush()
        elif len(waiting) == 1:
            self._later(DELAY_SECONDS, self.flush)

    def flush(self) -> None:
        """Record what waits. A fault here must not cost the reviews that come after."""
        entries, self._waiting = self._waiting, []
        if not entries:
            return
        try:
            reviewed = self._metrics.reviewed
            for entry in entries:
                reviewed(entry.request, entry.decision, entry.mode, entry.duration_us / 1e6)
            self._audit.record(entries)
        except Exception:
            uids = ", ".join(entry.request.uid for entry in entries)
            logger.exception("reviews were answered but not recorded: %s", uids)
