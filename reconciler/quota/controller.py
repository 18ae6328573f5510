# SPDX-License-Identifier: Apache-2.0
"""The quota controller: plans on the newest picture, releases, and says why the rest waits.

It runs while its process leads. Who may go is decided in `plan`; how a release is sent, in
`releasing`; what waiting pods say, in `reasons`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.quota.charge import ChargeRecord
from policies.quota.planning.plan import plan
from policies.quota.planning.values import Plan
from policies.quota.pods import QuotaPod
from reconciler.cluster import LiveCluster
from reconciler.kube.errors import ApiError
from reconciler.kube.outstanding import Outstanding
from reconciler.kube.reflector import Runtime
from reconciler.quota.parking import LASTING_SECONDS, Parked, text_of
from reconciler.quota.releasing import Release, Releaser

_LOG: Final = logging.getLogger(__name__)
_TICK_SECONDS: Final = 1.0
"""Policies, ages and reservations change without any event."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What metrics and Events want to know."""

    released: Callable[[QuotaPod, ChargeRecord], None] = lambda _pod, _charge: None
    failed: Callable[[QuotaPod, ApiError], None] = lambda _pod, _error: None
    parked: Callable[[QuotaPod, str], None] = lambda _pod, _text: None
    """Told of each refusal of a pod that goes on being refused, and what is to be said of it."""
    planned: Callable[[Plan, float], None] = lambda _plan, _seconds: None


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How often and how much at once."""

    batch: int = 100
    """Releases declared at once; the Lease names them."""
    most_under_way: int = 200
    """So many releases may be under way before more are planned."""
    tick_seconds: float = _TICK_SECONDS


_HOOKS: Final = Hooks()
_SETTINGS: Final = LoopSettings()


class QuotaController:
    """Releases pods while `run` runs. It is also where a releaser's outcomes end up."""

    def __init__(
        self,
        cluster: LiveCluster,
        outstanding: Outstanding,
        now: Callable[[], float],
        runtime: Runtime,
        hooks: Hooks = _HOOKS,
        settings: LoopSettings = _SETTINGS,
    ) -> None:
        self._cluster = cluster
        self._state = cluster.state
        self._outstanding = outstanding
        self._now = now
        self._runtime = runtime
        self._hooks = hooks
        self._settings = settings
        self._releaser: Releaser | None = None
        self._parked: dict[str, Parked] = {}
        """Pods whose write was refused, which are not planned for until their back-off is over."""
        self._wake = asyncio.Event()
        self.last_plan: Plan | None = None
        cluster.on_pod(self._seen)
        cluster.on_change(self._wake.set)

    async def run(self, releaser: Releaser) -> None:
        """Plan and release until cancelled. Raises LeadershipLostError."""
        self._releaser = releaser
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(releaser.run(), name="send releases")
            while True:
                await self._pass(releaser)
                await self._wait()

    async def _pass(self, releaser: Releaser) -> None:
        """Plan once, and release what may go; again at once while there is more."""
        while True:
            # Before anything else: what is not waited for leaves no turn to others.
            self._wake.clear()
            if not (self._cluster.is_fresh and self._cluster.refresh_policies()):
                return
            room = min(
                self._settings.batch,
                self._settings.most_under_way - releaser.under_way,
                self._outstanding.room,
            )
            began = self._runtime.clock()
            planned = plan(self._state, int(self._now()), max(0, room))
            self.last_plan = planned
            self._hooks.planned(planned, self._runtime.clock() - began)
            if not planned.releases:
                return
            for release in planned.releases:
                self._state.charge_intent(release.pod.uid, release.charge, release.node)
            taken = await releaser.hand_in(planned.releases)
            for release in planned.releases[taken:]:
                self._state.settle(release.pod.uid)
            if taken < len(planned.releases):
                return

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._settings.tick_seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    def stands(self, release: Release) -> bool:
        """Tell whether policies and the namespace's owner are what a release was decided by."""
        self._cluster.refresh_policies()
        charge = release.charge
        return (
            charge.generation == self._cluster.policies.generation
            and charge.tenant == self._state.ledger.owner(release.pod.namespace)
        )

    def looked(self, raw: Mapping[str, object]) -> None:
        """Take a pod up ahead of its watch; one that is released is then charged by itself."""
        self._cluster.absorb(raw)

    def landed(self, release: Release) -> None:
        """Tell of it."""
        self._hooks.released(release.pod, release.charge)

    def withdrawn(self, pod: QuotaPod) -> None:
        """Have the pod planned for anew."""
        self._state.settle(pod.uid)
        self._wake.set()

    def waits(self) -> Iterator[tuple[QuotaPod, str]]:
        """Yield every pod that the last pass let wait, or whose release is refused, and why."""
        if self.last_plan is not None:
            for wait in self.last_plan.waits:
                for pod in wait.pods:
                    yield pod, wait.reason
        for parked in self._parked.values():
            if parked.text:
                yield parked.pod, parked.text

    def refused(self, pod: QuotaPod, error: ApiError, seconds: float) -> None:
        """Have the pod planned for again after its back-off, or when it has changed."""
        newest = self._state.pod(pod.uid)
        self._state.settle(pod.uid)
        self._hooks.failed(pod, error)
        if newest is None:
            return
        self._state.set_aside(pod.uid)
        parked = self._parked[pod.uid] = Parked(newest, text_of(error))
        if parked.text and seconds >= LASTING_SECONDS:
            self._hooks.parked(newest, parked.text)
        asyncio.get_running_loop().call_later(seconds, self._unpark, parked)
        self._wake.set()

    def _unpark(self, parked: Parked) -> None:
        uid = parked.pod.uid
        if self._parked.get(uid) is parked:
            del self._parked[uid]
            self._state.set_aside(uid, aside=False)
            self._wake.set()

    def _seen(self, old: QuotaPod | None, new: QuotaPod | None) -> None:
        """Settle what a newer version, or the end, of a pod settles."""
        if self._releaser is None:
            return
        if new is None:
            if old is not None:
                self._parked.pop(old.uid, None)
                self._releaser.seen_gone(old.uid)
                self._state.settle(old.uid)
            return
        parked = self._parked.get(new.uid)
        if parked is not None:
            if parked.is_only_told(new):
                parked.pod = new
                return
            self._unpark(parked)
        if self._releaser.seen(new.uid, new.version):
            self._state.settle(new.uid)
