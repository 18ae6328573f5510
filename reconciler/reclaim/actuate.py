# SPDX-License-Identifier: Apache-2.0
"""Carries out what a reclaim plan says: notices, evictions, and deletions as the last resort.

Every write names the version that was planned on, and every end is declared before it is sent, so
that no past leader's lands unseen. Nothing is retried here: the next plan knows what became of it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from policies.model.keys import NOTICE
from policies.model.settings import Mode
from policies.quota.notice import write_notice
from policies.quota.pods import Notice, QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import (
    Command,
    Delete,
    Evict,
    Forewarn,
    GiveUp,
    Notify,
    Withdraw,
)
from policies.quota.reclaim.snapshot import Disruption
from reconciler.kube.errors import (
    ApiError,
    BudgetError,
    ConflictError,
    NotFoundError,
    UnavailableError,
)
from reconciler.kube.intents import Intent, IntentKind
from reconciler.kube.resources import PODS, Target
from reconciler.reclaim.words import Told, refused, told
from reconciler.runtime.audit_eviction import EvictionEntry, Outcome

_LOG: Final = logging.getLogger(__name__)
_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"
"""Part of what the Eviction API says, with 500, of a pod that several budgets cover."""

End = Evict | Delete | GiveUp


class Calls(Protocol):
    """The part of a client that reclaim needs."""

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Apply a merge patch."""
        ...

    async def evict(self, target: Target, *, uid: str, version: str) -> None:
        """Ask the Eviction API for a pod's end."""
        ...

    async def delete(self, target: Target, *, uid: str, version: str) -> Mapping[str, object]:
        """Delete a pod."""
        ...


class Intents(Protocol):
    """Where ends are declared before they are sent."""

    async def declare(self, batch: Iterable[Intent]) -> None:
        """Return once the Lease names all of them. Raises LeadershipLostError."""
        ...

    def settle(self, uid: str) -> None:
        """Drop one whose outcome is known."""
        ...

    def fitting(self, batch: Sequence[Intent]) -> int:
        """Return how many of these, from the first on, may be declared now."""
        ...


class Witness(Protocol):
    """Whoever tells people and the audit log."""

    def event(self, pod: QuotaPod, said: Told) -> None:
        """Have an Event on a pod."""
        ...

    def record(self, entry: EvictionEntry) -> None:
        """Have a line in the audit log, and count it."""
        ...


@dataclass(frozen=True, slots=True)
class ActuatorSettings:
    """How hard to try."""

    concurrency: int = 8
    batch: int = 50
    """Ends declared at once; the rest goes with the next plan."""
    refused_seconds: int = 15
    """How long a pod is left alone that a disruption budget keeps."""
    failed_seconds: int = 60
    """How long a pod is left alone whose end the API server refuses for another reason."""


_SETTINGS: Final = ActuatorSettings()


@dataclass(frozen=True, slots=True)
class Duties:
    """What an actuator acts with. `now` is the API server's time in Unix seconds."""

    calls: Calls
    intents: Intents
    witness: Witness
    memory: Memory
    is_held: Callable[[], bool]
    absorb: Callable[[Mapping[str, object]], None]
    now: Callable[[], float]


class ReclaimActuator:
    """Acts for one leadership. `readmit_after` tells by command how long its source is held."""

    def __init__(
        self,
        duties: Duties,
        readmit_after: Callable[[End], int],
        settings: ActuatorSettings = _SETTINGS,
    ) -> None:
        self._duties = duties
        self._readmit_after = readmit_after
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._observed: set[tuple[str, str]] = set()
        self._doubtful: dict[str, int] = {}
        """Versions by UID of pods whose end may have been granted unseen."""

    async def carry_out(self, commands: Sequence[Command], mode: Mode) -> None:
        """Do it all, or in mode Observe only write it down, once. Raises LeadershipLostError."""
        if mode is Mode.OBSERVE:
            self._observe(commands)
            return
        self._observed.clear()
        words = [c for c in commands if isinstance(c, Notify | Forewarn | Withdraw)]
        ends = [c for c in commands if isinstance(c, Evict | Delete | GiveUp)]
        intents = [_intent(end.pod) for end in ends[: self._settings.batch]]
        ends = ends[: self._duties.intents.fitting(intents)]
        if ends:
            await self._duties.intents.declare(intents[: len(ends)])
        async with asyncio.TaskGroup() as tasks:
            for word in words:
                tasks.create_task(self._limited(self._tell(word)))
            for end in ends:
                tasks.create_task(self._limited(self._end(end)))

    def seen(self, pod: QuotaPod) -> None:
        """Take note of a pod that has changed.

        A write made for an older version has landed before this one, or never will.
        """
        self._duties.memory.seen(pod)
        if int(pod.version) > self._doubtful.get(pod.uid, int(pod.version)):
            self._settle(pod.uid)

    def gone(self, uid: str) -> None:
        """Take note of a pod that is no more."""
        self._duties.memory.gone(uid)
        if uid in self._doubtful:
            self._settle(uid)

    def _settle(self, uid: str) -> None:
        self._doubtful.pop(uid, None)
        self._duties.intents.settle(uid)

    def _settle_unless_doubtful(self, uid: str) -> None:
        """Drop an intent that was not granted now, if none of earlier tries may have been."""
        if uid not in self._doubtful:
            self._settle(uid)

    def _observe(self, commands: Sequence[Command]) -> None:
        now = {(type(command).__name__, command.pod.uid) for command in commands}
        for command in commands:
            if (type(command).__name__, command.pod.uid) not in self._observed:
                self._record(command, Outcome.OBSERVED, mode=Mode.OBSERVE)
        self._observed = now

    async def _limited(self, work: Awaitable[None]) -> None:
        async with self._slots:
            await work

    async def _tell(self, command: Notify | Forewarn | Withdraw) -> None:
        """Write a notice on a pod, or take it off, if the pod is as it was."""
        notice = None if isinstance(command, Withdraw) else command.notice
        if not self._duties.is_held():
            return
        try:
            await self._annotate(command.pod, notice)
        except (ConflictError, NotFoundError) as error:
            self._record(command, Outcome.STALE, error)
        except ApiError as error:
            self._log(command, error)
            self._record(command, Outcome.REFUSED, error)
        else:
            self._duties.witness.event(command.pod, told(command))
            self._record(command, Outcome.DONE)

    async def _annotate(self, pod: QuotaPod, notice: Notice | None) -> None:
        text = write_notice(notice) if notice is not None else None
        body = {"metadata": {"resourceVersion": pod.version, "annotations": {NOTICE: text}}}
        self._duties.absorb(await self._duties.calls.patch_merge(_target(pod), body))

    async def _end(self, command: End) -> None:
        """Ask for a pod's end, and remember what became of it."""
        pod, memory = command.pod, self._duties.memory
        if not self._duties.is_held():
            # Should it be held again in a moment, nothing was sent that is to be waited for.
            self._settle_unless_doubtful(pod.uid)
            return
        disruption = Disruption(int(self._duties.now()), tenant_of(command), pod.node)
        # Counted before it is known: a pass that runs meanwhile must not ask for more.
        memory.ended(pod, disruption, self._readmit_after(command))
        try:
            await self._send(command)
        except (ConflictError, NotFoundError) as error:
            if pod.uid not in self._doubtful:
                memory.refused(pod, 0)
            # Else an earlier try may have landed, which is why this one does not.
            self._settle(pod.uid)
            self._record(command, Outcome.STALE, error)
        except BudgetError as error:
            await self._refused(command, error)
        except ApiError as error:
            if _is_of_several_budgets(error):
                await self._refused(command, error)
            else:
                self._failed(command, error)
        else:
            self._settle(pod.uid)
            self._duties.witness.event(pod, told(command))
            self._record(command, Outcome.DONE)

    async def _send(self, command: End) -> None:
        pod, calls = command.pod, self._duties.calls
        if isinstance(command, Delete):
            await calls.delete(_target(pod), uid=pod.uid, version=pod.version)
        else:
            await calls.evict(_target(pod), uid=pod.uid, version=pod.version)

    async def _refused(self, command: End, error: ApiError) -> None:
        """Leave a pod to its disruption budgets for a while; since when is written on it."""
        pod, now = command.pod, int(self._duties.now())
        seconds = max(self._settings.refused_seconds, int(error.retry_after_seconds or 0))
        self._duties.memory.refused(pod, now + seconds)
        self._settle_unless_doubtful(pod.uid)
        self._record(command, Outcome.REFUSED, error)
        if pod.notice is None or pod.notice.refused_at is not None:
            return
        self._duties.witness.event(pod, refused(str(error)))
        try:
            await self._annotate(pod, replace(pod.notice, refused_at=now))
        except ApiError as error_:
            self._log(command, error_)  # the next refusal writes it

    def _failed(self, command: End, error: ApiError) -> None:
        pod = command.pod
        self._log(command, error)
        if error.may_have_happened:
            # Its intent stands, and it counts as going, until the pod shows or is asked again.
            self._doubtful[pod.uid] = int(pod.version)
            self._record(command, Outcome.UNKNOWN, error)
            return
        seconds = 0 if isinstance(error, UnavailableError) else self._settings.failed_seconds
        if pod.uid in self._doubtful:
            return  # this try was refused, an earlier one may have landed
        self._duties.memory.refused(pod, int(self._duties.now()) + seconds)
        self._settle(pod.uid)
        self._record(command, Outcome.REFUSED, error)

    def _record(
        self,
        command: Command,
        outcome: Outcome,
        error: ApiError | None = None,
        mode: Mode = Mode.ENFORCE,
    ) -> None:
        at = datetime.fromtimestamp(self._duties.now(), UTC)
        message = str(error) if error is not None else ""
        self._duties.witness.record(EvictionEntry(command, outcome, mode, at, message))

    def _log(self, command: Command, error: ApiError) -> None:
        pod, what = command.pod, type(command).__name__
        _LOG.warning("%s of pod %s/%s failed: %s", what, pod.namespace, pod.name, error)


def tenant_of(command: End) -> str:
    """Return whose work a command ends."""
    return command.tenant if isinstance(command, GiveUp) else command.why.giver.tenant


def _target(pod: QuotaPod) -> Target:
    return Target(PODS, pod.name, pod.namespace)


def _intent(pod: QuotaPod) -> Intent:
    return Intent(IntentKind.EVICTION, pod.namespace, pod.name, pod.uid, pod.version)


def _is_of_several_budgets(error: ApiError) -> bool:
    return isinstance(error, UnavailableError) and _SEVERAL_BUDGETS in str(error)
