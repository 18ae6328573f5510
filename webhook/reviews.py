# SPDX-License-Identifier: Apache-2.0
"""One review from bytes to bytes: parse, decide, answer, record. No HTTP in here.

A call that is no review raises ReviewError; everything else gets a well-formed answer, also when
Sluice fails. Every microsecond counts here: it is what each pod of the cluster waits for.
"""

import logging

from policies.model.decision import Decision
from policies.model.request import Phase, Request
from policies.model.settings import Settings
from reconciler.runtime.audit_record import AuditEntry
from webhook.answer import answer, encode
from webhook.envelope import parse
from webhook.failure import Cause, UndecidedError, fail
from webhook.recorder import Later, Recorder
from webhook.serving import Serving

logger = logging.getLogger(__name__)

_DEFAULTS = Settings()


class Reviews:
    """Answers reviews with what `serving` provides; `later` is as in Recorder."""

    def __init__(self, serving: Serving, later: Later | None = None) -> None:
        self._serving = serving
        self.recorder = Recorder(serving.metrics, serving.audit, later)
        self._monotonic = serving.clock.monotonic
        self._now = serving.clock.now

    def review(self, body: bytes, phase: Phase, deadline: float) -> bytes:
        """Return the response to a review that must be decided before `deadline` (monotonic).

        Raises ReviewError for a body that is no review.
        """
        started = self._monotonic()
        request = parse(body, phase)
        settings, generation, cause = _DEFAULTS, "", Cause.EXCEPTION
        try:
            policies = self._serving.policies()
            if policies is None:
                raise UndecidedError(Cause.NO_POLICIES)  # noqa: TRY301 - one place answers failures
            settings, generation = policies.settings, policies.generation
            if started > deadline:
                raise UndecidedError(Cause.DEADLINE)  # noqa: TRY301 - likewise
            decision = self._serving.decide(policies, self._serving.facts(), request)
            given = answer(decision, settings.mode)
            response = encode(request.uid, given, decision, settings.mode)
        except Exception as error:  # noqa: BLE001 - whatever it is, the pod gets the failure mode
            cause = self._note(request, error)
            decision = self._fail(request, cause, settings, generation)
            given = answer(decision, settings.mode)
            response = encode(request.uid, given, decision, settings.mode)
        entry = AuditEntry(
            request=request,
            decision=decision,
            mode=settings.mode,
            allowed=given.allowed,
            warnings=given.warnings,
            at=self._now(),
            duration_us=int((self._monotonic() - started) * 1e6),
        )
        self.recorder.add(entry)
        return response

    def _note(self, request: Request, error: Exception) -> Cause:
        """Log a failure under the review's uid, and count it."""
        cause = error.cause if isinstance(error, UndecidedError) else Cause.EXCEPTION
        trace = error if cause is Cause.EXCEPTION else None
        logger.error("review %s could not be decided: %s", request.uid, cause, exc_info=trace)
        self._serving.metrics.internal_error(request.phase, cause)
        return cause

    def _fail(
        self, request: Request, cause: Cause, settings: Settings, generation: str
    ) -> Decision:
        try:
            touches_gpus = self._serving.touches_gpus(request)
        except Exception:
            logger.exception("review %s: taken as one that touches GPUs", request.uid)
            touches_gpus = True
        return fail(request, cause, settings.failure_mode, generation, touches_gpus=touches_gpus)
