# SPDX-License-Identifier: Apache-2.0
"""What cannot be meant on the command line is said before anything is started or rendered."""

import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import sluice
from reconciler.cli.commands.groups import GROUPS, LateGroup
from reconciler.cli.terminal import BAD_INPUT

_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: me, user: {{token: none}}}}]
"""

SLUICE = Path(__file__).parents[2] / "sluice.py"


@pytest.mark.parametrize(
    "option",
    [
        *(("--port", port) for port in ("-1", "65536", "99999", "x")),
        *(("--grace", seconds) for seconds in ("-1", "nan", "inf", "1e9")),
        ("--log-level", "loud"),
        *(("--certificates-secret", name) for name in ("a/b/c", "Bad_Name", "/tls", "gpu/", "")),
    ],
)
@pytest.mark.parametrize("command", ["serve", "run"])
def test_a_server_is_not_started_with_what_makes_no_sense(
    command: str, option: tuple[str, str]
) -> None:
    result = CliRunner().invoke(sluice.main, [command, "--policies", ".", *option])
    assert result.exit_code == BAD_INPUT
    assert f"Invalid value for '{option[0]}'" in result.output


@pytest.mark.parametrize(
    "option",
    [
        *((name, "Bad NS") for name in ("--namespace", "--name", "--exclude", "--only")),
        ("--image", " "),
        ("--replicas", "0"),
        *(
            ("--url", url)
            for url in ("ftp://a", "nonsense", "http://a", "https://", "https://a:b", "https://a?b")
        ),
    ],
)
def test_nothing_is_rendered_that_the_api_server_would_refuse(option: tuple[str, str]) -> None:
    result = CliRunner().invoke(sluice.main, ["manifests", *option])
    assert result.exit_code == BAD_INPUT
    assert result.output.startswith(f"error: {option[0]}")


def test_every_good_option_is_rendered() -> None:
    options = ["--namespace", "gpu", "--name", "gpu-1", "--url", "https://10.0.0.1:9443/a"]
    result = CliRunner().invoke(sluice.main, ["manifests", *options, "--only", "team-a"])
    assert result.exit_code == 0
    assert "https://10.0.0.1:9443/a/validate" in result.output


@pytest.mark.parametrize("command", ["serve", "run", "reconcile", "extender"])
@pytest.mark.parametrize("option", ["--lease-namespace", "--lease-name"])
@pytest.mark.parametrize("name", ["a/b", "Bad Name", ".."])
def test_no_process_is_started_for_a_lease_that_cannot_be(
    command: str, option: str, name: str
) -> None:
    result = CliRunner().invoke(sluice.main, [command, option, name])
    assert result.exit_code == BAD_INPUT
    assert f"{name!r} is no name" in result.output


def test_a_secret_is_not_looked_for_where_there_is_no_cluster(tmp_path: Path) -> None:
    facts = tmp_path / "facts.yaml"
    facts.write_text("{}", encoding="utf-8")
    options = ["--facts", str(facts), "--certificates-secret", "sluice/sluice-tls"]
    done = subprocess.run(
        [sys.executable, str(SLUICE), "serve", "--policies", str(tmp_path), *options],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == BAD_INPUT
    assert done.stderr.startswith("sluice: --certificates-secret is in a cluster")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", [("--port", "65536"), ("--log-level", "loud")])
def test_a_reconciler_is_not_started_with_what_makes_no_sense(option: tuple[str, str]) -> None:
    result = CliRunner().invoke(sluice.main, ["reconcile", "--policies", ".", *option])
    assert result.exit_code == BAD_INPUT
    assert f"Invalid value for '{option[0]}'" in result.output


def test_a_reconciler_without_access_to_a_cluster_says_so_in_one_line(tmp_path: Path) -> None:
    missing = str(tmp_path / "kubeconfig")
    done = subprocess.run(
        [sys.executable, str(SLUICE), "reconcile", "--policies", ".", "--kubeconfig", missing],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == BAD_INPUT
    assert done.stderr.startswith("sluice: ")
    assert missing in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_has_every_command_in_one_group() -> None:
    context = click.Context(sluice.main)
    groups = dict(LateGroup.groups(sluice.main, context))
    named = [name for names in GROUPS.values() for name in names]
    assert len(named) == len(set(named))
    assert groups == GROUPS
    shown = CliRunner().invoke(sluice.main, ["--help"]).output
    assert all(f"{heading}:\n" in shown for heading in GROUPS)
    assert all(f"\n  {name} " in shown for name in named)


def test_a_port_that_is_taken_ends_the_reconciler_with_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(port=port), encoding="utf-8")
        (tmp_path / "policies").mkdir()
        arguments = (
            *("--policies", str(tmp_path / "policies"), "--kubeconfig", str(kubeconfig)),
            *("--host", "127.0.0.1", "--port", str(port), "--log-level", "error"),
        )
        done = subprocess.run(
            [sys.executable, str(SLUICE), "reconcile", *arguments],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
    assert done.returncode == BAD_INPUT
    assert done.stderr.splitlines()[-1].startswith("sluice: cannot listen: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("lnt",), "lint"),
        (("Manifest",), "manifests"),
        (("manifests", "--processes", "apar"), "apart"),
        (("run", "--telemetry-source", "anotations"), "Annotations"),
        (("serve", "--polices", "."), "--policies"),
    ],
)
def test_whoever_mistypes_is_told_what_was_probably_meant(
    arguments: tuple[str, ...], meant: str
) -> None:
    result = CliRunner().invoke(sluice.main, arguments)
    assert result.exit_code == BAD_INPUT
    assert f"Did you mean {meant!r}?" in result.output


@pytest.mark.parametrize("arguments", [("zzz",), ("manifests", "--processes", "zzz")])
def test_nothing_is_suggested_for_what_is_like_nothing(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(sluice.main, arguments)
    assert result.exit_code == BAD_INPUT
    assert "'zzz'" in result.output
    assert "Did you mean" not in result.output


@pytest.mark.parametrize("command", ["serve", "extender"])
def test_a_server_without_certificates_says_how_to_make_them(command: str, tmp_path: Path) -> None:
    facts, certificates = SLUICE.parent / "docs/examples/facts.yaml", tmp_path / "my certificates"
    cluster = tmp_path / "kubeconfig"
    cluster.write_text(_KUBECONFIG.format(port=1), encoding="utf-8")
    options: dict[str, tuple[str | Path, ...]] = {
        "serve": ("--policies", tmp_path, "--facts", facts),
        "extender": ("--kubeconfig", cluster),
    }
    done = subprocess.run(
        [sys.executable, SLUICE, command, *options[command], "--certificates", certificates],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == BAD_INPUT
    assert done.stderr == (
        f"sluice: {certificates}/tls.crt: No such file or directory; "
        f"`sluice certs --dir '{certificates}'` makes certificates\n"
    )
