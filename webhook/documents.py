# SPDX-License-Identifier: Apache-2.0
"""Reviews of documents that people keep as custom resources: `sluice lint`, at `kubectl apply`.

Each is checked in the whole set, files and API together, by a load of its own in a worker thread.
Nothing of it is served; that is for the watcher, once the API server has stored the object.
"""

import asyncio
import logging
from typing import Final

from policies.documents.kinds import Kind
from policies.model.decision import Decision, Verdict, Violation
from policies.model.reasons import Reason
from policies.model.request import Request
from policies.model.settings import Mode, Settings
from reconciler.kube.document_resources import GROUP
from reconciler.kube.errors import ApiError
from reconciler.runtime.audit_record import AuditEntry
from webhook import document_rules as rules
from webhook.answer import answer, encode
from webhook.document_checks import DocumentChecks, Problems, Sources
from webhook.recorder import Recorder
from webhook.serving import Serving

logger = logging.getLogger(__name__)

_MARK: Final = f'"{GROUP}"'.encode()
_DEFAULTS: Final = Settings()
_MARGIN_SECONDS: Final = 0.2
"""An answer that comes as the caller gives up comes too late."""


def may_concern_documents(body: bytes) -> bool:
    """Tell whether it is worth parsing a review to find out; almost no review of a pod is."""
    return _MARK in body


class DocumentReviews:
    """Answers reviews of documents; `recorder` is that of all reviews."""

    def __init__(self, serving: Serving, checks: DocumentChecks, recorder: Recorder) -> None:
        self._serving = serving
        self._checks = checks
        self._recorder = recorder

    async def review(self, request: Request, deadline: float) -> bytes | None:
        """Return the response to a review that must be decided before `deadline` (monotonic).

        None where it is about something else. Documents are Sluice's own, so a bad one is refused
        in mode Observe too, and whatever the failure mode.
        """
        if request.group != GROUP:
            return None
        clock = self._serving.clock
        started = clock.monotonic()
        policies = self._serving.policies()
        generation = policies.generation if policies else ""
        account = (policies.settings if policies else _DEFAULTS).account
        try:
            async with asyncio.timeout(deadline - started - _MARGIN_SECONDS):
                decision = await self._decide(request, account, generation)
        except TimeoutError:
            decision = _undecided("checking it took too long: try again", generation)
        except Exception:
            logger.exception("document review %s could not be decided", request.uid)
            words = f"Sluice failed to decide; its log has the cause under review {request.uid}"
            decision = _undecided(words, generation)
        given = answer(decision, Mode.ENFORCE)
        self._recorder.add(
            AuditEntry(
                request=request,
                decision=decision,
                mode=Mode.ENFORCE,
                allowed=given.allowed,
                warnings=given.warnings,
                at=clock.now(),
                duration_us=int((clock.monotonic() - started) * 1e6),
            )
        )
        return encode(request.uid, given, decision, Mode.ENFORCE)

    async def _decide(self, request: Request, account: str, generation: str) -> Decision:
        kind = rules.kind_of(request)
        if kind is None or request.user.username == account:
            return Decision(Verdict.ALLOWED, generation)
        refused = rules.trespass(request, kind)
        if refused is not None:
            return Decision(Verdict.DENIED, generation, (refused,))
        change = rules.change_of(request, kind)
        if change is None:
            return Decision(Verdict.ALLOWED, generation)
        if not self._checks.is_ready:
            return _undecided("the other documents are not known yet: try again", generation)
        if self._checks.is_busy:
            return _undecided("too many documents are being checked: try again", generation)
        return await self._check(request, kind, change, generation)

    async def _check(
        self, request: Request, kind: Kind, change: rules.Change, generation: str
    ) -> Decision:
        api = self._checks.api.sources()
        after, before = await self._compare(change, api)
        refused = rules.violations(change, after, before)
        if refused:
            # What was applied a moment ago may not have been seen yet; a refusal must be right.
            now = await self._fresh(api)
            if now != api:
                after, before = await self._compare(change, now)
                refused = rules.violations(change, after, before)
        verdict = Verdict.DENIED if refused else Verdict.ALLOWED
        warned = rules.warnings(change, after, before) + rules.farewell(request, kind)
        return Decision(verdict, generation, refused, warned)

    async def _compare(self, change: rules.Change, api: Sources) -> tuple[Problems, Problems]:
        """Return what is wrong with the set after the change, and what was before it."""
        whole = (*self._checks.files(), *api)
        after = await self._checks.problems(change.applied_to(whole))
        known = self._checks.known
        if all(problem.file == change.name or problem in known for problem in after):
            return after, known
        return after, await self._checks.problems(whole)

    async def _fresh(self, seen: Sources) -> Sources:
        try:
            return await self._checks.api.fresh()
        except ApiError as error:
            logger.warning("a document is checked against those last seen: %s", error)
            return seen


def _undecided(words: str, generation: str) -> Decision:
    return Decision(Verdict.DENIED, generation, (Violation(Reason.INTERNAL_ERROR, words),))
