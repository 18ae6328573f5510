# SPDX-License-Identifier: Apache-2.0
"""Real TLS handshakes over loopback with what ensure() wrote."""

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.files import CertificateFiles, ensure
from certs.names import service_names

NAMES = service_names("sluice", "sluice")


@pytest.fixture
def serving(tmp_path: Path) -> CertificateFiles:
    # A handshake is judged by the machine's clock, so this must be the real time.
    return ensure(tmp_path / "pki", NAMES, datetime.now(UTC))


async def shake_hands(files: CertificateFiles, authority: Path, hostname: str) -> str:
    """Return the TLS version that a strict client agreed on with a server of these files."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(files.certificate, files.key)
    client_context = ssl.create_default_context(cafile=authority)
    client_context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0, ssl=server_context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_context, server_hostname=hostname
        )
        version = str(writer.get_extra_info("ssl_object").version())
        writer.close()
        await writer.wait_closed()
    return version


@pytest.mark.parametrize("name", NAMES)
async def test_a_strict_client_accepts_every_name(serving: CertificateFiles, name: str) -> None:
    assert await shake_hands(serving, serving.ca_certificate, name) == "TLSv1.3"


async def test_a_client_refuses_a_name_that_was_not_asked_for(serving: CertificateFiles) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'other\.example'"):
        await shake_hands(serving, serving.ca_certificate, "other.example")


async def test_a_client_of_another_authority_refuses(
    serving: CertificateFiles, tmp_path: Path
) -> None:
    stranger = ensure(tmp_path / "other", NAMES, datetime.now(UTC))
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        await shake_hands(serving, stranger.ca_certificate, "localhost")


async def test_a_renewed_leaf_is_accepted_by_who_holds_the_old_authority(
    serving: CertificateFiles,
) -> None:
    old_authority = serving.ca_certificate.read_bytes()
    renewed = ensure(serving.certificate.parent, (*NAMES, "10.9.8.7"), datetime.now(UTC))
    assert renewed.written == (renewed.key, renewed.certificate)
    serving.ca_certificate.write_bytes(old_authority)
    assert await shake_hands(renewed, serving.ca_certificate, "10.9.8.7") == "TLSv1.3"
