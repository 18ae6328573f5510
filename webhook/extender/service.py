# SPDX-License-Identifier: Apache-2.0
"""Puts the extender together from its parts: watches, model, telemetry, Lease and server.

Here is decided what is connected to what; how each part works is its own module's matter.
"""

import asyncio
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from policies.cluster.nodes import Node
from policies.placement.filtering import Refusal
from policies.placement.model import Model
from policies.placement.pods import PodReader
from policies.vendors import Catalog
from reconciler.kube.access import AccessSource
from reconciler.kube.client import Client
from reconciler.kube.elector import Elector, ElectorHooks, ElectorSettings, Leadership
from reconciler.kube.transport import ClientSettings
from reconciler.placement.documents import follow_documents
from reconciler.placement.settings import PlacementSettings
from reconciler.placement.watching import ModelWatch
from reconciler.runtime.document_health import document_conditions
from reconciler.runtime.documents import MoreSources
from reconciler.runtime.health import Condition, Readiness
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import StopEvents
from reconciler.runtime.surroundings import Documents
from reconciler.runtime.tasks import Activity
from reconciler.telemetry.run import Telemetry
from webhook.extender.answers import Answers
from webhook.extender.expiring import keep_expiring
from webhook.extender.gauges import Gauges
from webhook.extender.handlers import Handlers
from webhook.extender.metrics import ExtenderCounts
from webhook.extender.taking_over import wake_the_refused
from webhook.extender.waking import Waker
from webhook.server import HttpServer, Listen, serve, spare_what_stays
from webhook.tls import ServerTls

_LEASE_CALLS: Final = ClientSettings(
    call_seconds=5.0, connect_seconds=3.0, connections=2, user_agent="sluice-extender-elector"
)
"""A client of its own, so that no burst of other calls can cost the Lease."""


@dataclass(frozen=True, slots=True)
class Candidacy:
    """Which Lease decides which extender is active, and who this is; empty for a name of its own.

    Without a Lease (an empty `lease`) it is always active: for one process alone.
    """

    namespace: str = "sluice"
    lease: str = "sluice-extender"
    identity: str = ""

    def settings(self) -> ElectorSettings:
        """Return the elector's settings, with an identity that no other process has."""
        identity = self.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        return ElectorSettings(self.namespace, self.lease, identity)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a process has for its extender. `telemetry` is None where there is no source.

    Without `documents` all nodes are ranked by the process's own setting. `more_documents` are the
    cluster's among them, where nobody else tells of their readiness.
    """

    access: AccessSource
    client: Client
    catalog: Catalog
    metrics: Metrics
    tls: ServerTls | None = None
    listen: Listen = field(default_factory=Listen)
    telemetry: Telemetry | None = None
    documents: Documents | None = None
    more_documents: MoreSources | None = None


class Extender:
    """One extender, not yet running."""

    def __init__(
        self, around: Surroundings, placement: PlacementSettings, candidacy: Candidacy
    ) -> None:
        self._around = around
        self._candidacy = candidacy
        self._is_active = not candidacy.lease
        reader = PodReader(around.catalog)
        self.model = Model(around.catalog, placement.model)
        self._watch = ModelWatch(around.client, self.model, reader)
        if around.documents is not None:
            follow_documents(around.documents, self.model)
        self._telemetry = around.telemetry
        self._waker = Waker(around.client, placement.model.limits.threshold)
        self.answers = Answers(self.model, reader, self._watch.is_live)
        self.answers.refused_for_load = self._refused
        self.answers.kept_out = self._waker.kept_out
        self.answers.released = self._waker.released
        self._watch.on_released(self._waker.released)
        self._watch.on_left(lambda node: self._waker.left(node, time.monotonic()))
        self._counts = ExtenderCounts(around.metrics, self.model.assumed)
        self._server = HttpServer(
            Handlers(self.answers, self.readiness, self._counts, lambda: self._is_active),
            around.tls,
            around.listen,
            "extender",
        )
        self._watch.on_node(self._node_changed)
        self._gauges: Gauges | None = None
        if self._telemetry is not None:
            store, weights = self._telemetry.store, self._telemetry.config.weights
            self._gauges = Gauges(self.model, store, self._waker, weights)
            store.subscribe(self._gauges.measured)

    def activities(
        self, events: StopEvents, ready: Callable[[int], None] | None = None
    ) -> Mapping[str, Activity]:
        """Return what has to run for it; `ready` is told the port once it is open."""
        found: dict[str, Activity] = {
            "extender": serve(self._server, events, ready),
            "extender's watches": self._follow(),
        }
        if self._around.tls is not None:
            found["extender's certificates"] = self._around.tls.watch()
        found["extender's lease"] = self._campaign() if self._candidacy.lease else self._be_active()
        return found

    def readiness(self) -> Readiness:
        """Return the conditions that /readyz shows; only the active one of all is ready."""
        is_synced, age = self._watch.is_synced, self._watch.age_seconds()
        is_live = self._watch.is_live()
        return Readiness(
            (
                Condition(
                    "model-synced",
                    ok=is_synced,
                    message="" if is_synced else "nodes and pods have not been listed yet",
                ),
                Condition(
                    "active",
                    ok=self._is_active,
                    message="" if self._is_active else "another extender is active",
                ),
                # Answers are neutral meanwhile, and another one's would be no better.
                Condition(
                    "model-live",
                    ok=is_live,
                    message="" if is_live or not is_synced else f"the watches are {age:.0f} s old",
                    required=False,
                ),
                *self._document_conditions(),
            )
        )

    def _document_conditions(self) -> Iterator[Condition]:
        """Yield what there is to say of documents; pods are scheduled without them too."""
        if self._around.documents is not None:
            state, more = self._around.documents.state, self._around.more_documents
            for condition in document_conditions(state, more):
                yield replace(condition, required=False)

    async def _follow(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch.run(), name="cluster of the extender")
            await self._watch.wait_synced()
            # Thousands of pods and nodes would be looked through again and again.
            spare_what_stays()

    async def _campaign(self) -> None:
        """Stand for the Lease for ever, and be active while it is held."""
        hooks = ElectorHooks(led=self._set_active)
        async with Client(self._around.access, _LEASE_CALLS) as client:
            while True:
                await Elector(client, self._candidacy.settings(), hooks=hooks).run(self._lead)

    async def _lead(self, _: Leadership) -> None:
        await self._be_active()

    async def _be_active(self) -> None:
        """Do what only one process should, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            if self._telemetry is not None:
                sampling = self._telemetry.run(writes=False)
                tasks.create_task(sampling, name="telemetry of the extender")
            if self._gauges is not None:
                tasks.create_task(self._gauges.run(), name="gauges of the extender")
            tasks.create_task(self._waker.run(), name="waking of pods")
            expiring = keep_expiring(self.answers.expire, asyncio.sleep)
            tasks.create_task(expiring, name="assumptions that run out")
            await self._watch.wait_synced()
            await wake_the_refused(self._is_load_known, self._wake_all, asyncio.sleep)
            await asyncio.Event().wait()

    def _is_load_known(self) -> bool:
        return self._telemetry is None or self.model.is_load_known

    def _wake_all(self) -> None:
        for name in self.model.nodes()[:1]:
            self._waker.wake(name)

    def _set_active(self, is_active: bool) -> None:
        self._is_active = is_active
        self._counts.is_active(is_active)

    def _node_changed(self, node: Node | None, name: str) -> None:
        if node is None:
            self._waker.forget(name)
        if self._gauges is None:
            return
        if node is None:
            self._gauges.remove_node(name)
        else:
            self._gauges.put_node(node)

    def _refused(self, name: str, refusal: Refusal) -> None:
        here = self.model.occupancy(name)
        if here is not None:
            self._waker.refused(name, here.gauge, refusal.needed_mib)
