# SPDX-License-Identifier: Apache-2.0
"""Credentials and CAs as variables declare them: what is wrong is told at the start, by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from reconciler.kube.client import Client
from reconciler.runtime.metrics import Metrics
from reconciler.runtime.starting import StartError
from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.config import config_from_environment
from reconciler.telemetry.starting import made
from tests.support.certificates import make_pki

_SCRAPE = {"SLUICE_TELEMETRY_SOURCE": "Scrape", "SLUICE_EXPORTER_SCHEME": "https"}
_ASKED = {"PROMETHEUS_URL": "https://prometheus:9090"}


def test_exporters_behind_tls_are_called_by_https_with_what_is_declared() -> None:
    config = config_from_environment(
        _SCRAPE
        | {
            "SLUICE_EXPORTER_TOKEN_FILE": "/token",
            "SLUICE_EXPORTER_CA_FILE": "/ca.crt",
            "SLUICE_EXPORTER_SERVER_NAME": "dcgm-exporter.gpu-operator.svc",
        }
    )
    assert all(pods.tls for pods in config.pods)
    assert config.scrape_access == HttpAccess(
        token_file="/token", ca_file="/ca.crt", server_name="dcgm-exporter.gpu-operator.svc"
    )


def test_exporters_are_called_by_plain_http_unless_told_otherwise() -> None:
    assert not any(pods.tls for pods in config_from_environment({}).pods)


@pytest.mark.parametrize("prefix", ["PROMETHEUS", "SLUICE_EXPORTER"])
def test_a_password_and_a_client_certificate_can_be_declared(prefix: str) -> None:
    given = {
        f"{prefix}_{name}": f"/{name}"
        for name in ("USERNAME", "PASSWORD_FILE", "CERT_FILE", "KEY_FILE")
    }
    config = config_from_environment((_SCRAPE if prefix != "PROMETHEUS" else {}) | _ASKED | given)
    access = config.scrape_access
    if prefix == "PROMETHEUS":
        assert config.prometheus is not None
        access = config.prometheus.access
    assert access == HttpAccess(
        username="/USERNAME",
        password_file="/PASSWORD_FILE",
        cert_file="/CERT_FILE",
        key_file="/KEY_FILE",
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"SLUICE_EXPORTER_SCHEME": "ftp"}, "SLUICE_EXPORTER_SCHEME is 'ftp'; it can be one of"),
        ({"SLUICE_EXPORTER_CA_FILE": "/a"}, "SLUICE_EXPORTER_CA_FILE is for https"),
        ({"SLUICE_EXPORTER_SERVER_NAME": "a"}, "SLUICE_EXPORTER_SERVER_NAME is for https"),
        ({"SLUICE_EXPORTER_TOKEN_FILE": "/a"}, "TOKEN_FILE needs SLUICE_EXPORTER_SCHEME=https"),
        (_SCRAPE | {"SLUICE_EXPORTER_SERVER_NAME": "a b"}, "'a b', which is no name of a host"),
        (_SCRAPE | {"SLUICE_EXPORTER_USERNAME": "a"}, "needs SLUICE_EXPORTER_PASSWORD_FILE"),
        (_SCRAPE | {"SLUICE_EXPORTER_PASSWORD_FILE": "a"}, "needs SLUICE_EXPORTER_USERNAME"),
        (_SCRAPE | {"SLUICE_EXPORTER_KEY_FILE": "a"}, "needs SLUICE_EXPORTER_CERT_FILE"),
        (_ASKED | {"PROMETHEUS_CERT_FILE": "a"}, "needs PROMETHEUS_KEY_FILE"),
        (
            {"PROMETHEUS_URL": "http://prometheus:9090", "PROMETHEUS_CA_FILE": "/ca"},
            "PROMETHEUS_CA_FILE is for https",
        ),
        (
            {"SLUICE_TELEMETRY_SOURCE": "Prometheus", "PROMETHEUS_CA_FILE": "/ca"},
            "needs PROMETHEUS_URL",
        ),
        (
            _ASKED
            | {"PROMETHEUS_TOKEN_FILE": "t"}
            | {"PROMETHEUS_USERNAME": "u", "PROMETHEUS_PASSWORD_FILE": "p"},
            "PROMETHEUS_TOKEN_FILE and PROMETHEUS_USERNAME exclude each other",
        ),
        (
            _ASKED | {"PROMETHEUS_USERNAME": "a:b", "PROMETHEUS_PASSWORD_FILE": "p"},
            "PROMETHEUS_USERNAME is 'a:b'; it can hold no colon",
        ),
        (_ASKED | {"PROMETHEUS_TENANT": "a\nb"}, "PROMETHEUS_TENANT is 'a"),
    ],
)
def test_what_contradicts_itself_is_refused_by_the_name_of_the_variable(
    given: Mapping[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        config_from_environment(given)


def test_where_no_address_is_given_nothing_is_called_by_plain_http() -> None:
    given = {"PROMETHEUS_CA_FILE": "/ca", "PROMETHEUS_SERVER_NAME": "prometheus.test"}
    assert config_from_environment(_SCRAPE | given).prometheus is None


@pytest.mark.parametrize("given", [{"token": "a", "username": "b"}, {"cert_file": "a"}])
def test_access_by_two_kinds_of_credentials_or_half_a_pair_is_none(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"exclude each other|need each other"):
        HttpAccess(**given)


def _start(environ: Mapping[str, str]) -> None:
    # Nothing is called before it runs.
    client = cast("Client", None)
    assert made(config_from_environment(environ), client, Metrics()) is not None


def test_files_that_can_be_used_let_a_process_start(tmp_path: Path) -> None:
    pki = make_pki(tmp_path)
    (tmp_path / "token").write_text("abc\n", encoding="utf-8")
    files = {"TOKEN_FILE": tmp_path / "token", "CA_FILE": pki.ca}
    files |= {"CERT_FILE": pki.certificate, "KEY_FILE": pki.key}
    for prefix, more in (("SLUICE_EXPORTER", _SCRAPE), ("PROMETHEUS", _ASKED)):
        _start(more | {f"{prefix}_{name}": str(path) for name, path in files.items()})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("TOKEN_FILE", None, "No such file or directory"),
        ("TOKEN_FILE", b" \n", "is empty"),
        ("TOKEN_FILE", b"hunter2\nhunter3", "holds no bearer token"),
        ("TOKEN_FILE", b"hunter2\xff", "holds no text"),
        ("CA_FILE", None, "No such file or directory"),
        ("CA_FILE", b"hunter2", "holds no certificate in PEM"),
        ("CERT_FILE", b"hunter2", "are no certificate with its unencrypted key"),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_start_and_is_not_shown(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    given = {f"PROMETHEUS_{name}": str(path)}
    if name == "CERT_FILE":
        given["PROMETHEUS_KEY_FILE"] = str(path)
    with pytest.raises(StartError) as caught:
        _start(_ASKED | given)
    assert str(caught.value).startswith(f"PROMETHEUS_{name}: {path}")
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_files_of_a_source_that_is_not_read_stop_nothing() -> None:
    _start(_ASKED | {"SLUICE_EXPORTER_CA_FILE": "/nowhere", "SLUICE_EXPORTER_SCHEME": "https"})


@pytest.mark.parametrize(
    ("given", "is_warned"),
    [
        ({"SLUICE_TELEMETRY_SOURCE": "Scrape"}, True),
        ({"SLUICE_TELEMETRY_SOURCE": "Scrape", "SLUICE_EXPORTER_NAMESPACE": "gpu"}, False),
        (_SCRAPE, False),
        (_ASKED, False),
    ],
)
def test_a_start_warns_where_every_pod_could_pass_for_an_exporter(
    given: Mapping[str, str], caplog: pytest.LogCaptureFixture, *, is_warned: bool
) -> None:
    _start(given)
    assert ("set SLUICE_EXPORTER_NAMESPACE" in caplog.text) is is_warned
