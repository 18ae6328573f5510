# SPDX-License-Identifier: Apache-2.0
"""Kubeconfigs and service accounts."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from certs.files import CertificateFiles, ensure
from reconciler.kube import access
from reconciler.kube.access import InClusterAccess, KubeconfigAccess, find_access
from reconciler.kube.client import Client
from reconciler.kube.errors import AccessError, UnavailableError


def kubeconfig(
    directory: Path, cluster: dict[str, Any], user: dict[str, Any], name: str = "kubeconfig"
) -> str:
    path = directory / name
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


@dataclass(frozen=True, slots=True)
class Plugin:
    user: dict[str, Any]
    runs: Path

    def count_runs(self) -> int:
        return self.runs.read_text().count("x")


def credential_plugin(directory: Path, first: str = "true") -> Plugin:
    """A plugin whose token is `t`, and which runs a shell command before it says so."""
    runs, path = directory / "runs", directory / "plugin"
    path.write_text(
        f"#!/bin/sh\necho x >> {runs}\n{first}\n"
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": "t", "expirationTimestamp": "2999-01-01T00:00:00Z"}}\'\n'
    )
    path.chmod(0o755)
    command = {"command": str(path), "apiVersion": "client.authentication.k8s.io/v1"}
    return Plugin({"exec": command}, runs)


HTTP = {"server": "http://127.0.0.1:1/base/"}


@pytest.fixture
def pki(tmp_path: Path) -> CertificateFiles:
    return ensure(tmp_path / "pki", ("127.0.0.1",), datetime.now(UTC))


@pytest.fixture
async def https_port(pki: CertificateFiles) -> AsyncIterator[int]:
    async def version(request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": request.headers.get("Authorization", "nobody")})

    app = web.Application()
    app.router.add_get("/version", version)
    runner = web.AppRunner(app)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki.certificate, pki.key)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield int(runner.addresses[0][1])
    await runner.cleanup()


async def test_a_token_in_a_kubeconfig_is_sent_as_bearer(tmp_path: Path) -> None:
    found = await KubeconfigAccess(kubeconfig(tmp_path, HTTP, {"token": "abc"})).load()
    assert found.authorization == "Bearer abc"
    assert found.server == "http://127.0.0.1:1/base"
    assert found.tls is None


async def test_a_token_file_is_read_anew_and_its_newline_dropped(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    source = KubeconfigAccess(kubeconfig(tmp_path, HTTP, {"tokenFile": str(token)}))
    assert (await source.load()).authorization == "Bearer one"
    token.write_text("two\n")
    assert (await source.load()).authorization == "Bearer two"


async def test_a_plugins_token_is_kept_until_it_expires_unless_renewed(tmp_path: Path) -> None:
    plugin = credential_plugin(tmp_path)
    source = KubeconfigAccess(kubeconfig(tmp_path, HTTP, plugin.user))
    assert (await source.load()).authorization == "Bearer t"
    await source.load()
    assert plugin.count_runs() == 1
    await source.load(renew=True)
    assert plugin.count_runs() == 2


async def test_a_slow_plugin_is_an_error_runs_once_and_is_heard_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    plugin = credential_plugin(tmp_path, f"cat {go} > /dev/null")
    monkeypatch.setattr(access, "_PLUGIN_SECONDS", 0.1)
    source = KubeconfigAccess(kubeconfig(tmp_path, HTTP, plugin.user))
    for _ in range(2):
        with pytest.raises(AccessError, match=r"no answer within 0\.1 s"):
            await source.load()
    monkeypatch.setattr(access, "_PLUGIN_SECONDS", 30.0)
    await asyncio.to_thread(go.write_text, "go")
    assert (await source.load()).authorization == "Bearer t"
    assert plugin.count_runs() == 1


async def test_clients_that_read_one_kubeconfig_at_once_share_the_reading(tmp_path: Path) -> None:
    plugin = credential_plugin(tmp_path)
    source = KubeconfigAccess(kubeconfig(tmp_path, {"server": "http://127.0.0.1:1"}, plugin.user))
    loaded = await asyncio.gather(*(source.load() for _ in range(3)))
    assert [found.authorization for found in loaded] == ["Bearer t"] * 3
    assert plugin.count_runs() == 1


async def test_a_kubeconfig_with_files_reaches_a_server_over_tls(
    tmp_path: Path, pki: CertificateFiles, https_port: int
) -> None:
    cluster = {
        "server": f"https://127.0.0.1:{https_port}",
        "certificate-authority": str(pki.ca_certificate),
    }
    async with Client(KubeconfigAccess(kubeconfig(tmp_path, cluster, {"token": "abc"}))) as client:
        assert await client.server_version() == "Bearer abc"


async def test_a_server_that_the_authority_did_not_sign_is_not_trusted(
    tmp_path: Path, https_port: int
) -> None:
    other = ensure(tmp_path / "other", ("127.0.0.1",), datetime.now(UTC))
    cluster = {
        "server": f"https://127.0.0.1:{https_port}",
        "certificate-authority": str(other.ca_certificate),
    }
    async with Client(KubeconfigAccess(kubeconfig(tmp_path, cluster, {"token": "abc"}))) as client:
        with pytest.raises(UnavailableError, match="certificate verify failed"):
            await client.server_version()


async def test_a_tls_context_is_kept_until_its_files_change(
    tmp_path: Path, pki: CertificateFiles
) -> None:
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(pki.ca_certificate)}
    source = KubeconfigAccess(kubeconfig(tmp_path, cluster, {"token": "abc"}))
    first, second = await source.load(), await source.load()
    assert first.tls is second.tls
    pki.ca_certificate.write_bytes(pki.ca_certificate.read_bytes() * 2)
    assert (await source.load()).tls is not first.tls


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({}, {"token": "t"}, "not understood"),
        ({"insecure-skip-tls-verify": True}, {"token": "t"}, "not the address"),
        ({"server": ""}, {"token": "t"}, "not the address"),
        ({"server": "ftp://x"}, {"token": "t"}, "not the address"),
        ({"server": "https://x", "certificate-authority": "/none"}, {}, "/none"),
        ({"server": "https://x", "certificate-authority-data": "!"}, {}, "."),
        ({"server": "https://x"}, {"tokenFile": "/none"}, "/none"),
        (
            {"server": "https://x"},
            {"exec": {"command": "/none", "apiVersion": "v1"}},
            "No such file",
        ),
        ({"server": "https://x"}, {"exec": {"command": "false", "apiVersion": "v1"}}, "returned 1"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_an_error_naming_it(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    path = kubeconfig(tmp_path, cluster, user)
    with pytest.raises(AccessError, match=f"^kubeconfig {path}: .*{message}"):
        await KubeconfigAccess(path).load()


@pytest.mark.parametrize("content", ["", "[]", "{", "7", "kind: Config", "clusters: 7", "\x00"])
async def test_a_file_that_is_no_kubeconfig_is_an_error_naming_it(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(AccessError, match=f"^kubeconfig {path}: "):
        await KubeconfigAccess(str(path)).load()


async def test_a_missing_kubeconfig_or_context_is_an_error_naming_it(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=f"^kubeconfig {tmp_path}/none: no such file"):
        await KubeconfigAccess(f"{tmp_path}/none").load()
    path = kubeconfig(tmp_path, HTTP, {})
    with pytest.raises(AccessError, match="other"):
        await KubeconfigAccess(path, "other").load()


async def test_a_pods_service_account_is_read_anew(tmp_path: Path, pki: CertificateFiles) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "443"}
    (tmp_path / "ca.crt").write_bytes(pki.ca_certificate.read_bytes())
    (tmp_path / "token").write_text("one\n")
    source = InClusterAccess(environ, tmp_path)
    found = await source.load()
    assert (found.server, found.authorization) == ("https://[::1]:443", "Bearer one")
    (tmp_path / "token").write_text("two")
    renewed = await source.load()
    assert renewed.authorization == "Bearer two"
    assert renewed.tls is found.tls


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
async def test_an_incomplete_service_account_is_an_error(
    tmp_path: Path, pki: CertificateFiles, missing: str
) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    (tmp_path / "ca.crt").write_bytes(pki.ca_certificate.read_bytes())
    (tmp_path / "token").write_text("one")
    (tmp_path / missing).unlink()
    with pytest.raises(AccessError, match=f"^service account in {tmp_path}: "):
        await InClusterAccess(environ, tmp_path).load()


async def test_access_is_looked_for_in_a_known_order(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    path = kubeconfig(tmp_path, HTTP, {"token": "t"})
    home = {"HOME": str(tmp_path)}
    assert isinstance(find_access({**pod, **home}), InClusterAccess)
    assert (await find_access({**pod, "KUBECONFIG": path}).load()).server.startswith("http://127")
    assert (await find_access(pod, kubeconfig=path).load()).server.startswith("http://127")
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube", HTTP, {"token": "t"}, "config")
    assert (await find_access(home).load()).server.startswith("http://127")
