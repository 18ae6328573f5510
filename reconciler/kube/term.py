# SPDX-License-Identifier: Apache-2.0
"""One stay in office: keeps the Lease of its holder renewed, and writes intents into it.

All writes of a term go through one lock and name the resourceVersion that the last one left, so a
renewal and a declaration never undo each other, and none lands after another has taken the Lease.
How the Lease was won and what is done with it is not here.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from policies.model.term import LeaseTerm
from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import ApiError, ConflictError
from reconciler.kube.lease import LeaseRecord, StoredLease, lease_term
from reconciler.kube.lease_door import ElectorSettings, LeaseDoor
from reconciler.kube.reflector import Runtime

_LOG: Final = logging.getLogger(__name__)
SPREAD: Final = 0.5
"""Waits last between this share of `retry_seconds` and all of it, so that replicas part ways."""
_FIRST_RETRY_SHARE: Final = 0.1


class LeadershipLostError(Exception):
    """The Lease is no longer ours, or could not be renewed in time; nothing more may be done."""


Failed = Callable[[ApiError], None]
"""Told of each call that failed otherwise than by a conflict."""


class Office:
    """A Lease that was taken by a write sent at `sent`, until it is lost, ended or released."""

    def __init__(
        self,
        door: LeaseDoor,
        taken: tuple[StoredLease, float],
        settings: ElectorSettings,
        runtime: Runtime,
        failed: Failed,
    ) -> None:
        self._door = door
        self._stored: StoredLease | None = taken[0]
        self._record = taken[0].record
        self._intents = taken[0].intents or ""
        self._term = lease_term(taken[0].body)
        self._sent = taken[1]
        """When the last write that landed was sent: leadership is counted from then."""
        self._settings = settings
        self._runtime = runtime
        self._failed = failed
        self._backoff = Backoff(_FIRST_RETRY_SHARE * settings.retry_seconds, settings.retry_seconds)
        self._lock = asyncio.Lock()
        self._is_uncertain = False
        """Whether the last write may or may not have landed, or somebody else has written."""
        self._is_taken = False
        self._over = asyncio.Event()

    @property
    def record(self) -> LeaseRecord:
        """The last record known to be in the Lease."""
        return self._record

    @property
    def term(self) -> LeaseTerm:
        """What releases name: it changes within a stay only if the Lease had to be put back."""
        return self._term

    def is_held(self) -> bool:
        """Tell by our own clock whether no one else can hold it now."""
        return not self._over.is_set() and self._runtime.clock() < self._deadline

    @property
    def _deadline(self) -> float:
        return self._sent + self._settings.renew_seconds

    def end(self) -> None:
        """Hold it no longer, whatever the Lease says."""
        self._over.set()

    async def declare(self, intents: str) -> None:
        """Write these intents; returns once they are there, raises LeadershipLostError."""
        async with self._lock:
            failures = 0
            while True:
                try:
                    return await self._write(intents)
                except ApiError as error:
                    failures += 1
                    self._report(error)
                await self._pause(self._backoff.seconds(failures, self._runtime.uniform))

    async def keep(self) -> None:
        """Renew until it is lost; returns at the deadline at the latest, and ends it."""
        failures = 0
        try:
            while self.is_held():
                sent = self._sent
                await self._pause(self._seconds_to_renewal(failures))
                if sent == self._sent:
                    failures = 0 if await self._renew() else failures + 1
        except LeadershipLostError as error:
            _LOG.warning("leadership of %s lost: %s", self._settings.name, error)
        finally:
            self.end()

    async def release(self, seconds: float) -> None:
        """Let others take it at once; the intents stay. The work must have ended.

        A failure is logged only: others then wait until the Lease has run out.
        """
        self.end()
        try:
            async with asyncio.timeout(seconds), self._lock:
                await self._release(seconds)
        except (ApiError, TimeoutError) as error:
            _LOG.warning("lease %s not released: %s", self._settings.name, _describe(error))

    async def _release(self, seconds: float) -> None:
        while not self._is_taken:
            try:
                await self._look_again(seconds)
                if self._stored is not None:
                    record = self._record.released_at(self._runtime.wall_clock())
                    self._is_uncertain = True
                    await self._door.write(self._stored, record, self._intents, seconds)
                    _LOG.info("lease %s released", self._settings.name)
            except ConflictError:
                continue
            except LeadershipLostError:
                pass
            return

    async def _renew(self) -> bool:
        async with self._lock:
            try:
                await self._write(self._intents)
            except ApiError as error:
                self._report(error)
                return False
            return True

    async def _write(self, intents: str) -> None:
        """Try once. Raises ApiError, or LeadershipLostError when it is over."""
        await self._look_again(self._seconds_left())
        sent, seconds = self._runtime.clock(), self._seconds_left()
        record = self._record.renewed_at(self._runtime.wall_clock())
        self._is_uncertain = True
        stored = await self._door.write(self._stored, record, intents, seconds)
        self._stored, self._record, self._intents = stored, record, intents
        self._term = lease_term(stored.body)
        self._is_uncertain = False
        self._sent = sent
        self._seconds_left()

    async def _look_again(self, seconds: float) -> None:
        if not self._is_uncertain:
            return
        stored = await self._door.read(seconds)
        if stored is not None and stored.record.term != self._record.term:
            self._is_taken = True
            self.end()
            raise LeadershipLostError(f"{stored.record.holder or 'no one'} holds it now")
        self._stored = stored

    def _seconds_left(self) -> float:
        left = self._deadline - self._runtime.clock()
        if self._over.is_set():
            raise LeadershipLostError("it has ended")
        if left <= 0:
            self.end()
            raise LeadershipLostError(f"not renewed for {self._settings.renew_seconds:g} s")
        return left

    def _seconds_to_renewal(self, failures: int) -> float:
        if failures:
            return self._backoff.seconds(failures, self._runtime.uniform)
        # From when the last was sent: slow answers must not use up the time of the next one.
        retry = self._settings.retry_seconds
        due = self._sent + self._runtime.uniform(SPREAD * retry, retry)
        return max(0.0, due - self._runtime.clock())

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than it is held."""
        try:
            async with asyncio.timeout(min(seconds, self._seconds_left())):
                await self._over.wait()
        except TimeoutError:
            pass
        self._seconds_left()

    def _report(self, error: ApiError) -> None:
        if isinstance(error, ConflictError):
            _LOG.debug("lease %s: %s", self._settings.name, error)
            return
        _LOG.warning("lease %s not renewed: %s", self._settings.name, _describe(error))
        self._failed(error)


def _describe(error: Exception) -> str:
    return f"{error} ({type(error).__name__})"
