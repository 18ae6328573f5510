# SPDX-License-Identifier: Apache-2.0
"""Exporters behind TLS that demand a token, a password or a certificate: a real server each time.

Whoever is not trusted gives nothing, and is told no secret.
"""

import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.endpoints import Endpoint
from reconciler.telemetry.http import Http, HttpLimits
from reconciler.telemetry.scrape import Scrape, ScrapeSettings
from reconciler.telemetry.source import SourceError
from tests.controlplane.dcgm import Card, DcgmExporter, Guard
from tests.support.certificates import Pki, make_pki
from tests.support.telemetry import Clock, Taken

_LIMITS = HttpLimits(seconds=5.0, connections=4)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return make_pki(tmp_path / "pki")


def _exporter(guard: Guard | None) -> DcgmExporter:
    return DcgmExporter("node-a", [Card("GPU-0", busy=0.5)], guard=guard)


@asynccontextmanager
async def _scrape(exporter: DcgmExporter, access: HttpAccess) -> AsyncIterator[Scrape]:
    endpoint = Endpoint("node-a", f"https://{exporter.address}/metrics")
    async with Http(access, _LIMITS) as http:
        yield Scrape([endpoint], http, ScrapeSettings(limits=_LIMITS), Clock())


async def _refusal(exporter: DcgmExporter, access: HttpAccess) -> str:
    async with _scrape(exporter, access) as source:
        with pytest.raises(SourceError) as caught:
            await source.read({"node-a"}, Taken())
    return str(caught.value)


async def _count(source: Scrape) -> int:
    taken = Taken()
    await source.read({"node-a"}, taken)
    return len({sample.subject.uuid for sample in taken.samples})


async def test_an_exporter_behind_tls_and_a_token_is_read(pki: Pki, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n", encoding="utf-8")
    access = HttpAccess(token_file=str(token), ca_file=str(pki.ca))
    with _exporter(Guard(pki.server_context(), "Bearer first")) as exporter:
        async with _scrape(exporter, access) as source:
            assert await _count(source) == 1


async def test_a_rotated_token_is_read_again_as_soon_as_the_old_one_is_refused(
    pki: Pki, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first", encoding="utf-8")
    guard = Guard(pki.server_context(), "Bearer first")
    access = HttpAccess(token_file=str(token), ca_file=str(pki.ca))
    with _exporter(guard) as exporter:
        async with _scrape(exporter, access) as source:
            assert await _count(source) == 1
            token.write_text("second", encoding="utf-8")
            guard.authorization = "Bearer second"
            with pytest.raises(SourceError, match="node-a: status 401: Unauthorized"):
                await source.read({"node-a"}, Taken())
            assert await _count(source) == 1


async def test_a_wrong_token_is_told_with_the_exporter_s_own_words(
    pki: Pki, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("hunter2", encoding="utf-8")
    access = HttpAccess(token_file=str(token), ca_file=str(pki.ca))
    with _exporter(Guard(pki.server_context(), "Bearer other")) as exporter:
        told = await _refusal(exporter, access)
    assert told == "exporters that gave nothing: node-a: status 401: Unauthorized"


async def test_an_exporter_of_another_authority_is_not_told_the_token(
    pki: Pki, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("hunter2", encoding="utf-8")
    other = make_pki(tmp_path / "other")
    access = HttpAccess(token_file=str(token), ca_file=str(other.ca))
    with _exporter(Guard(pki.server_context())) as exporter:
        told = await _refusal(exporter, access)
        assert exporter.scrapes == 0
    assert f"the certificate of {exporter.address} is not trusted: " in told
    assert "hunter2" not in told


async def test_a_certificate_for_a_name_is_taken_only_under_that_name(pki: Pki) -> None:
    name = "dcgm-exporter.gpu-operator.svc"
    pki.renew(names=(name,))
    with _exporter(Guard(pki.server_context())) as exporter:
        by_name = HttpAccess(ca_file=str(pki.ca), server_name=name)
        async with _scrape(exporter, by_name) as source:
            assert await _count(source) == 1
        told = await _refusal(exporter, HttpAccess(ca_file=str(pki.ca)))
        assert "not trusted: IP address mismatch" in told
        by_other = HttpAccess(ca_file=str(pki.ca), server_name="dcgm-exporter.team-a.svc")
        assert "not trusted: Hostname mismatch" in await _refusal(exporter, by_other)


async def test_a_ca_that_is_exchanged_is_used_without_a_restart(
    pki: Pki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.telemetry.http._RENEW_SECONDS", 0.0)
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(make_pki(tmp_path / "other").ca.read_bytes())
    with _exporter(Guard(pki.server_context())) as exporter:
        async with _scrape(exporter, HttpAccess(ca_file=str(trusted))) as source:
            with pytest.raises(SourceError, match="is not trusted"):
                await source.read({"node-a"}, Taken())
            trusted.write_bytes(pki.ca.read_bytes())
            assert await _count(source) == 1


async def test_a_user_s_name_and_password_are_taken_from_a_file(pki: Pki, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("pä:ss\n", encoding="utf-8")
    proof = f"Basic {b64encode('sluice:pä:ss'.encode()).decode()}"
    access = HttpAccess(username="sluice", password_file=str(password), ca_file=str(pki.ca))
    with _exporter(Guard(pki.server_context(), proof)) as exporter:
        async with _scrape(exporter, access) as source:
            assert await _count(source) == 1


async def test_a_client_certificate_is_shown_where_one_is_demanded(pki: Pki) -> None:
    context = pki.server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(pki.ca)
    certificate, key = map(str, pki.client_pair())
    own = HttpAccess(ca_file=str(pki.ca), cert_file=certificate, key_file=key)
    with _exporter(Guard(context)) as exporter:
        async with _scrape(exporter, own) as source:
            assert await _count(source) == 1
        told = await _refusal(exporter, HttpAccess(ca_file=str(pki.ca)))
    assert told.startswith("exporters that gave nothing: node-a: ")


async def test_a_page_in_plain_http_is_said_to_be_no_tls(pki: Pki) -> None:
    with _exporter(None) as exporter:
        told = await _refusal(exporter, HttpAccess(ca_file=str(pki.ca)))
    assert f"node-a: no TLS with {exporter.address}: " in told
