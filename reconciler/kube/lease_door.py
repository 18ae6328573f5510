# SPDX-License-Identifier: Apache-2.0
"""The calls to one Lease, each with a deadline, and the times that an election goes by.

Who may take the Lease, and what is kept in it meanwhile, is not here.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from reconciler.kube.errors import NotFoundError, TimedOutError
from reconciler.kube.lease import LeaseRecord, StoredLease, read_lease, write_lease
from reconciler.kube.resources import LEASES, Target

_T = TypeVar("_T")
_LONGEST_LEASE_SECONDS: Final = 3600
_STOP_SHARE: Final = 0.8


class LeaseClient(Protocol):
    """The part of a client that an elector needs. It should have a connection of its own."""

    async def get(self, target: Target) -> Mapping[str, object]:
        """Return the object as it is now."""
        ...

    async def create(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Create an object in a collection."""
        ...

    async def update(self, target: Target, body: Mapping[str, object]) -> Mapping[str, object]:
        """Replace an object if its resourceVersion is still the body's."""
        ...


@dataclass(frozen=True, slots=True)
class ElectorSettings:
    """Which Lease, as whom, and the times of client-go.

    `identity` must differ between processes. The Lease outlives the renew deadline by the time in
    which a leader that cannot renew has to stop its work. Raises ValueError where they do not fit.
    """

    namespace: str
    name: str
    identity: str
    lease_seconds: int = 15
    """Others may take it when it has not changed for so long."""
    renew_seconds: float = 10.0
    """Leadership lasts no longer than this after the last successful renewal was sent."""
    retry_seconds: float = 2.0
    """At most so long between two renewals, or two looks of a candidate."""

    def __post_init__(self) -> None:
        if not self.namespace or not self.name or not self.identity:
            raise ValueError("a Lease needs a namespace, a name and an identity of its candidate")
        if not 0 < self.retry_seconds < self.renew_seconds < self.lease_seconds:
            raise ValueError(
                f"retry {self.retry_seconds:g} s < renew {self.renew_seconds:g} s "
                f"< lease {self.lease_seconds} s must hold"
            )
        if self.lease_seconds > _LONGEST_LEASE_SECONDS:
            raise ValueError(f"a lease of more than {_LONGEST_LEASE_SECONDS} s")

    @property
    def call_seconds(self) -> float:
        """The deadline of one call; a second one must fit before that of the renewal."""
        return self.renew_seconds / 2

    @property
    def stop_seconds(self) -> float:
        """How long work may take to stop before another may start; the rest is for this process."""
        return _STOP_SHARE * (self.lease_seconds - self.renew_seconds)


class LeaseDoor:
    """The calls to one Lease, each with a deadline."""

    def __init__(self, client: LeaseClient, settings: ElectorSettings) -> None:
        self._client = client
        self._settings = settings
        self._target = Target(LEASES, settings.name, settings.namespace)

    async def read(self, seconds: float) -> StoredLease | None:
        """Return the Lease as it is now, None where there is none. Raises ApiError."""
        try:
            return read_lease(await self._within(seconds, self._client.get(self._target)))
        except NotFoundError:
            return None

    async def write(
        self, base: StoredLease | None, record: LeaseRecord, intents: str, seconds: float
    ) -> StoredLease:
        """Change the Lease if it is still as `base`, or create it. Raises ApiError."""
        if base is None:
            metadata = {"namespace": self._settings.namespace, "name": self._settings.name}
            body = write_lease({"metadata": metadata}, record, intents)
            call = self._client.create(Target(LEASES, namespace=self._settings.namespace), body)
        else:
            call = self._client.update(self._target, write_lease(base.body, record, intents))
        return read_lease(await self._within(seconds, call))

    async def _within(self, seconds: float, call: Awaitable[_T]) -> _T:
        seconds = min(seconds, self._settings.call_seconds)
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError as error:
            raise TimedOutError(
                f"{self._target.path}: no answer within {seconds:.1f} s", may_have_happened=True
            ) from error
