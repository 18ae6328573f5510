# SPDX-License-Identifier: Apache-2.0
"""Meters what tenants are charged while this process leads, for metrics and the audit log.

A leader that dies loses at most the last minutes of it, and what nobody leads for is in no line.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from policies.quota.counting import Share
from policies.quota.metering import UNKNOWN, Key, Meter, Modes, Use
from policies.quota.state import QuotaState
from reconciler.kube.reflector import Runtime
from reconciler.runtime.audit_usage import UsageEntry, to_line

_MILLI: Final = 1000
_AT_ONCE: Final = 1000
"""Charges that are taken up without a break."""


class Log(Protocol):
    """Where audit lines are handed in."""

    def record_lines(self, lines: Sequence[bytes]) -> None:
        """Take whole lines; never waits and never fails."""
        ...


@dataclass(frozen=True, slots=True)
class UsageSettings:
    """How often usage is counted, and how often it is written down, in seconds."""

    count_seconds: float = 15.0
    write_seconds: float = 300.0


_SETTINGS: Final = UsageSettings()


class UsageRecorder:
    """Meters while `run` runs; `counted` gets millionths of GPU-seconds."""

    def __init__(
        self,
        state: QuotaState,
        log: Log,
        now: Callable[[], datetime],
        counted: Callable[[Key, int], None],
        runtime: Runtime,
        settings: UsageSettings = _SETTINGS,
    ) -> None:
        self._state = state
        self._log = log
        self._now = now
        self._counted = counted
        self._runtime = runtime
        self._settings = settings
        self._modes = Modes()
        self._meter = Meter(self._clock_ms())
        self._since = now()
        self._unwritten: Counter[Key] = Counter()
        self._has_begun = False
        self._early: set[str] = set()
        """Whose charge has changed while what was charged before is still taken up."""

    async def run(self) -> None:
        """Meter until cancelled, and write down what is left then."""
        rounds = max(1, round(self._settings.write_seconds / self._settings.count_seconds))
        try:
            await self._begin()
            while True:
                for _ in range(rounds):
                    await self._runtime.sleep(self._settings.count_seconds)
                    self._count()
                self._write()
        finally:
            self._count()
            self._write()

    async def _begin(self) -> None:
        """Take up what is charged, a part at a time: renewing the Lease must not wait for it."""
        self._state.ledger.watch(self._changed)
        for number, (uid, share) in enumerate(tuple(self._state.ledger.shares()), start=1):
            if uid not in self._early:
                self._put(uid, share)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._has_begun = True
        self._early.clear()

    def _changed(self, uid: str, share: Share | None) -> None:
        if not self._has_begun:
            self._early.add(uid)
        self._put(uid, share)

    def _put(self, uid: str, share: Share | None) -> None:
        self._meter.put(uid, () if share is None else self._use(uid, share), self._clock_ms())

    def _use(self, uid: str, share: Share) -> Use:
        pod, amount = self._state.pod(uid), share.amount
        if pod is None:
            return ((Key(share.tenant, share.pool, UNKNOWN), amount),)
        node = self._state.nodes.get(pod.node) if pod.charge is None else None
        labels = None if node is None else node.labels
        split = self._modes.split(pod.shape, amount, self._state.policies, labels)
        return tuple((Key(share.tenant, share.pool, mode), part) for mode, part in split.items())

    def _count(self) -> None:
        for key, micro in self._meter.take(self._clock_ms()).items():
            self._unwritten[key] += micro
            self._counted(key, micro)

    def _write(self) -> None:
        begin, end = self._since, self._now()
        entries = [
            UsageEntry(begin, end, *key, micro_gpu_seconds=micro)
            for key, micro in sorted(self._unwritten.items())
        ]
        self._log.record_lines([to_line(entry) for entry in entries])
        self._unwritten.clear()
        self._since = end

    def _clock_ms(self) -> int:
        return int(self._runtime.clock() * _MILLI)
