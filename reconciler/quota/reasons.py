# SPDX-License-Identifier: Apache-2.0
"""Writes on waiting pods why they wait, as an annotation, only when it changes and not too fast.

A pod that is released at once never gets one. Numbers in a reason move all the time, so a text
whose kind is the same is written again only after a while. Which reason it is, is decided
elsewhere.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from policies.quota.pods import QuotaPod
from reconciler.kube.errors import ApiError, ConflictError, NotFoundError
from reconciler.kube.reflector import Runtime
from reconciler.kube.resources import PODS, Target
from reconciler.quota.patches import reason_patch

_LOG: Final = logging.getLogger(__name__)


class Patcher(Protocol):
    """The part of a client that this needs."""

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Apply a merge patch."""
        ...


class Picture(Protocol):
    """Where answers to writes are taken up."""

    def absorb(self, raw: Mapping[str, object]) -> None:
        """Take up a pod as it was answered."""
        ...


class Busy(Protocol):
    """Which pods are being released or evicted."""

    def __contains__(self, uid: str) -> bool:
        """Tell by UID."""
        ...


@dataclass(frozen=True, slots=True)
class ReasonSettings:
    """How soon and how often, in seconds; how many writes a round."""

    round_seconds: float = 1.0
    wait_seconds: float = 2.0
    """A pod must have been seen waiting for so long."""
    refresh_seconds: float = 60.0
    """A text of the same kind is written again only after so long."""
    per_round: int = 30
    concurrency: int = 4


_SETTINGS: Final = ReasonSettings()
_HANGS_AFTER_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Known:
    since: float
    written_at: float | None = None


class ReasonWriter:
    """Writes while `run` runs. A reason is a text that begins with its kind and a colon."""

    def __init__(
        self,
        patcher: Patcher,
        picture: Picture,
        busy: Busy,
        runtime: Runtime,
        settings: ReasonSettings = _SETTINGS,
    ) -> None:
        self._patcher = patcher
        self._picture = picture
        self._busy = busy
        self._runtime = runtime
        self._settings = settings
        self._known: dict[str, _Known] = {}
        self._hanging: dict[str, float] = {}
        """Namespaces where a write has hung, as on a webhook of others, and until when to wait."""

    async def run(self, waits: Callable[[], Iterable[tuple[QuotaPod, str]]]) -> None:
        """Write round by round, until cancelled."""
        while True:
            due = self._due(waits(), self._runtime.clock())
            for begin in range(0, len(due), self._settings.concurrency):
                batch = due[begin : begin + self._settings.concurrency]
                await asyncio.gather(*(self._write(pod, text) for pod, text in batch))
            await self._runtime.sleep(self._settings.round_seconds)

    def _due(self, waits: Iterable[tuple[QuotaPod, str]], now: float) -> list[tuple[QuotaPod, str]]:
        known, due = {}, []
        self._hanging = {name: until for name, until in self._hanging.items() if until > now}
        for pod, text in waits:
            entry = known[pod.uid] = self._known.get(pod.uid) or _Known(now)
            if (
                pod.reason != text
                and pod.uid not in self._busy
                and pod.namespace not in self._hanging
                and self._is_due(entry, pod.reason, text, now)
            ):
                due.append((pod, text))
        self._known = known
        due.sort(key=lambda item: item[0].created_at)
        return due[: self._settings.per_round]

    def _is_due(self, entry: _Known, before: str, text: str, now: float) -> bool:
        if now - entry.since < self._settings.wait_seconds:
            return False
        if _kind(before) != _kind(text):
            return True
        last = entry.since if entry.written_at is None else entry.written_at
        return now - last >= self._settings.refresh_seconds

    async def _write(self, pod: QuotaPod, text: str) -> None:
        if pod.uid in self._busy or pod.namespace in self._hanging:
            return
        began = self._runtime.clock()
        target = Target(PODS, pod.name, pod.namespace)
        try:
            raw = await self._patcher.patch_merge(target, reason_patch(pod.version, text))
        except (ConflictError, NotFoundError):
            return  # it has changed or is gone; the next round knows
        except ApiError as error:
            if (now := self._runtime.clock()) - began >= _HANGS_AFTER_SECONDS:
                self._hanging[pod.namespace] = now + self._settings.refresh_seconds
            _LOG.warning("pod %s/%s: its reason not written: %s", pod.namespace, pod.name, error)
            return
        if entry := self._known.get(pod.uid):
            self._known[pod.uid] = _Known(entry.since, self._runtime.clock())
        self._picture.absorb(raw)


def _kind(text: str) -> str:
    return text.partition(":")[0]
