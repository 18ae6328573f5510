# SPDX-License-Identifier: Apache-2.0
"""Settles what a past leader may still have under way.

It may have been frozen between its check and its send, and wake up at any time. So everything
that its Lease names counts as charged, until the pod is seen to be newer than the write was made
for, or is changed by us, after which that write conflicts.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from policies.quota.charge import ChargeRecord, read_charge
from policies.quota.pods import Phase, QuotaPod
from reconciler.kube.backoff import Backoff
from reconciler.kube.errors import ApiError, ConflictError
from reconciler.kube.intents import Intent, IntentKind
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.kube.store import Key
from reconciler.quota.voiding import Fate, Patcher, void

_LOG: Final = logging.getLogger(__name__)
_BACKOFF: Final = Backoff(0.1, 5.0)
_AT_ONCE: Final = 16


class Picture(Protocol):
    """The part of the cluster's picture that settling needs."""

    def pod(self, key: Key) -> QuotaPod | None:
        """Return a pod as last seen."""
        ...

    def absorb(self, raw: Mapping[str, object]) -> None:
        """Take up what a write was answered with."""
        ...


class Charges(Protocol):
    """What counts as charged besides the pods."""

    def charge_intent(self, uid: str, charge: ChargeRecord) -> None:
        """Count a charge."""
        ...

    def settle(self, uid: str) -> None:
        """Count it no more."""
        ...


class Inheritance:
    """The intents that a leadership began with."""

    def __init__(
        self,
        patcher: Patcher,
        picture: Picture,
        charges: Charges,
        outstanding: Outstanding,
        identity: str,
        runtime: Runtime,
    ) -> None:
        self._patcher = patcher
        self._picture = picture
        self._charges = charges
        self._outstanding = outstanding
        self._identity = identity
        self._runtime = runtime

    def count(self) -> None:
        """Count all of it as charged; before anything is decided."""
        for intent in self._outstanding.intents.values():
            charge = read_charge(intent.charge)
            if charge is not None:
                self._charges.charge_intent(intent.uid, charge)

    async def settle(self, done: Callable[[], None] = lambda: None) -> None:
        """Settle each of them, however long the API server takes."""
        intents = tuple(self._outstanding.intents.values())
        if intents:
            _LOG.info("settling %d writes that a past leader has declared", len(intents))
        async with asyncio.TaskGroup() as tasks:
            for intent in intents:
                tasks.create_task(self._settle(intent, done))

    async def settle_uncounted(self) -> None:
        """Settle the releases whose charge cannot be read, as one of another version may be.

        Nothing may be decided meanwhile.
        """
        async with asyncio.TaskGroup() as tasks:
            for intent in tuple(self._outstanding.intents.values()):
                if intent.kind is IntentKind.RELEASE and read_charge(intent.charge) is None:
                    tasks.create_task(self._settle(intent, lambda: None))

    async def void_everything(self, pods: Iterable[QuotaPod]) -> None:
        """Change every pod that a past leader could have written to, for its list is lost.

        Nothing may be decided meanwhile.
        """
        affected = [p for p in pods if p.phase is Phase.WAITING or p.notice is not None]
        _LOG.warning("what a past leader has declared is lost: voiding %d pods", len(affected))
        for begin in range(0, len(affected), _AT_ONCE):
            async with asyncio.TaskGroup() as tasks:
                for pod in affected[begin : begin + _AT_ONCE]:
                    tasks.create_task(self._void(pod))

    async def _void(self, pod: QuotaPod) -> None:
        intent = Intent(IntentKind.RELEASE, pod.namespace, pod.name, pod.uid, pod.version)
        failures = 0
        while not await self._tried(intent):
            failures += 1
            await self._runtime.sleep(_BACKOFF.seconds(failures, self._runtime.uniform))

    async def _settle(self, intent: Intent, done: Callable[[], None]) -> None:
        failures = 0
        while not await self._tried(intent):
            failures += 1
            await self._runtime.sleep(_BACKOFF.seconds(failures, self._runtime.uniform))
        self._outstanding.settle_only(intent)
        self._charges.settle(intent.uid)
        done()

    async def _tried(self, intent: Intent) -> bool:
        """Tell whether the past leader's write has landed, or can no longer."""
        try:
            # The list was made after the Lease was taken, but what is seen in it may have moved on.
            found = await void(self._patcher, intent, self._identity)
        except ConflictError:
            return False  # it has changed just now: look again
        except ApiError as error:
            _LOG.warning("%s/%s: %s", intent.namespace, intent.name, error)
            return False
        if found.fate is Fate.GONE:
            # That nobody was found at its address is not enough: something in between may say so.
            known = self._picture.pod(Key(intent.namespace, intent.name))
            return known is None or known.uid != intent.uid
        self._picture.absorb(found.pod)
        return True
