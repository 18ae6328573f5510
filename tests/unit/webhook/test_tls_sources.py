# SPDX-License-Identifier: Apache-2.0
"""A server that serves from a Secret: it waits for the first, and follows every good one."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from reconciler.kube.tls_secret import TlsData
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.signals import StopEvents
from tests.support.certificates import Pki, make_pki
from tests.support.running import running
from tests.support.serving import make_serving, sample
from tests.support.waiting import until
from webhook.server import Listen, WebhookServer, serve
from webhook.tls import ServerTls
from webhook.tls_sources import PemSecret


class Secret:
    """A Secret that a test writes."""

    namespace = "sluice"
    name = "sluice-tls"

    def __init__(self) -> None:
        self.data: TlsData | None = None
        self.subscribers: list[Callable[[], None]] = []

    def current(self) -> TlsData | None:
        return self.data

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        self.subscribers.append(subscriber)

    def write(self, data: TlsData | None) -> None:
        self.data = data
        for each in self.subscribers:
            each()


def data_of(pki: Pki) -> TlsData:
    return TlsData(pki.certificate.read_bytes(), pki.key.read_bytes())


def served(port: int) -> x509.Certificate:
    pem = ssl.get_server_certificate(("127.0.0.1", port))
    return x509.load_pem_x509_certificate(pem.encode())


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return make_pki(tmp_path)


async def test_the_server_listens_once_there_is_a_certificate_and_follows_it(pki: Pki) -> None:
    secret, metrics = Secret(), Metrics()
    tls = ServerTls(PemSecret(secret), metrics)
    server = WebhookServer(make_serving(), tls, Listen(host="127.0.0.1", port=0, grace=0))
    ports: list[int] = []
    async with running(tls.watch()), running(serve(server, StopEvents(), ports.append)):
        await asyncio.sleep(0)
        assert not tls.loaded.is_set()
        secret.write(data_of(pki))
        await until(lambda: bool(ports))
        first = await asyncio.to_thread(served, ports[0])
        renewed = pki.renew()
        assert first != renewed
        secret.write(data_of(pki))
        await until(lambda: sample(metrics, "sluice_tls_reloads_total", result="Success") == 2)
        assert await asyncio.to_thread(served, ports[0]) == renewed


async def test_a_process_that_waits_for_its_certificate_can_be_stopped() -> None:
    tls = ServerTls(PemSecret(Secret()), Metrics())
    server = WebhookServer(make_serving(), tls, Listen(host="127.0.0.1", port=0, grace=0))
    events = StopEvents()
    serving = asyncio.create_task(serve(server, events))
    await asyncio.sleep(0)
    events.stop.set()
    async with asyncio.timeout(5):
        await serving


@pytest.mark.parametrize(
    "bad",
    [None, TlsData(b"", b""), TlsData(b"nonsense", b"nonsense")],
    ids=["deleted", "empty", "nonsense"],
)
def test_what_cannot_be_served_leaves_the_old_certificate(
    pki: Pki, caplog: pytest.LogCaptureFixture, bad: TlsData | None
) -> None:
    secret = Secret()
    tls = ServerTls(PemSecret(secret), Metrics())
    secret.write(data_of(pki))
    assert tls.reload() is True
    secret.write(bad)
    assert [tls.reload() for _ in range(3)] == [False, False, False]
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "the old one stays in use" in errors[0].getMessage()
    assert "Secret sluice/sluice-tls" in errors[0].getMessage()
    secret.write(data_of(pki))
    assert tls.reload() is True


def test_a_first_certificate_that_cannot_be_served_is_waited_past(
    pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    secret = Secret()
    tls = ServerTls(PemSecret(secret), Metrics())
    secret.write(TlsData(pki.certificate.read_bytes(), b""))
    assert tls.reload() is False
    assert not tls.loaded.is_set()
    assert "there is no other" in caplog.text
    secret.write(data_of(pki))
    assert tls.reload() is True


def test_an_expired_one_is_better_than_none_and_never_takes_the_place_of_a_good_one(
    pki: Pki,
) -> None:
    good = data_of(pki)
    pki.renew(datetime.now(UTC) - timedelta(days=500))
    expired = data_of(pki)
    secret = Secret()
    tls = ServerTls(PemSecret(secret), Metrics())
    secret.write(expired)
    assert tls.reload() is True
    secret.write(good)
    assert tls.reload() is True
    secret.write(expired)
    assert tls.reload() is False


def test_no_file_is_left_open_by_a_reload(pki: Pki) -> None:
    secret = Secret()
    tls = ServerTls(PemSecret(secret), Metrics())
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        pki.renew()
        secret.write(data_of(pki))
        assert tls.reload() is True
    assert len(list(Path("/proc/self/fd").iterdir())) == before
