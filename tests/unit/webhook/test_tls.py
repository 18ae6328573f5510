# SPDX-License-Identifier: Apache-2.0
"""Certificates that are replaced under a running server."""

import asyncio
import logging
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from reconciler.runtime.metrics import Metrics
from tests.support.certificates import Pki, make_pki
from tests.support.reviews import body, review
from tests.support.serving import make_serving, sample
from tests.support.waiting import until
from webhook.server import Listen, WebhookServer
from webhook.tls import ServerTls
from webhook.tls_sources import PemFiles, TlsError

REVIEW = body(review())
POST = (
    b"POST /mutate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % len(REVIEW)
) + REVIEW


class Connection:
    """A keep-alive connection that can send reviews and knows the certificate that it was shown."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls, server: WebhookServer, context: ssl.SSLContext, name: str = "localhost"
    ) -> "Connection":
        return cls(
            *await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context, server_hostname=name
            )
        )

    @property
    def serial(self) -> int:
        shown = self._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(shown).serial_number

    async def ask(self) -> None:
        """Send one review and read its answer."""
        self._writer.write(POST)
        async with asyncio.timeout(10):
            head = await self._reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


def make_tls(pki: Pki, metrics: Metrics | None = None) -> ServerTls:
    return ServerTls(PemFiles(pki.certificate, pki.key), metrics or Metrics())


@pytest.mark.parametrize("change", ["renew", "renew_rsa"])
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_new_files_are_served_without_dropping_an_open_connection(
    pki: Pki, change: str, name: str
) -> None:
    metrics = Metrics()
    tls = make_tls(pki, metrics)
    server = WebhookServer(make_serving(), tls, Listen(host="127.0.0.1", port=0, grace=0))
    await server.start()
    try:
        old = await Connection.open(server, pki.client_context(), name)
        await old.ask()
        certificate: x509.Certificate = getattr(pki, change)()
        assert tls.reload() is True
        await old.ask()
        new = await Connection.open(server, pki.client_context(), name)
        await new.ask()
        assert new.serial == certificate.serial_number != old.serial
        await old.ask()
        old.close()
        new.close()
    finally:
        await server.stop()
    assert sample(metrics, "sluice_tls_reloads_total", result="Success") == 1
    assert (
        sample(metrics, "sluice_certificate_expiry_timestamp_seconds")
        == certificate.not_valid_after_utc.timestamp()
    )


async def test_the_old_key_type_is_gone_after_a_reload(pki: Pki) -> None:
    """A client that can only do ECDSA must not be shown the old ECDSA certificate."""
    tls = make_tls(pki)
    server = WebhookServer(make_serving(), tls, Listen(host="127.0.0.1", port=0, grace=0))
    await server.start()
    try:
        pki.renew_rsa()
        assert tls.reload() is True
        context = pki.client_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await Connection.open(server, context)
    finally:
        await server.stop()


def _mismatch(pki: Pki, directory: Path) -> None:
    other = make_pki(directory)
    pki.key.write_bytes(other.key.read_bytes())


def _no_pem(pki: Pki, _: Path) -> None:
    pki.certificate.write_bytes(b"no certificate")


def _half(pki: Pki, _: Path) -> None:
    pki.certificate.write_bytes(pki.certificate.read_bytes()[:200])


def _expired(pki: Pki, _: Path) -> None:
    pki.renew(datetime.now(UTC) - timedelta(days=500))


def _gone(pki: Pki, _: Path) -> None:
    pki.certificate.unlink()


def _encrypted(pki: Pki, _: Path) -> None:
    key = load_pem_private_key(pki.key.read_bytes(), None)
    protection = BestAvailableEncryption(b"secret")
    pki.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))


@pytest.mark.parametrize("spoil", [_mismatch, _no_pem, _half, _expired, _gone, _encrypted])
async def test_a_broken_pair_keeps_the_old_one_and_is_told_once(
    pki: Pki,
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
    spoil: object,
) -> None:
    assert callable(spoil)
    metrics = Metrics()
    tls = make_tls(pki, metrics)
    server = WebhookServer(make_serving(), tls, Listen(host="127.0.0.1", port=0, grace=0))
    await server.start()
    try:
        before = await Connection.open(server, pki.client_context())
        spoil(pki, tmp_path_factory.mktemp("other"))
        assert [tls.reload() for _ in range(3)] == [False, False, False]
        after = await Connection.open(server, pki.client_context())
        await after.ask()
        assert after.serial == before.serial
        before.close()
        after.close()
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 1
        assert "the old one stays" in errors[0].getMessage()
        assert "secret" not in caplog.text
        assert sample(metrics, "sluice_tls_reloads_total", result="Failure") == 1
        certificate = pki.renew()
        assert tls.reload() is True
        healed = await Connection.open(server, pki.client_context())
        assert healed.serial == certificate.serial_number
        healed.close()
    finally:
        await server.stop()


def test_unchanged_files_are_not_a_reload(pki: Pki) -> None:
    metrics = Metrics()
    tls = make_tls(pki, metrics)
    os.utime(pki.certificate)
    assert tls.reload() is False
    assert sample(metrics, "sluice_tls_reloads_total", result="Success") == 0


@pytest.mark.parametrize("spoil", [_mismatch, _no_pem, _half, _gone, _encrypted])
def test_a_server_does_not_start_with_a_broken_pair(
    pki: Pki, tmp_path_factory: pytest.TempPathFactory, spoil: object
) -> None:
    assert callable(spoil)
    spoil(pki, tmp_path_factory.mktemp("other"))
    with pytest.raises(TlsError, match=r"tls\.(crt|key)"):
        make_tls(pki)


def test_an_expired_certificate_is_better_than_none_at_start(
    pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    pki.renew(datetime.now(UTC) - timedelta(days=500))
    make_tls(pki)
    assert "which expired at" in caplog.text


async def test_the_watch_sees_the_symlink_swap_of_a_mounted_secret(tmp_path: Path) -> None:
    first, second, mount = tmp_path / "..1", tmp_path / "..2", tmp_path / "mount"
    for directory in (first, second, mount):
        directory.mkdir()
    pki = make_pki(first)
    renewed = Pki(pki.authority, second).renew()
    data = mount / "..data"
    data.symlink_to(first)
    for name in ("tls.crt", "tls.key"):
        (mount / name).symlink_to(Path("..data") / name)
    metrics = Metrics()
    files = PemFiles(mount / "tls.crt", mount / "tls.key", interval_seconds=0.01)
    tls = ServerTls(files, metrics)
    watch = asyncio.create_task(tls.watch())
    (mount / "..new").symlink_to(second)
    (mount / "..new").replace(data)
    await until(lambda: sample(metrics, "sluice_tls_reloads_total", result="Success") > 0)
    watch.cancel()
    assert (
        sample(metrics, "sluice_certificate_expiry_timestamp_seconds")
        == renewed.not_valid_after_utc.timestamp()
    )
