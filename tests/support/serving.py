# SPDX-License-Identifier: Apache-2.0
"""A webhook with every provider in the test's hand, run on a real socket with real TLS."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp

from policies.cel.reads import Reads
from policies.model.decision import Decision, Verdict, Violation
from policies.model.facts import ClusterFacts, Facts
from policies.model.policyset import PolicySet
from policies.model.reasons import Reason
from policies.model.request import Request
from policies.model.settings import Settings
from policies.vendors import build_catalog
from reconciler.runtime.audit_record import AuditEntry
from reconciler.runtime.health import Readiness
from reconciler.runtime.metrics import Metrics
from tests.support.certificates import Pki
from webhook.server import Listen, WebhookServer
from webhook.serving import Clock, Serving
from webhook.tls import ServerTls
from webhook.tls_sources import PemFiles

NOW = datetime(2031, 5, 17, 12, 0, tzinfo=UTC)
GENERATION = "7c1f0000"
FACTS = Facts(ClusterFacts({}, ()), NOW)
PATCH = ({"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "sluice.dev/quota"}]},)

REWRITTEN = Decision(
    Verdict.ALLOWED,
    GENERATION,
    patch=PATCH,
    warnings=("sluice: nvidia.com/gpu 1 -> nvidia.com/gpu.shared 1 by policy no-raw-gpu",),
    tenant="research",
    policy="no-raw-gpu",
    profile="slice-4",
    matched=("no-raw-gpu",),
    asked={"nvidia.com/gpu": 1},
    given={"nvidia.com/gpu.shared": 1},
    touches_gpus=True,
)
DENIED = Decision(
    Verdict.DENIED,
    GENERATION,
    violations=(Violation(Reason.NO_TENANT, "namespace team-a belongs to no tenant"),),
    touches_gpus=True,
)


class UnusedEnvironment:
    """A CEL environment for policy sets without policies, which never use it."""

    def compile(self, *_: object, **__: object) -> Any:
        raise AssertionError("there is nothing to compile")

    def reads(self, _: str) -> Reads:
        return {}

    def scope(self, *_: object) -> Any:
        raise AssertionError("there is nothing to evaluate")


def policy_set(settings: Settings | None = None, generation: str = GENERATION) -> PolicySet:
    """Return a set without any document but the settings."""
    return PolicySet(
        generation=generation,
        settings=settings or Settings(),
        catalog=build_catalog(),
        environment=UnusedEnvironment(),
        tenants={},
        tenant_by_namespace={},
        selecting_tenants=(),
        profiles={},
        policies=(),
    )


@dataclass
class RecordingAudit:
    """Keeps what is recorded."""

    entries: list[AuditEntry] = field(default_factory=list)

    def record(self, entries: Sequence[AuditEntry]) -> None:
        self.entries += entries


@dataclass
class Clockwork:
    """A monotonic clock that stands still unless it is moved."""

    seconds: float = 1000.0

    def clock(self) -> Clock:
        return Clock(now=lambda: NOW, monotonic=lambda: self.seconds)


def always(decision: Decision) -> Callable[[PolicySet, Facts, Request], Decision]:
    """Return a core that decides the same on everything."""
    return lambda _policies, _facts, _request: decision


def make_serving(decision: Decision = REWRITTEN, **providers: Any) -> Serving:
    """Return a webhook's providers; keyword arguments replace them."""
    policies = policy_set()
    serving = Serving(
        policies=lambda: policies,
        facts=lambda: FACTS,
        audit=RecordingAudit(),
        metrics=Metrics(),
        readiness=lambda: Readiness(()),
        decide=always(decision),
        touches_gpus=lambda _request: True,
    )
    return replace(serving, **providers)


def sample(metrics: object, name: str, **labels: str) -> float:
    """Return the value of one series, 0 where it has not been counted."""
    assert isinstance(metrics, Metrics)
    return metrics.registry.get_sample_value(name, labels) or 0.0


def make_tls(pki: Pki) -> ServerTls:
    """Return what a server of these certificates speaks TLS with."""
    return ServerTls(PemFiles(pki.certificate, pki.key), Metrics())


@asynccontextmanager
async def running(serving: Serving, pki: Pki, **listen: Any) -> AsyncIterator[WebhookServer]:
    """Run the webhook on a free loopback port until the block ends."""
    tls = make_tls(pki)
    options = {"host": "127.0.0.1", "port": 0, "grace": 0.0, "drain": 2.0, **listen}
    server = WebhookServer(serving, tls, Listen(**options))
    await server.start()
    at_once = asyncio.Event()
    at_once.set()
    try:
        yield server
    finally:
        await server.stop(at_once)


@asynccontextmanager
async def client(server: WebhookServer, pki: Pki) -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session with the webhook that checks its certificate."""
    connector = aiohttp.TCPConnector(ssl=pki.client_context())
    url = f"https://127.0.0.1:{server.port}"
    async with aiohttp.ClientSession(url, connector=connector) as session:
        yield session
