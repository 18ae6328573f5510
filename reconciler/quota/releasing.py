# SPDX-License-Identifier: Apache-2.0
"""Sends what was decided: charges pods and takes their gates off, each with one conditional write.

A release counts as charged from the moment it was decided until its pod is seen newer than the
write was made for, or the API server has refused it. While its outcome is unknown it is sent
again, which tells: it lands, or conflicts, or is refused; then the pod itself is looked at, and
changed if it is as it was. What may go is decided elsewhere.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from policies.model.term import LeaseTerm
from policies.quota.pods import QuotaPod
from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.quota.lanes import Lanes
from reconciler.quota.patience import DEFAULT_BACKOFF, Patience, is_server
from reconciler.quota.voiding import Fate, Patcher, void
from reconciler.quota.writing import Prefer, Release, intent_of, write_release

__all__ = ["Outcomes", "Release", "ReleaseSettings", "Releaser"]

_LOG: Final = logging.getLogger(__name__)


class Outcomes(Protocol):
    """Where the releaser tells what came of a release, and asks whether it still stands."""

    def stands(self, release: Release) -> bool:
        """Tell whether what it was decided by is still so."""
        ...

    def looked(self, raw: Mapping[str, object]) -> None:
        """Take a pod as the API server has just shown it."""
        ...

    def landed(self, release: Release) -> None:
        """Know that the pod, which was looked at, is released."""
        ...

    def withdrawn(self, pod: QuotaPod) -> None:
        """Know that nothing was sent, so that the pod can be decided on anew."""
        ...

    def refused(self, pod: QuotaPod, error: ApiError, seconds: float) -> None:
        """Know that the pod is not released, and is not to be tried again for so long."""
        ...


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """How hard to try, and as whom."""

    concurrency: int = 32
    """Writes under way at once."""
    pod_backoff: Backoff = field(default_factory=lambda: Backoff(0.05, 60.0))
    """Between tries of a pod whose write fails."""
    server_backoff: Backoff = DEFAULT_BACKOFF
    """Between tries of any pod when the server cannot be reached or asks to slow down."""
    identity: str = ""
    """Written on pods that are changed to void a write in doubt."""
    term: Callable[[], LeaseTerm | None] = lambda: None
    """The term that a release names, by which the webhook refuses those of past leaders."""
    prefer: Callable[[], Prefer | None] = lambda: None
    """Who names the nodes that pods should prefer, if anybody does by now."""


_SETTINGS: Final = ReleaseSettings()
_RUNTIME: Final = Runtime()
_NOT_HELD_SECONDS: Final = 1.0
_LANE_SHARE: Final = 0.75
"""The part of all places that one namespace may have."""
_HANGING_SECONDS: Final = 10.0
"""At least so long pods are not tried where the writes of others hang."""


@dataclass(slots=True, eq=False)
class _Sent:
    """A release that was declared. `doubtful` tells that a try of it may have landed unseen.

    `stale` is the error after which the pod itself must be looked at; `rests` while it waits for
    another try.
    """

    release: Release
    doubtful: bool = False
    stale: ApiError | None = None
    rests: bool = False
    failures: int = 0


class Releaser:
    """Sends releases; `run` must run beside it. `is_held` tells whether we still lead."""

    def __init__(
        self,
        patcher: Patcher,
        outstanding: Outstanding,
        outcomes: Outcomes,
        is_held: Callable[[], bool],
        settings: ReleaseSettings = _SETTINGS,
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self._patcher = patcher
        self._outstanding = outstanding
        self._outcomes = outcomes
        self._is_held = is_held
        self._settings = settings
        self._runtime = runtime
        self._sent: dict[str, _Sent] = {}
        self._failures: dict[str, int] = {}
        """How often the write of a pod was refused, by UID, until it is seen anew."""
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._queue: asyncio.Queue[_Sent] = asyncio.Queue()
        self._lanes: Lanes[_Sent] = Lanes(max(1, int(_LANE_SHARE * settings.concurrency)))
        self._patience = Patience(settings.server_backoff, runtime)

    @property
    def under_way(self) -> int:
        """Return how many releases are being sent; those that rest after a failure are not."""
        return sum(not sent.rests for sent in self._sent.values())

    async def run(self) -> None:
        """Send what is handed in, until cancelled; raises only what is a fault of our own."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                sent = await self._queue.get()
                if not self._enters(sent):
                    continue
                await self._slots.acquire()
                await self._patience.wait()
                tasks.create_task(self._send(sent), name=f"release {sent.release.pod.name}")

    def _enters(self, sent: _Sent) -> bool:
        """Tell whether there is a place for it; else it waits for one, or fares as those there."""
        namespace = sent.release.pod.namespace
        error = self._lanes.hangs(namespace)
        if self._lanes.enter(namespace):
            return True
        if error is None or sent.doubtful or sent.stale or not self._is_current(sent):
            self._lanes.wait(namespace, sent)
        else:
            # Nothing of it was sent. Declared and waiting, many such would crowd out all others.
            self._refused(sent.release.pod, error, _HANGING_SECONDS)
        return False

    async def hand_in(self, releases: Sequence[Release]) -> int:
        """Declare releases and have them sent; return how many, the first ones, there was room for.

        Raises LeadershipLostError.
        """
        intents = [intent_of(release) for release in releases]
        count = self._outstanding.fitting(intents)
        if not count:
            if not len(self._outstanding):
                error = InvalidError("what is declared of its release would not fit on the Lease")
                self._refused(releases[0].pod, error)
            return 0
        for release in releases[:count]:
            self._sent[release.pod.uid] = _Sent(release)
        await self._outstanding.declare(intents[:count])
        for release in releases[:count]:
            if sent := self._sent.get(release.pod.uid):
                self._queue.put_nowait(sent)
        return count

    def seen(self, uid: str, version: str) -> bool:
        """Take note of a pod's newer version; return whether that settles a release of ours.

        A write made for an older version has landed before this one, or never will.
        """
        self._failures.pop(uid, None)
        sent = self._sent.get(uid)
        if sent is None or int(version) <= int(sent.release.pod.version):
            return False
        self._settle(uid)
        return True

    def seen_gone(self, uid: str) -> None:
        """Take note that a pod is no more."""
        self._failures.pop(uid, None)
        self._settle(uid)

    def _settle(self, uid: str) -> None:
        self._sent.pop(uid, None)
        self._outstanding.settle(uid)

    async def _send(self, sent: _Sent) -> None:
        try:
            # It may have been seen newer, or gone, while this waited for its turn.
            if self._is_current(sent):
                sent.rests = False
                await self._act(sent)
        finally:
            self._slots.release()
            for waiting in self._lanes.leave(sent.release.pod.namespace):
                self._queue.put_nowait(waiting)

    def _is_current(self, sent: _Sent) -> bool:
        return self._sent.get(sent.release.pod.uid) is sent

    async def _act(self, sent: _Sent) -> None:
        if not self._is_held():
            self._again(sent, _NOT_HELD_SECONDS)  # it may be a moment before the Lease is renewed
        elif sent.stale is not None:
            await self._look(sent, sent.stale)
        elif self._outcomes.stands(sent.release):
            await self._try(sent)
        elif sent.doubtful:
            await self._look(sent, None)
        else:
            self._settle(sent.release.pod.uid)
            self._outcomes.withdrawn(sent.release.pod)

    async def _try(self, sent: _Sent) -> None:
        began, namespace = self._runtime.clock(), sent.release.pod.namespace
        try:
            term, prefer = self._settings.term(), self._settings.prefer()
            raw = await write_release(self._patcher, sent.release, term, prefer)
        except ApiError as error:
            if not is_server(error):
                self._lanes.answered(namespace, self._runtime.clock() - began, error)
            # Whatever it says of a pod that was seen newer meanwhile is settled.
            if self._is_current(sent):
                self._failed(sent, error)
        else:
            self._lanes.answered(namespace, self._runtime.clock() - began, None)
            self._patience.answered()
            self._outcomes.looked(raw)
            self._outcomes.landed(sent.release)
            self._check(sent)

    def _failed(self, sent: _Sent, error: ApiError) -> None:
        sent.doubtful = sent.doubtful or error.may_have_happened
        if isinstance(error, ConflictError | NotFoundError):
            # The watch will show what has become of it, and that settles it. Should it not, a
            # look will.
            sent.stale = error
            self._again(sent, self._pod_seconds(sent))
        elif is_server(error):
            self._tell(sent, error, self._again(sent, self._patience.hold(error)))
        elif error.may_have_happened:
            self._tell(sent, error, self._again(sent, self._pod_seconds(sent)))
        elif sent.doubtful:
            sent.stale = error
            self._tell(sent, error, self._again(sent, self._pod_seconds(sent)))
        else:
            self._refused(sent.release.pod, error)

    async def _look(self, sent: _Sent, refusal: ApiError | None) -> None:
        """Make sure that no write for the version that was decided on can land any more."""
        pod, failures = sent.release.pod, self._failures.get(sent.release.pod.uid, 0)
        try:
            found = await void(self._patcher, pod, self._settings.identity)
        except ApiError as error:
            if self._is_current(sent):
                seconds = (
                    self._patience.hold(error) if is_server(error) else self._pod_seconds(sent)
                )
                self._tell(sent, error, self._again(sent, seconds))
            return
        if found.fate is not Fate.GONE:
            was_current = self._is_current(sent)
            self._outcomes.looked(found.pod)
            if found.fate is Fate.VOIDED and was_current and refusal is not None:
                self._failures[pod.uid] = failures
                self._refused(pod, refusal)
        self._check(sent)

    def _check(self, sent: _Sent) -> None:
        """Look again later, should what was answered have settled nothing."""
        if self._is_current(sent):
            sent.stale = sent.stale or ConflictError("it is not seen as it was answered")
            self._again(sent, self._pod_seconds(sent))

    def _refused(self, pod: QuotaPod, error: ApiError, least_seconds: float = 0.0) -> None:
        failures = self._failures[pod.uid] = self._failures.get(pod.uid, 0) + 1
        seconds = self._settings.pod_backoff.seconds(failures, self._runtime.uniform)
        seconds = max(seconds, least_seconds)
        self._settle(pod.uid)
        self._outcomes.refused(pod, error, seconds)
        _LOG.warning(
            "pod %s/%s not released: %s; again in %.1f s", pod.namespace, pod.name, error, seconds
        )

    def _again(self, sent: _Sent, seconds: float) -> float:
        sent.rests = True
        asyncio.get_running_loop().call_later(seconds, self._queue.put_nowait, sent)
        return seconds

    def _pod_seconds(self, sent: _Sent) -> float:
        sent.failures += 1
        return self._settings.pod_backoff.seconds(sent.failures, self._runtime.uniform)

    def _tell(self, sent: _Sent, error: ApiError, seconds: float) -> None:
        pod = sent.release.pod
        _LOG.warning(
            "release of pod %s/%s: %s; again in %.1f s", pod.namespace, pod.name, error, seconds
        )
