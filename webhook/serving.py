# SPDX-License-Identifier: Apache-2.0
"""What the webhook needs of the rest of the process, stated where it is used.

Values and protocols only. Every provider is called once per review, so that one review sees
exactly one policy set and one picture of the cluster.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from policies.model.decision import Decision
from policies.model.facts import Facts
from policies.model.policyset import PolicySet
from policies.model.request import Phase, Request
from policies.model.settings import Mode
from reconciler.runtime.audit_record import AuditEntry
from reconciler.runtime.health import Readiness
from webhook.document_checks import DocumentChecks

Decide = Callable[[PolicySet, Facts, Request], Decision]


class AuditSink(Protocol):
    """Where decisions are recorded."""

    def record(self, entries: Sequence[AuditEntry]) -> None:
        """Take decisions for the audit log. Never blocks and never raises."""


class ReviewMetrics(Protocol):
    """Where reviews are counted."""

    def reviewed(self, request: Request, decision: Decision, mode: Mode, seconds: float) -> None:
        """Count one answered review."""

    def internal_error(self, phase: Phase, cause: str) -> None:
        """Count a review that no decision was made for."""

    def call_refused(self, status: int) -> None:
        """Count an HTTP call that was no review."""

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return what /metrics answers, and its content type."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The two clocks: the time of day for the audit log, and one that only goes forward."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Serving:
    """The providers of one webhook.

    `policies` returns None until a set has been loaded. `touches_gpus` decides, when nothing else
    can be decided, whether the failure mode applies: what it says no to is allowed. Without
    `documents` those in the API are nobody's business.
    """

    policies: Callable[[], PolicySet | None]
    facts: Callable[[], Facts]
    audit: AuditSink
    metrics: ReviewMetrics
    readiness: Callable[[], Readiness]
    decide: Decide
    touches_gpus: Callable[[Request], bool]
    documents: DocumentChecks | None = None
    clock: Clock = Clock()
