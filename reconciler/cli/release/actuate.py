# SPDX-License-Identifier: Apache-2.0
"""Takes gates off, several at once, each by a write that fails if the pod has changed.

What fails for the moment is tried again; what is refused is told. Nothing is printed here.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from reconciler.cli.release.pods import Force, GatedPod, force_patch, gated_pod
from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import PODS, Target
from reconciler.runtime.audit_eviction import Outcome

_AT_ONCE: Final = 16
_TRIES: Final = 6
_BACKOFF: Final = Backoff(first_seconds=0.2, cap_seconds=5.0)

Object = Mapping[str, object]


class Patcher(Protocol):
    """The part of a client that is needed."""

    async def get(self, target: Target) -> Object:
        """Return the object as it is now."""
        ...

    async def patch_merge(self, target: Target, body: Object, *, dry_run: bool = False) -> Object:
        """Apply an RFC 7386 patch and return the object."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one pod; `message` says why it was not done."""

    pod: GatedPod
    outcome: Outcome
    message: str = ""

    @property
    def is_done(self) -> bool:
        """Whether its gate was taken off, or would have been."""
        return self.outcome is Outcome.DONE

    @property
    def is_left(self) -> bool:
        """Whether the pod has its gate still, or may have it."""
        return self.outcome in {Outcome.REFUSED, Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Releaser:
    """Takes gates off; with `dry_run` the API server only says whether it would let it."""

    client: Patcher
    force: Force
    runtime: Runtime = field(default_factory=Runtime)
    dry_run: bool = False

    async def release(self, pods: Sequence[GatedPod], done: Callable[[Result], None]) -> None:
        """Take the gates of these pods off; `done` is told of each. Raises nothing of ApiError."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(pod: GatedPod) -> None:
            async with turns:
                done(await self._release(pod))

        async with asyncio.TaskGroup() as tasks:
            for pod in pods:
                tasks.create_task(one(pod), name=f"{pod.namespace}/{pod.name}")

    async def _release(self, pod: GatedPod) -> Result:
        current, said, is_unknown = pod, "", False
        for tries in range(1, _TRIES + 1):
            try:
                if tries > 1:
                    found = await self._look(current)
                    if isinstance(found, Result):
                        return _settled(found, is_unknown=is_unknown)
                    current = found
                await self._write(current)
            except ConflictError as error:
                said = str(error)
            except NotFoundError:
                return Result(current, Outcome.STALE, "it is gone")
            except (TooManyRequestsError, UnavailableError) as error:
                said, is_unknown = str(error), is_unknown or error.may_have_happened
                seconds = _BACKOFF.seconds(tries, self.runtime.uniform)
                await self.runtime.sleep(max(seconds, error.retry_after_seconds or 0.0))
            except ApiError as error:
                return Result(current, Outcome.REFUSED, str(error))
            else:
                return Result(current, Outcome.DONE)
        return Result(current, Outcome.UNKNOWN if is_unknown else Outcome.REFUSED, said)

    async def _write(self, pod: GatedPod) -> None:
        body = force_patch(pod, self.force.note(self.runtime.wall_clock()))
        target = Target(PODS, pod.name, pod.namespace)
        await self.client.patch_merge(target, body, dry_run=self.dry_run)

    async def _look(self, pod: GatedPod) -> GatedPod | Result:
        """Return the pod as it is now, or that there is nothing left to do."""
        found = gated_pod(await self.client.get(Target(PODS, pod.name, pod.namespace)))
        if found is None or found.uid != pod.uid:
            return Result(pod, Outcome.STALE, "its gate is off, or it is another pod by now")
        return replace(found, namespace=pod.namespace)


def _settled(found: Result, *, is_unknown: bool) -> Result:
    """Return the result for a pod that has no gate any more: perhaps through a write of ours."""
    if not is_unknown:
        return found
    return Result(found.pod, Outcome.DONE, "no answer came, and then its gate was off")
