# SPDX-License-Identifier: Apache-2.0
"""The map of the reconciler: every controller that runs, in one list, and who runs them."""

import logging
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from reconciler.certificates.run import run_certificates
from reconciler.kube.backoff import Backoff
from reconciler.kube.client import Client
from reconciler.kube.elector import Elector, ElectorHooks, ElectorSettings, WorkNotStoppedError
from reconciler.kube.transport import ClientSettings
from reconciler.leading import Controller, Leading, lead
from reconciler.mirror.run import MirrorHooks, run_mirror
from reconciler.placement.run import run_placement
from reconciler.quota.run import run_quota
from reconciler.reclaim.run import ReclaimParts, run_reclaim
from reconciler.runtime.controller_metrics import ControllerMetrics
from reconciler.runtime.surroundings import Surroundings
from reconciler.runtime.tasks import Activity
from reconciler.telemetry.controller import run_telemetry
from reconciler.tenants.run import run_tenants

_LOG: Final = logging.getLogger(__name__)


async def _reclaim(leading: Leading) -> None:
    parts = ReclaimParts(
        lambda: leading.newest.plan, leading.budgets, leading.events, leading.metrics.disturbed
    )
    await run_reclaim(leading, parts)


async def _mirror(leading: Leading) -> None:
    around = leading.surroundings
    hooks = MirrorHooks(
        failed=lambda _command, error: leading.metrics.mirror_failed(type(error).__name__)
    )
    await run_mirror(around.client, around.documents, hooks, runtime=around.runtime)


CONTROLLERS: Final[tuple[Controller, ...]] = (
    ("quota", run_quota),
    ("reclaim", _reclaim),
    ("mirror", _mirror),
    ("tenants", run_tenants),
    ("telemetry", run_telemetry),
    ("placement", run_placement),
)
"""Each runs while its process leads, on one picture of the cluster."""

FIRST: Final[tuple[Controller, ...]] = (("certificates", run_certificates),)
"""Those that need no picture: a pod cannot be written to while nobody trusts the webhook."""

_LEASE_CALLS: Final = ClientSettings(
    call_seconds=5.0, connect_seconds=3.0, connections=2, user_agent="sluice-elector"
)
"""A client of its own, so that no burst of other calls can cost the leadership."""

_RESTARTS: Final = Backoff(first_seconds=1.0, cap_seconds=60.0)


@dataclass(frozen=True, slots=True)
class Election:
    """Which Lease decides who leads, and who this is in it; empty for a name of its own."""

    namespace: str
    lease: str
    identity: str = ""

    def settings(self) -> ElectorSettings:
        """Return the elector's settings, with an identity that no other process has."""
        identity = self.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        return ElectorSettings(self.namespace, self.lease, identity)


def run_as_candidate(election: Election) -> Callable[[Surroundings], Mapping[str, Activity]]:
    """Return what makes the reconciler's activities, for a process to supervise."""

    def activities(around: Surroundings) -> Mapping[str, Activity]:
        return {"controllers": run_controllers(around, election.settings())}

    return activities


async def run_controllers(
    around: Surroundings,
    election: ElectorSettings,
    controllers: tuple[Controller, ...] = CONTROLLERS,
) -> None:
    """Campaign, and run every controller while leading, until cancelled.

    A controller that dies ends the leadership, so that another process leads; this one goes on
    answering reviews, and stands again after a while. Raises WorkNotStoppedError.
    """
    metrics = ControllerMetrics(around.metrics)
    hooks = ElectorHooks(led=metrics.leads)
    failures = 0
    async with Client(around.access, _LEASE_CALLS) as lease_client:
        while True:
            elector = Elector(lease_client, election, around.runtime, hooks)
            began = around.runtime.clock()
            try:
                await elector.run(partial(lead, around, controllers, metrics, first=FIRST))
            except WorkNotStoppedError:
                raise
            except Exception:  # noqa: BLE001 - whatever it was, reviews must go on
                _LOG.exception("a controller has died; the leadership is given up")
                metrics.failed()
            if around.runtime.clock() - began > _RESTARTS.cap_seconds:
                failures = 0
            failures += 1
            await around.runtime.sleep(_RESTARTS.seconds(failures, around.runtime.uniform))
