# SPDX-License-Identifier: Apache-2.0
"""Takes Sluice's gate off the pods that `plan` lets go, as soon as their watch shows them.

Each release is one conditional patch, so any number of these loops may run at once: what another
has changed meanwhile is a conflict, and the pod is looked at again. Which pods may go is not
decided here.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    TimedOutError,
    TooManyRequestsError,
    UnavailableError,
)
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import PODS, Target
from reconciler.kube.store import Change, Key
from reconciler.quota.plan import GatedPod, plan_release, release_patch
from reconciler.quota.queue import WorkQueue

_LOG: Final = logging.getLogger(__name__)
_POD_BACKOFF: Final = Backoff(first_seconds=0.05, cap_seconds=60.0)
_SERVER_BACKOFF: Final = Backoff(first_seconds=0.1, cap_seconds=5.0)


class Pods(Protocol):
    """The gated pods, as a reflector shows them."""

    def get(self, key: Key) -> GatedPod | None:
        """Return a pod as last seen."""
        ...

    def values(self) -> tuple[GatedPod, ...]:
        """Return all of them."""
        ...

    def subscribe(self, subscriber: Callable[[Change[GatedPod]], None]) -> None:
        """Have every change told."""
        ...


class Patcher(Protocol):
    """The part of a client that releasing needs."""

    async def patch_json(
        self, target: Target, operations: Sequence[Mapping[str, object]]
    ) -> Mapping[str, object]:
        """Apply a JSON patch."""
        ...


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """How hard to try."""

    concurrency: int = 16
    """Patches under way at once."""
    pod_backoff: Backoff = _POD_BACKOFF
    """Between tries of a pod whose patch fails."""
    server_backoff: Backoff = _SERVER_BACKOFF
    """Between tries of any pod when the server cannot be reached or asks to slow down."""


@dataclass(frozen=True, slots=True)
class ReleaseHooks:
    """What metrics want to know. A conflict, or a pod that is gone, is no failure."""

    released: Callable[[GatedPod], None] = lambda _pod: None
    failed: Callable[[GatedPod, ApiError], None] = lambda _pod, _error: None


_SETTINGS: Final = ReleaseSettings()
_HOOKS: Final = ReleaseHooks()
_RUNTIME: Final = Runtime()


class ReleaseLoop:
    """Releases pods while `run` runs. `is_guarded` tells of a namespace whether Sluice gates it."""

    def __init__(
        self,
        patcher: Patcher,
        pods: Pods,
        is_guarded: Callable[[str], bool],
        settings: ReleaseSettings = _SETTINGS,
        hooks: ReleaseHooks = _HOOKS,
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self._patcher = patcher
        self._pods = pods
        self._is_guarded = is_guarded
        self._settings = settings
        self._hooks = hooks
        self._runtime = runtime
        self._queue: WorkQueue[Key] = WorkQueue()
        self._settled: dict[Key, str] = {}
        """The version of a pod that needs no further try: released, or known to be stale."""
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._wake = asyncio.Event()
        self._held_until = 0.0
        self._server_failures = 0
        pods.subscribe(self._changed)

    def recheck(self) -> None:
        """Look at every gated pod again: which namespaces are guarded may have changed."""
        for pod in self._pods.values():
            self._queue.add(Key(pod.namespace, pod.name))
        self._wake.set()

    async def run(self) -> None:
        """Release until cancelled; raises only what is a fault of our own."""
        self.recheck()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wait()
                for pod in self._plan():
                    await self._slots.acquire()
                    await self._wait_for_server()
                    key = Key(pod.namespace, pod.name)
                    tasks.create_task(self._release(key), name=f"release {key}")

    def _changed(self, change: Change[GatedPod]) -> None:
        if change.new is None:
            self._queue.forget(change.key)
            self._settled.pop(change.key, None)
        else:
            self._queue.add(change.key)
            self._wake.set()

    async def _wait(self) -> None:
        seconds = self._queue.seconds_to_next(self._runtime.clock())
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    async def _wait_for_server(self) -> None:
        while (seconds := self._held_until - self._runtime.clock()) > 0:
            await self._runtime.sleep(seconds)

    def _plan(self) -> tuple[GatedPod, ...]:
        taken = {key: self._waiting(key) for key in self._queue.take(self._runtime.clock())}
        planned = plan_release((pod for pod in taken.values() if pod), self._is_guarded)
        for key in taken.keys() - {Key(pod.namespace, pod.name) for pod in planned}:
            self._put_back(key)
        return planned

    def _waiting(self, key: Key) -> GatedPod | None:
        pod = self._pods.get(key)
        return None if pod is None or self._settled.get(key) == pod.version else pod

    async def _release(self, key: Key) -> None:
        try:
            # Seen anew: it may have changed while this waited for its turn.
            pod = self._waiting(key)
            if pod is None or not plan_release((pod,), self._is_guarded):
                self._put_back(key)
                return
            await self._try(key, pod)
        finally:
            self._slots.release()

    async def _try(self, key: Key, pod: GatedPod) -> None:
        try:
            await self._patcher.patch_json(
                Target(PODS, pod.name, pod.namespace), release_patch(pod)
            )
        except (ConflictError, NotFoundError):
            # The watch will show what has become of it.
            self._settle(key, pod)
            self._back_off(key)
        except ApiError as error:
            seconds = self._hold(key, error) if _is_server(error) else self._back_off(key)
            _LOG.warning(
                "pod %s/%s not released: %s; again in %.1f s",
                pod.namespace,
                pod.name,
                error,
                seconds,
            )
            self._hooks.failed(pod, error)
        else:
            self._server_failures = 0
            self._settle(key, pod)
            self._queue.finish(key)
            self._hooks.released(pod)

    def _settle(self, key: Key, pod: GatedPod) -> None:
        if self._pods.get(key) is not None:
            self._settled[key] = pod.version

    def _put_back(self, key: Key) -> None:
        self._queue.finish(key)
        if self._pods.get(key) is None:
            # It went while it was backing off or under way; nothing will tell of it again.
            self._queue.forget(key)

    def _back_off(self, key: Key) -> float:
        failures = self._queue.count_failure(key)
        seconds = self._settings.pod_backoff.seconds(failures, self._runtime.uniform)
        self._queue.retry(key, self._runtime.clock() + seconds)
        self._wake.set()
        return seconds

    def _hold(self, key: Key, error: ApiError) -> float:
        """Let all pods wait for the server, and return for how long."""
        now = self._runtime.clock()
        if now >= self._held_until:
            # One outage fails all patches under way, and counts once.
            self._server_failures += 1
            seconds = self._settings.server_backoff.seconds(
                self._server_failures, self._runtime.uniform
            )
            self._held_until = now + max(seconds, error.retry_after_seconds or 0.0)
        self._queue.retry(key, self._held_until)
        self._wake.set()
        return self._held_until - now


def _is_server(error: ApiError) -> bool:
    """Tell whether it is no fault of the pod: no connection, or a request to slow down.

    A timeout may well be the pod's: a webhook of others may hang on it alone.
    """
    if isinstance(error, TooManyRequestsError):
        return True
    return isinstance(error, UnavailableError) and not (
        error.status or isinstance(error, TimedOutError)
    )
