# SPDX-License-Identifier: Apache-2.0
"""Wakes pods that were refused for what a node's cards do or hold, as soon as that is less.

kube-scheduler looks again at pods that an extender refused when anything changes in the cluster;
an annotation of the node is the cheapest change that there is. Source: Kubernetes PR 122022.

A pod that leaves its node is such a change too, but the scheduler may have seen it before we have:
it then has asked again too early, been refused by what was still counted, and would ask no more.

A pod that was given a node and never came there is no change at all, of which nobody hears.
"""

import asyncio
import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Final, Protocol

from policies.model.keys import LOAD_FELL
from policies.placement.easing import has_eased
from policies.placement.model import Release
from policies.placement.occupancy import Gauge
from reconciler.kube.errors import ApiError, NotFoundError
from reconciler.kube.resources import NODES, Target

_LOG: Final = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 5.0
_LATE_SECONDS: Final = 5.0
"""By how much the scheduler may see before us that a pod is gone."""
_LEAVING_PAUSE_SECONDS: Final = 1.0
"""Pods may leave all the time, and one annotation wakes for all that have left before."""
_MOST_NEEDS: Final = 32
"""Of each node; anybody may make pods of as many needs as they like."""


class _Outcome(Enum):
    WRITTEN = auto()
    GONE = auto()
    """There is no such node any more, so nothing has changed and nobody is woken."""
    FAILED = auto()


class Patching(Protocol):
    """The part of a client that is needed."""

    async def patch_merge(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Change an object by a JSON merge patch."""
        ...


class Waker:
    """Remembers which nodes have refused pods so. `run` writes the annotations.

    `threshold` of load is in thousandths; `retry_seconds` passes after a write that failed.
    """

    def __init__(
        self, client: Patching, threshold: int, retry_seconds: float = _RETRY_SECONDS
    ) -> None:
        self._client = client
        self._threshold = threshold
        self._retry_seconds = retry_seconds
        self._refusing: dict[str, Gauge] = {}
        """By which gauge each node has refused pods."""
        self._needs: dict[str, set[int]] = {}
        """How much memory the pods need that a node has refused for it, in MiB."""
        self._fallen: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._kept_out_at = -math.inf
        self._left: dict[str, None] = {}
        """Of which nodes any may be written to, so that all are woken."""
        self._complaint = ""
        self._someone_left = asyncio.Event()

    def refused(self, node: str, gauge: Gauge, needed_mib: int = 0) -> None:
        """Note that a pod was refused there by a gauge, for memory if it needs some."""
        self._refusing[node] = gauge
        if needed_mib:
            needs = self._needs.setdefault(node, set())
            needs.add(needed_mib)
            if len(needs) > _MOST_NEEDS:
                needs.remove(max(needs))  # least is free first

    def measured(self, node: str, gauge: Gauge) -> None:
        """Take what telemetry tells of a node."""
        before = self._refusing.get(node)
        needs = self._needs.get(node, ())
        if before is not None and has_eased(before, gauge, self._threshold, needs):
            self._drop(node)
            self._fallen[node] = None
            self._wake.set()

    def kept_out(self, now: float) -> None:
        """Note that a pod was refused somewhere, for whatever reason; `now` is monotonic."""
        self._kept_out_at = now

    def left(self, node: str, now: float) -> None:
        """Note that a pod is seen gone from a node; `now` is monotonic."""
        if now - self._kept_out_at <= _LATE_SECONDS:
            self.wake(node)

    def released(self, release: Release) -> None:
        """Note that a pod which never came counts on a node no more, in monotonic time."""
        if self._kept_out_at >= release.since:
            self.wake(release.node)

    def wake(self, node: str) -> None:
        """Wake all, whoever has refused them, by a change of any node."""
        self._left[node] = None
        self._someone_left.set()

    def forget(self, node: str) -> None:
        """Drop a node that is gone."""
        self._drop(node)
        self._fallen.pop(node, None)
        self._left.pop(node, None)

    def _drop(self, node: str) -> None:
        self._refusing.pop(node, None)
        self._needs.pop(node, None)

    async def run(self) -> None:
        """Write until cancelled, one node at a time; many fallen at once need but few writes."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._wake_for_fallen(), name="waking for less load")
            tasks.create_task(self._wake_for_leaving(), name="waking for pods that left")

    async def _wake_for_leaving(self) -> None:
        while True:
            await self._someone_left.wait()
            self._someone_left.clear()
            while self._left:
                pause = await self._wake_by_one()
                await asyncio.sleep(pause)

    async def _wake_by_one(self) -> float:
        """Write to one of the nodes; return for how many seconds there is nothing more to do."""
        # What is noted during the write may be too late for it.
        noted, self._left = self._left, {}
        node = next(iter(noted))
        outcome = await self._write(node)
        if outcome is _Outcome.WRITTEN:
            return _LEAVING_PAUSE_SECONDS
        if outcome is _Outcome.GONE:
            del noted[node]
        self._left = {**noted, **self._left}
        return _PAUSE_SECONDS if outcome is _Outcome.GONE else self._retry_seconds

    async def _wake_for_fallen(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._fallen:
                node = next(iter(self._fallen))
                is_over = await self._write(node) is not _Outcome.FAILED
                await asyncio.sleep(_PAUSE_SECONDS if is_over else self._retry_seconds)

    async def _write(self, node: str) -> _Outcome:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        body = {"metadata": {"annotations": {LOAD_FELL: now}}}
        outcome = _Outcome.WRITTEN
        try:
            await self._client.patch_merge(Target(NODES, node), body)
        except NotFoundError:
            outcome = _Outcome.GONE
        except ApiError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                _LOG.warning("node %s: pods that were refused were not woken: %s", node, error)
            return _Outcome.FAILED
        self._complaint = ""
        self._fallen.pop(node, None)
        return outcome
