# SPDX-License-Identifier: Apache-2.0
"""Tells of reclaim where people look: Events on pods, lines in the audit log, counts."""

from collections.abc import Callable, Sequence
from typing import Protocol

from policies.quota.pods import QuotaPod
from reconciler.kube.events import EventType, Regarding
from reconciler.reclaim.words import Told
from reconciler.runtime.audit_eviction import EvictionEntry, to_line


class Recorder(Protocol):
    """Where Events are handed in."""

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        type: EventType,  # noqa: A002 - the API's own name
        action: str,
    ) -> None:
        """Take an Event; never waits and never fails."""
        ...


class Log(Protocol):
    """Where audit lines are handed in."""

    def record_lines(self, lines: Sequence[bytes]) -> None:
        """Take whole lines; never waits and never fails."""
        ...


class ReclaimWitness:
    """`counted` is called with every entry, for metrics."""

    def __init__(
        self,
        recorder: Recorder,
        log: Log,
        counted: Callable[[EvictionEntry], None] = lambda _entry: None,
    ) -> None:
        self._recorder = recorder
        self._log = log
        self._counted = counted

    def event(self, pod: QuotaPod, said: Told) -> None:
        """Have an Event on a pod."""
        kind = EventType.WARNING if said.is_warning else EventType.NORMAL
        regarding = Regarding("Pod", pod.namespace, pod.name, pod.uid)
        self._recorder.record(regarding, said.reason, said.note, kind, "Reclaim")

    def record(self, entry: EvictionEntry) -> None:
        """Have a line in the audit log, and count it."""
        self._log.record_lines([to_line(entry)])
        self._counted(entry)
