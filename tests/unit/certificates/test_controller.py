# SPDX-License-Identifier: Apache-2.0
"""The controller watches, writes, tells and counts; failures are tried again."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from certs.pem import parse_certificates
from reconciler.certificates.controller import CertificateController, Pace, Reports
from reconciler.certificates.metrics import CertificateMetrics
from reconciler.certificates.plan import Terms
from reconciler.certificates.run import installed
from reconciler.kube.access import Access
from reconciler.kube.backoff import Backoff
from reconciler.kube.client import Client
from reconciler.kube.events import EventType, Regarding
from reconciler.kube.tls_secret import KeptCertificates, TlsSecret
from reconciler.runtime.metrics import Metrics
from tests.support.certificate_world import INSTALLED, KINDS, START, configuration_object
from tests.support.fake_apiserver import FakeApiServer, Fault, run_fake
from tests.support.running import running
from tests.support.waiting import until

SECRETS = "/api/v1/secrets"
IN_NAMESPACE = "/api/v1/namespaces/sluice/secrets"
CONFIGURATIONS = {kind: f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s" for kind in KINDS}
QUICK = Pace(settle_seconds=0.01, look_seconds=0.05, retry=Backoff(0.01, 0.02))


class FixedAccess:
    def __init__(self, url: str) -> None:
        self._url = url

    async def load(self, *, renew: bool = False) -> Access:
        return Access(self._url)


@dataclass
class Recorder:
    told: list[tuple[str, str, EventType]] = field(default_factory=list)

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        type: EventType,  # noqa: A002 - the API's own name
        action: str,
    ) -> None:
        assert regarding.uid
        self.told.append((reason, regarding.name, type))


@dataclass
class Scene:
    """A fake API server with the configurations, and the controller on it."""

    fake: FakeApiServer
    client: Client
    metrics: Metrics = field(default_factory=Metrics)
    recorder: Recorder = field(default_factory=Recorder)
    now: float = START.timestamp()
    passes: int = 0

    @asynccontextmanager
    async def kept(self, settle_seconds: float = 0.0) -> AsyncIterator[None]:
        metrics = CertificateMetrics(self.metrics, lambda: self.now)
        reports = Reports(self._look, self.recorder, metrics)
        terms = Terms(settle_seconds=settle_seconds)
        controller = CertificateController(self.client, INSTALLED, reports, terms, QUICK)
        async with running(controller.run()):
            yield

    def _look(self) -> float:
        self.passes += 1
        return self.now

    async def wait_passes(self, count: int = 4) -> None:
        """Wait until the controller has looked so often."""
        enough = self.passes + count
        await until(lambda: self.passes >= enough)

    def secret(self, name: str) -> Any:
        return self.fake.find(SECRETS, name, "sluice")

    def bundles(self) -> list[bytes]:
        return [
            base64.b64decode(entry["clientConfig"].get("caBundle", ""))
            for kind in KINDS
            for entry in (self.fake.find(CONFIGURATIONS[kind], "sluice") or {})["webhooks"]
        ]

    def is_whole(self) -> bool:
        found = self.secret("sluice-tls")
        if found is None:
            return False
        return set(self.bundles()) == {base64.b64decode(found["data"]["ca.crt"])}

    def sample(self, name: str, **labels: str) -> float | None:
        text = self.metrics.exposition("")[0].decode()
        for family in text_string_to_metric_families(text):
            for each in family.samples:
                if each.name == name and labels.items() <= each.labels.items():
                    return float(each.value)
        return None


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with run_fake() as fake:
        for kind in KINDS:
            fake.put(CONFIGURATIONS[kind], configuration_object(kind))
        async with Client(FixedAccess(fake.url)) as client:
            yield Scene(fake, client)


async def test_an_installation_is_made_whole_told_of_and_counted(scene: Scene) -> None:
    async with scene.kept():
        await until(scene.is_whole)
        serving = {"certificate": "Serving"}
        await until(lambda: scene.sample("sluice_certificates_remaining_seconds", **serving) != 0)
        assert scene.sample("sluice_certificates_remaining_seconds", **serving) == 90 * 86400
        scene.now += 100
        assert scene.sample("sluice_certificates_remaining_seconds", **serving) == 90 * 86400 - 100
        assert scene.sample("sluice_certificate_rotations_total", **serving) == 1
        assert scene.sample("sluice_certificate_rotations_total", certificate="Authority") == 1
    assert [(reason, name) for reason, name, _ in scene.recorder.told] == [
        ("AuthorityIssued", "sluice-authority"),
        ("BundleWritten", "sluice"),
        ("BundleWritten", "sluice"),
        ("CertificateRenewed", "sluice-tls"),
    ]
    assert scene.sample("sluice_certificates_remaining_seconds", **serving) is None
    assert scene.secret("sluice-tls")["metadata"]["labels"] == {
        "app.kubernetes.io/name": "sluice",
        "app.kubernetes.io/instance": "sluice",
        "sluice.dev/certificates": "leader",
    }


async def test_nothing_is_written_while_nothing_is_due(scene: Scene) -> None:
    async with scene.kept():
        await until(scene.is_whole)
        await scene.wait_passes()
        version = scene.fake.version
        await scene.wait_passes()
        assert scene.fake.version == version


async def test_a_rotation_that_is_asked_for_is_done_to_its_end(scene: Scene) -> None:
    async with scene.kept(settle_seconds=0.2):
        await until(scene.is_whole)
        before = scene.secret("sluice-authority")
        leaf = scene.secret("sluice-tls")["data"]["tls.crt"]
        before["metadata"]["annotations"] = {"sluice.dev/rotate": "now"}
        scene.fake.put(SECRETS, before)
        await until(lambda: scene.secret("sluice-tls")["data"]["tls.crt"] != leaf)
        await until(scene.is_whole)
    after = scene.secret("sluice-authority")
    assert after["data"]["ca.crt"] != before["data"]["ca.crt"]
    assert "coming.key" not in after["data"]
    assert after["metadata"]["annotations"] == {}
    (leaf_now,) = parse_certificates(
        base64.b64decode(scene.secret("sluice-tls")["data"]["tls.crt"]), ""
    )
    (authority,) = parse_certificates(base64.b64decode(after["data"]["ca.crt"]), "")
    leaf_now.verify_directly_issued_by(authority)


async def test_what_others_manage_is_told_once_and_not_written(scene: Scene) -> None:
    theirs = {
        "metadata": {
            "name": "sluice-tls",
            "namespace": "sluice",
            "annotations": {"cert-manager.io/certificate-name": "sluice"},
        },
        "data": {},
    }
    scene.fake.put(SECRETS, theirs)
    version = scene.fake.version
    async with scene.kept():
        await until(lambda: scene.sample("sluice_certificates_refused_objects") == 1)
        await scene.wait_passes()
        assert scene.fake.version == version
    assert scene.recorder.told == [("ManagedByOthers", "sluice-tls", EventType.WARNING)]
    assert scene.sample("sluice_certificates_refused_objects") == 0


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_a_write_that_fails_is_counted_and_tried_again(scene: Scene, status: int) -> None:
    path = f"{CONFIGURATIONS[KINDS[0]]}/sluice"
    scene.fake.faults.append(Fault("PATCH", path, status, times=2))
    async with scene.kept():
        await until(scene.is_whole)
    names = {403: "ForbiddenError", 422: "InvalidError", 500: "UnavailableError"}
    assert scene.sample("sluice_certificate_failures_total", error=names[status]) == 2


async def test_a_configuration_that_cannot_be_written_keeps_no_certificate_from_being_there(
    scene: Scene,
) -> None:
    for kind in KINDS:
        path = f"{CONFIGURATIONS[kind]}/sluice"
        scene.fake.faults.append(Fault("PATCH", path, 403, times=10_000))
    async with scene.kept():
        await until(lambda: scene.secret("sluice-tls") is not None)


async def test_a_conflict_is_no_failure_and_the_newer_object_is_planned_on(scene: Scene) -> None:
    changed: list[str] = []

    def meanwhile(path: str) -> None:
        if path.startswith(CONFIGURATIONS[KINDS[0]]) and not changed:
            changed.append(path)
            found = scene.fake.find(CONFIGURATIONS[KINDS[0]], "sluice")
            assert found is not None
            found["webhooks"].insert(0, {"name": "new", "clientConfig": {"url": "https://x/y"}})
            scene.fake.put(CONFIGURATIONS[KINDS[0]], found)

    scene.fake.on_patch = meanwhile
    async with scene.kept():
        await until(lambda: bool(changed) and scene.is_whole())
    assert scene.sample("sluice_certificate_failures_total", error="ConflictError") == 0
    assert len(scene.bundles()) == 5


async def test_replicas_see_each_new_certificate_by_their_watch(scene: Scene) -> None:
    secret = TlsSecret(scene.client, "sluice", "sluice-tls")
    assert secret.current() is None
    seen = asyncio.Event()
    secret.subscribe(seen.set)
    async with scene.kept(), running(secret.run()):
        await until(seen.is_set)
        found = secret.current()
        assert found is not None
        data = scene.secret("sluice-tls")["data"]
        assert found.certificate == base64.b64decode(data["tls.crt"])
        assert found.key == base64.b64decode(data["tls.key"])
        scene.fake.remove(SECRETS, "sluice-tls", "sluice")
        await until(lambda: secret.current() not in (None, found))


def test_the_names_of_an_installation_are_those_of_its_manifests() -> None:
    assert installed(KeptCertificates("sluice", "sluice-tls")) == INSTALLED
    other = installed(KeptCertificates("gpu", "gate-tls", "gate"))
    assert (other.authority, other.configurations) == ("gate-authority", "gate")
    assert other.names[0] == "gate.gpu.svc"
