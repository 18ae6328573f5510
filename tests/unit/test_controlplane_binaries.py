# SPDX-License-Identifier: Apache-2.0
"""Where the control plane's binaries are looked for, and how they get into the cache.

A small script stands in for the Go command: what is tested is the order, not the compiler.
"""

import os
import shutil
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.controlplane import BuildError, find_binaries
from tests.controlplane.binaries import cache_directory
from tests.controlplane.programs import (
    CONTROL_PLANE,
    KUBERNETES,
    MODULES,
    MONITORING,
    PROGRAMS,
    PROMETHEUS,
    cache_key,
)

_NAMES = [program.name for program in PROGRAMS]

# Answers `go env GOVERSION` with $FAKE_VERSION. For `go build` it takes a line from the gate, a
# FIFO, if there is one, notes the package, and writes the file named after -o.
_GO = """#!/bin/sh
if [ "$1" = env ]; then echo "$FAKE_VERSION"; exit 0; fi
[ -z "$FAKE_GATE" ] || read -r _ < "$FAKE_GATE"
for last; do :; done
while [ "$1" != -o ]; do shift; done
echo "$last" >> "$FAKE_LOG"
case "$last" in
  $FAKE_BROKEN) echo "half a program" > "$2"; echo "it does not compile"; exit 1;;
esac
echo "built from $last" > "$2" && chmod +x "$2"
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment whose only Go is the script."""
    tools = tmp_path / "tools"
    tools.mkdir()
    _executable(tools / "go", _GO)
    return {
        "PATH": f"{tools}:/usr/bin:/bin",
        "SLUICE_CACHE": str(tmp_path / "cache"),
        "FAKE_VERSION": "go1.26.8",
        "FAKE_LOG": str(tmp_path / "log"),
        "FAKE_BROKEN": "nothing",
    }


def _executable(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _fill(directory: Path, names: list[str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        _executable(directory / name, f"{name} of {directory}")


def _built(environ: dict[str, str]) -> list[str]:
    log = Path(environ["FAKE_LOG"])
    return log.read_text(encoding="utf-8").split() if log.exists() else []


def _refuse(line: str) -> None:
    pytest.fail(f"nothing is to be built, but: {line}")


def test_assets_come_before_the_cache(environ: dict[str, str], tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    _fill(assets, ["kubectl", "etcd"])
    _fill(cache_directory(environ), _NAMES)

    found = find_binaries({**environ, "KUBEBUILDER_ASSETS": str(assets)}, _refuse)

    assert sorted(found) == sorted(_NAMES)
    assert {name for name in found if found[name].parent == assets} == {"kubectl", "etcd"}


def test_assets_that_are_no_directory_are_an_error(environ: dict[str, str], tmp_path: Path) -> None:
    environ["KUBEBUILDER_ASSETS"] = str(tmp_path / "missing")

    with pytest.raises(BuildError, match=r"KUBEBUILDER_ASSETS is .*missing, which is not a dir"):
        find_binaries(environ, _refuse)


def test_a_full_cache_needs_no_go(environ: dict[str, str]) -> None:
    _fill(cache_directory(environ), _NAMES)

    found = find_binaries({**environ, "PATH": "/nowhere"}, _refuse)

    assert set(found) == set(_NAMES)


def test_what_is_missing_is_built_into_the_cache_with_a_line_for_each(
    environ: dict[str, str],
) -> None:
    _fill(cache_directory(environ), ["etcd", "kwok", "kubectl"])
    lines: list[str] = []

    found = find_binaries(environ, lines.append)

    assert _built(environ) == [program.package for program in PROGRAMS[:3]]
    assert lines[0].startswith("building kube-apiserver (1/3), about 7 min on 2 cores, once, into ")
    assert [line.split(",")[0] for line in lines[1:]] == [
        "building kube-controller-manager (2/3)",
        "building kube-scheduler (3/3)",
    ]
    assert all(path.parent == cache_directory(environ) for path in found.values())
    assert find_binaries(environ, _refuse) == found


def test_a_file_that_cannot_be_run_is_not_taken(environ: dict[str, str]) -> None:
    _fill(cache_directory(environ), _NAMES)
    (cache_directory(environ) / "etcd").chmod(0o600)

    find_binaries(environ, lambda _: None)

    assert _built(environ) == ["go.etcd.io/etcd/server/v3"]


def test_a_missing_go_is_named_with_the_version_needed(environ: dict[str, str]) -> None:
    environ["PATH"] = "/nowhere"

    with pytest.raises(BuildError, match=r"Go 1\.26 or newer, and there is no `go` on PATH"):
        find_binaries(environ, _refuse)


def test_a_go_that_is_too_old_is_named_with_the_version_needed(environ: dict[str, str]) -> None:
    environ["FAKE_VERSION"] = "go1.22.1"

    with pytest.raises(BuildError, match=r"Go 1\.26 or newer; .*/go is go1\.22"):
        find_binaries(environ, _refuse)


def test_a_failing_build_shows_its_output_and_keeps_what_was_built_before(
    environ: dict[str, str],
) -> None:
    environ["FAKE_BROKEN"] = "*/kube-scheduler"

    with pytest.raises(BuildError, match=r"(?s)building kube-scheduler failed.*does not compile"):
        find_binaries(environ, lambda _: None)

    assert sorted(path.name for path in cache_directory(environ).iterdir()) == [
        "kube-apiserver",
        "kube-controller-manager",
    ]


def test_a_cache_that_cannot_be_made_is_an_error(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environ["SLUICE_CACHE"] = str(tmp_path / "file")

    with pytest.raises(BuildError, match="cache for the control plane's binaries cannot be made"):
        find_binaries(environ, _refuse)


def test_two_processes_build_only_once(environ: dict[str, str], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    environ["FAKE_GATE"] = str(gate)
    is_building, is_waiting = threading.Event(), threading.Event()

    def note(line: str) -> None:
        (is_waiting if line.startswith("another process") else is_building).set()

    builders = [
        threading.Thread(target=find_binaries, args=(environ, note), daemon=True) for _ in range(2)
    ]
    for builder in builders:
        builder.start()
    assert is_building.wait(10)
    assert is_waiting.wait(10)
    with gate.open("w", encoding="ascii") as opened:
        opened.write("go on\n" * len(PROGRAMS))
        opened.flush()
        for builder in builders:
            builder.join(10)

    assert not any(builder.is_alive() for builder in builders)
    assert _built(environ) == [program.package for program in PROGRAMS]


def test_monitoring_is_built_by_itself_into_a_folder_of_its_own(environ: dict[str, str]) -> None:
    lines: list[str] = []

    found = find_binaries(environ, lines.append, MONITORING)

    assert sorted(found) == ["prometheus", "promtool"]
    assert _built(environ) == [program.package for program in MONITORING.programs]
    assert cache_directory(environ, MONITORING).parent.name == "monitoring"
    assert cache_directory(environ, CONTROL_PLANE) == cache_directory(environ)
    assert PROMETHEUS.version.removeprefix("v") in cache_key(MONITORING.modules)
    assert "prometheus" not in cache_key()


def test_prometheus_is_built_without_the_discovery_of_clouds(environ: dict[str, str]) -> None:
    go = Path(environ["PATH"].split(":")[0]) / "go"
    go.write_text(
        go.read_text(encoding="utf-8").replace(
            "shift; done", 'echo "$1" >> "$FAKE_LOG"; shift; done'
        )
    )

    find_binaries(environ, lambda _: None, MONITORING)

    arguments = _built(environ)
    assert arguments[arguments.index("-tags") + 1] == "remove_all_sd"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLUICE_CACHE": "/own", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/a"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/a"}, "/xdg/sluice"),
        ({"SLUICE_CACHE": "", "HOME": "/home/a"}, "/home/a/.cache/sluice"),
    ],
)
def test_the_cache_follows_the_environment(variables: dict[str, str], expected: str) -> None:
    assert cache_directory(variables) == Path(expected) / "controlplane" / cache_key()


def test_the_key_names_the_versions_and_changes_with_any_pin(tmp_path: Path) -> None:
    copies = []
    for module in MODULES:
        copy = tmp_path / module.name
        shutil.copytree(module.directory, copy)
        copies.append(replace(module, directory=copy))
    same = cache_key(tuple(copies))

    with (tmp_path / "kwok" / "go.sum").open("a", encoding="utf-8") as file:
        file.write("example.org/other v1.0.0 h1:x\n")

    assert same == cache_key()
    assert cache_key(tuple(copies)) != same
    assert same.startswith("kubernetes-1.37.2-etcd-3.7.3-kwok-0.8.0-")


def test_a_module_that_pins_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module empty\n", encoding="utf-8")
    module = replace(KUBERNETES, directory=tmp_path)

    with pytest.raises(ValueError, match=r"does not require k8s\.io/kubernetes"):
        _ = module.version
    with pytest.raises(ValueError, match="has no go directive"):
        _ = module.go_version
