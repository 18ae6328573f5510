# SPDX-License-Identifier: Apache-2.0
"""Sends what was decided: charges pods and takes their gates off, each with one conditional write.

A release counts as charged from the moment it was decided until its pod is seen newer than the
write was made for, or the API server has refused it. While its outcome is unknown it is sent
again, which tells: it lands, or conflicts. What may go is decided elsewhere.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from policies.model.request import JsonObject
from policies.pod.reading import MalformedError
from policies.quota.charge import ChargeRecord
from policies.quota.pods import QuotaPod
from policies.rewrite.pinning import Pins
from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    MalformedAnswerError,
    NotFoundError,
    TimedOutError,
    TooManyRequestsError,
    UnavailableError,
)
from reconciler.kube.intents import Intent, IntentKind
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import PODS, Target
from reconciler.quota.patches import is_gated, pinning, release_patch

_LOG: Final = logging.getLogger(__name__)


class Patcher(Protocol):
    """The part of a client that releasing needs."""

    async def get(self, target: Target) -> Mapping[str, object]:
        """Read an object."""
        ...

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Apply a merge patch."""
        ...


class Release(Protocol):
    """A pod to let go, what it is charged, and what pins it."""

    @property
    def pod(self) -> QuotaPod:
        """The pod as it was decided on."""
        ...

    @property
    def charge(self) -> ChargeRecord:
        """What it is charged."""
        ...

    @property
    def pins(self) -> Pins:
        """What pins it to the pool that it is charged to."""
        ...


class Outcomes(Protocol):
    """Where the releaser tells what came of a release."""

    def landed(self, release: Release, raw: Mapping[str, object]) -> None:
        """Take the pod as the API server answered."""
        ...

    def refused(self, pod: QuotaPod, error: ApiError, seconds: float) -> None:
        """Know that the pod stays as it is, and is not to be tried again for so long."""
        ...

    def gone(self, pod: QuotaPod) -> None:
        """Know that the pod is no more."""
        ...


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """How hard to try."""

    concurrency: int = 32
    """Writes under way at once."""
    pod_backoff: Backoff = field(default_factory=lambda: Backoff(0.05, 60.0))
    """Between tries of a pod whose write fails."""
    server_backoff: Backoff = field(default_factory=lambda: Backoff(0.1, 5.0))
    """Between tries of any pod when the server cannot be reached or asks to slow down."""


_SETTINGS: Final = ReleaseSettings()
_RUNTIME: Final = Runtime()


@dataclass(slots=True)
class _Sent:
    """A release that was declared. `doubtful` tells that a try of it may have landed unseen."""

    release: Release
    doubtful: bool = False
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
        self._held_until = 0.0
        self._server_failures = 0

    @property
    def under_way(self) -> int:
        """Return how many releases have no known outcome yet."""
        return len(self._sent)

    async def run(self) -> None:
        """Send what is handed in, until cancelled; raises only what is a fault of our own."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                sent = await self._queue.get()
                await self._slots.acquire()
                await self._wait_for_server()
                tasks.create_task(self._send(sent), name=f"release {sent.release.pod.name}")

    async def hand_in(self, releases: Sequence[Release]) -> None:
        """Declare releases and have them sent. Raises LeadershipLostError."""
        for release in releases:
            self._sent[release.pod.uid] = _Sent(release)
        await self._outstanding.declare([_intent(release) for release in releases])
        for release in releases:
            if sent := self._sent.get(release.pod.uid):
                self._queue.put_nowait(sent)

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

    async def _wait_for_server(self) -> None:
        while (seconds := self._held_until - self._runtime.clock()) > 0:
            await self._runtime.sleep(seconds)

    async def _send(self, sent: _Sent) -> None:
        pod = sent.release.pod
        try:
            # It may have been seen newer, or gone, while this waited for its turn.
            if self._sent.get(pod.uid) is sent and self._is_held():
                await self._try(sent)
        finally:
            self._slots.release()

    async def _try(self, sent: _Sent) -> None:
        pod = sent.release.pod
        try:
            raw = await self._write(sent.release)
        except NotFoundError:
            self._settle(pod.uid)
            self._outcomes.gone(pod)
        except ConflictError:
            # The watch will show what has become of it, and that settles it. Should it not, the
            # next try will tell.
            sent.doubtful = True
            self._again(sent, self._pod_seconds(sent))
        except MalformedAnswerError as error:
            sent.doubtful = sent.doubtful or error.may_have_happened
            self._again(sent, self._pod_seconds(sent))
        except ApiError as error:
            self._failed(sent, error)
        else:
            self._server_failures = 0
            self._settle(pod.uid)
            self._outcomes.landed(sent.release, raw)

    def _failed(self, sent: _Sent, error: ApiError) -> None:
        pod = sent.release.pod
        sent.doubtful = sent.doubtful or error.may_have_happened
        if _is_server(error):
            seconds = self._hold(error)
            self._again(sent, seconds)
        elif sent.doubtful:
            seconds = self._pod_seconds(sent)
            self._again(sent, seconds)
        else:
            failures = self._failures[pod.uid] = self._failures.get(pod.uid, 0) + 1
            seconds = self._settings.pod_backoff.seconds(failures, self._runtime.uniform)
            self._settle(pod.uid)
            self._outcomes.refused(pod, error, seconds)
        _LOG.warning(
            "pod %s/%s not released: %s; again in %.1f s", pod.namespace, pod.name, error, seconds
        )

    def _again(self, sent: _Sent, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._queue.put_nowait, sent)

    def _pod_seconds(self, sent: _Sent) -> float:
        sent.failures += 1
        return self._settings.pod_backoff.seconds(sent.failures, self._runtime.uniform)

    def _hold(self, error: ApiError) -> float:
        """Let all pods wait for the server, and return for how long."""
        now = self._runtime.clock()
        if now >= self._held_until:
            # One outage fails all writes under way, and counts once.
            self._server_failures += 1
            seconds = self._settings.server_backoff.seconds(
                self._server_failures, self._runtime.uniform
            )
            self._held_until = now + max(seconds, error.retry_after_seconds or 0.0)
        return self._held_until - now

    async def _write(self, release: Release) -> Mapping[str, object]:
        pod, pins = release.pod, release.pins
        target = Target(PODS, pod.name, pod.namespace)
        spec: JsonObject = {"nodeSelector": dict(pins.node_selector)} if pins.node_selector else {}
        own = dict(pod.shape.constraints.node_selector)
        if pins.expressions or own.keys() & pins.node_selector.keys():
            # Terms of affinity can only be written whole, and views do not keep them whole; and a
            # label that is selected already cannot be changed.
            raw = await self._patcher.get(target)
            try:
                if not is_gated(raw):
                    raise ConflictError("its gates have changed", status=409)
                spec = pinning(raw, pins)
            except MalformedError as error:
                raise MalformedAnswerError(str(error)) from error
        body = release_patch(pod.version, release.charge, spec, pod.reason)
        return await self._patcher.patch_merge(target, body)


def _intent(release: Release) -> Intent:
    pod = release.pod
    return Intent(
        kind=IntentKind.RELEASE,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        version=pod.version,
        charge=release.charge.to_annotation(),
    )


def _is_server(error: ApiError) -> bool:
    """Tell whether it is no fault of the pod: no connection, or a request to slow down.

    A timeout may well be the pod's: a webhook of others may hang on it alone.
    """
    if isinstance(error, TooManyRequestsError):
        return True
    return isinstance(error, UnavailableError) and not (
        error.status or isinstance(error, TimedOutError)
    )
