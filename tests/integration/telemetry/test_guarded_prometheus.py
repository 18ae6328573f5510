# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus behind TLS, passwords, client certificates, and a proxy that wants a token.

Whoever is not trusted is said so; what is known then grows old, and nothing else happens.
"""

import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reconciler.telemetry.access import HttpAccess
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.monitoring import PrometheusServer, WebConfig
from tests.integration.telemetry.watching import LIMITS, watching
from tests.support.certificates import Pki, make_pki
from tests.support.waiting import until

_SECONDS = 20.0
_PASSWORD = "correct horse"
_HASH = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
"""bcrypt of it, the only form that Prometheus takes."""


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return make_pki(tmp_path / "pki")


@pytest.fixture(autouse=True)
def _files_are_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.telemetry.http._RENEW_SECONDS", 0.0)


@contextmanager
def _prometheus(
    monitoring: Mapping[str, Path], pki: Pki, tls: Mapping[str, str] | None = None, **more: Any
) -> Iterator[PrometheusServer]:
    """Start one behind TLS that scrapes a card which is half busy."""
    served = {"cert_file": str(pki.certificate), "key_file": str(pki.key), **(tls or {})}
    client = pki.client_context()
    client.load_cert_chain(*pki.client_pair())
    config = WebConfig({"tls_server_config": served, **more}, client, has_users=bool(more))
    with (
        PrometheusServer(monitoring["prometheus"], web=config) as server,
        DcgmExporter("node-a", [Card("GPU-0", busy=0.5)]) as exporter,
    ):
        server.set_targets([exporter.address])
        yield server


async def test_an_authority_that_is_exchanged_for_a_wrong_one_makes_telemetry_old_and_no_more(
    monitoring: Mapping[str, Path], pki: Pki, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca, wrong = tmp_path / "ca.crt", make_pki(tmp_path / "wrong").ca
    ca.write_bytes(pki.ca.read_bytes())
    with _prometheus(monitoring, pki) as server, caplog.at_level(logging.WARNING):
        async with watching(server.url, access=HttpAccess(ca_file=str(ca))) as watched:
            await until(lambda: watched.busy() == 0.5, _SECONDS)
            ca.write_bytes(wrong.read_bytes())
            changed = time.monotonic()
            await until(lambda: watched.busy() is None, _SECONDS)
            assert time.monotonic() - changed < LIMITS.max_age_seconds + LIMITS.skew_seconds + 5
            assert watched.store.node("node-a").load() is None
            address = server.url.removeprefix("https://")
            assert f"the certificate of {address} is not trusted: " in caplog.text
            ca.write_bytes(pki.ca.read_bytes())
            # At once: after failures the sampler itself waits for longer and longer.
            assert await watched.look() is None
            assert watched.busy() == 0.5


async def test_a_password_is_demanded_and_a_wrong_one_is_said(
    monitoring: Mapping[str, Path], pki: Pki, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    password = tmp_path / "password"
    password.write_text("wrong\n", encoding="utf-8")
    access = HttpAccess(ca_file=str(pki.ca), username="sluice", password_file=str(password))
    users = {"sluice": _HASH}
    with (
        _prometheus(monitoring, pki, basic_auth_users=users) as server,
        caplog.at_level(logging.WARNING),
    ):
        async with watching(server.url, access=access) as watched:
            await until(lambda: watched.sampler.looks["Failure"] > 0, _SECONDS)
            assert "status 401: Unauthorized" in caplog.text
            password.write_text(_PASSWORD, encoding="utf-8")
            await until(lambda: watched.busy() == 0.5, _SECONDS)


async def test_a_client_certificate_is_demanded_and_its_lack_is_said(
    monitoring: Mapping[str, Path], pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = map(str, pki.client_pair())
    bare = HttpAccess(ca_file=str(pki.ca))
    own = HttpAccess(ca_file=str(pki.ca), cert_file=certificate, key_file=key)
    demand = {
        "client_auth_type": "RequireAndVerifyClientCert",
        "client_ca_file": str(pki.ca),
    }
    with _prometheus(monitoring, pki, demand) as server, caplog.at_level(logging.WARNING):
        async with watching(server.url, access=bare) as watched:
            await until(lambda: watched.sampler.looks["Failure"] > 0, _SECONDS)
            assert "certificate required" in caplog.text
        async with watching(server.url, access=own) as watched:
            await until(lambda: watched.busy() == 0.5, _SECONDS)


class _Proxy:
    """Forwards to a Prometheus who shows the token, and notes the tenants that were named."""

    def __init__(self, url: str, token: str) -> None:
        self.token = token
        self.tenants: set[str | None] = set()
        self._url = url

    async def forward(self, request: web.Request) -> web.Response:
        """Answer what Prometheus answers, or 401."""
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401, text="who are you?")
        self.tenants.add(request.headers.get("X-Scope-OrgID"))
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self._url}{request.path}", data=await request.post()) as answer,
        ):
            return web.Response(
                status=answer.status,
                body=await answer.read(),
                content_type="application/json",
            )


@asynccontextmanager
async def _proxied(proxy: _Proxy, pki: Pki) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/api/v1/query", proxy.forward)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=pki.server_context())
    try:
        yield str(server.make_url("/"))
    finally:
        await server.close()


async def test_a_proxy_that_wants_a_token_sees_it_and_the_tenant_and_a_rotated_one_too(
    monitoring: Mapping[str, Path], pki: Pki, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n", encoding="utf-8")
    access = HttpAccess(token_file=str(token), ca_file=str(pki.ca), tenant="gpu-team")
    card = Card("GPU-0", busy=0.5)
    with (
        PrometheusServer(monitoring["prometheus"]) as server,
        DcgmExporter("node-a", [card]) as exporter,
        caplog.at_level(logging.WARNING),
    ):
        server.set_targets([exporter.address])
        proxy = _Proxy(server.url, "first")
        async with _proxied(proxy, pki) as url, watching(url, access=access) as watched:
            await until(lambda: watched.busy() == 0.5, _SECONDS)
            proxy.token = "second"
            card.busy = 0.75
            await until(lambda: watched.sampler.looks["Failure"] > 0, _SECONDS)
            assert "status 401: who are you?" in caplog.text
            token.write_text("second\n", encoding="utf-8")
            await until(lambda: watched.busy() == 0.75, _SECONDS)
    assert proxy.tenants == {"gpu-team"}
