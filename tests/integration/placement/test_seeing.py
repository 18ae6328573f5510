# SPDX-License-Identifier: Apache-2.0
"""What people see of nodes and cards on the real API server, with loads from a real Prometheus."""

import json
import queue
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.monitoring import PrometheusServer
from tests.controlplane.replica import ROOT
from tests.integration.extender.cluster import Json, create, pod, wait_bound

WHOLE: Final = "nvidia.com/gpu"
SHARED: Final = "nvidia.com/gpu.shared"
H100: Final = "NVIDIA-H100-80GB-HBM3"
_SECONDS: Final = 30.0
_SVG: Final = "{http://www.w3.org/2000/svg}"


def argv(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "sluice.py"), *arguments]


def environment(plane: ControlPlane, kubeconfig: Path | None = None) -> dict[str, str]:
    return {"KUBECONFIG": str(kubeconfig or plane.kubeconfig), "PATH": "", "PYTHONUNBUFFERED": "1"}


def command(plane: ControlPlane, *arguments: str) -> str:
    """Run sluice.py as a person does, and return what it prints."""
    done = subprocess.run(
        argv(*arguments), capture_output=True, text=True, check=False, env=environment(plane)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def seen(plane: ControlPlane, *arguments: str) -> Mapping[str, Json]:
    """Return what `sluice nodes` tells of each node."""
    found = json.loads(command(plane, "nodes", "-o", "json", *arguments))
    return {node["name"]: node for node in found["nodes"]}


def used(node: Json, resource: str) -> int:
    (count,) = (each["used"] for each in node["devices"] if each["resource"] == resource)
    return int(count)


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """A node that ends with the test."""
    name = f"seen-{secrets.token_hex(3)}"
    control_plane.create_nodes([nodes.time_sliced(name, count=2, replicas=2)])
    yield name
    control_plane.kubectl("delete", "node", name, "--ignore-not-found")


@pytest.fixture
def placed(control_plane: ControlPlane, namespace: str, node: str) -> Iterator[str]:
    """The node with two pods on it, one of which states what it needs of a card."""
    where = {"kubernetes.io/hostname": node}
    create(
        control_plane,
        namespace,
        [
            pod("small", SHARED, mib=1000, nodeSelector=where),
            pod("large", SHARED, count=2, nodeSelector=where),
        ],
    )
    wait_bound(control_plane, namespace, 2)
    yield node
    control_plane.kubectl("delete", "pods", "--all", "-n", namespace, "--grace-period=0", "--force")


def test_nodes_of_every_kind_are_shown_with_what_is_given_out(
    control_plane: ControlPlane, placed: str
) -> None:
    found = seen(control_plane)
    assert {"h100-whole", "h100-shared", "h100-mig", "a100-whole", "mi300x-whole"} <= found.keys()
    assert "cpu" not in found
    node = found[placed]
    assert (node["status"], node["model"]) == ("Ready", H100)
    assert (node["capacityMilli"], node["allocatedMilli"]) == (2000, 1500)
    assert node["fragmentedMilli"] is not None
    assert (node["utilisation"], node["load"]) == (None, None)
    line = next(
        line.split()
        for line in command(control_plane, "nodes").splitlines()
        if line.startswith(placed)
    )
    assert line[1:6] == ["Ready", H100, "TimeSlice", "3", "1"]
    assert line[-4:] == ["?", "?", "?", "?"]


def test_a_selector_is_the_api_servers(control_plane: ControlPlane, node: str) -> None:
    assert set(seen(control_plane, "-l", f"kubernetes.io/hostname={node}")) == {node}
    done = subprocess.run(
        argv("nodes", "-l", "a in ("),
        capture_output=True,
        text=True,
        check=False,
        env=environment(control_plane),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_what_the_cluster_does_not_let_be_seen_is_one_line(control_plane: ControlPlane) -> None:
    nobody = control_plane.add_user(f"nobody-{secrets.token_hex(3)}")
    for arguments in (("nodes",), ("map",), ("nodes", "--watch")):
        done = subprocess.run(
            argv(*arguments),
            capture_output=True,
            text=True,
            check=False,
            env=environment(control_plane, nobody),
        )
        assert done.returncode == 2
        assert done.stderr.startswith("error: not permitted: ")
        assert done.stderr.count("\n") == 1


def test_the_map_shows_each_pod_on_a_card_and_draws_it(
    control_plane: ControlPlane, namespace: str, placed: str, tmp_path: Path
) -> None:
    found = json.loads(command(control_plane, "map", "-o", "json"))
    (node,) = (each for each in found["nodes"] if each["name"] == placed)
    pods = [part["pod"] for card in node["cards"] for part in card["parts"]]
    assert sorted(filter(None, pods)) == [
        f"{namespace}/{name}" for name in ("large", "large", "small")
    ]
    assert "is assumed" in found["assumed"]
    text = command(control_plane, "map")
    assert placed in text
    assert "is assumed" in text
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    for path in (first, second):
        command(control_plane, "map", "--svg", str(path))
    assert first.read_bytes() == second.read_bytes()
    titles = [element.text for element in ET.parse(first).iter(f"{_SVG}title")]  # noqa: S314 - our own
    assert any(text and f"{namespace}/small" in text for text in titles)


@contextmanager
def watching(plane: ControlPlane, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """Run a command that goes on, and hand over its lines as they come; it ends by Ctrl-C."""
    # A shell's background job has SIGINT ignored, and would hand that down.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            argv("nodes", "--watch", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(plane),
        )
    finally:
        signal.signal(signal.SIGINT, inherited)
    lines: queue.Queue[str] = queue.Queue()
    stdout = process.stdout
    assert stdout is not None
    reader = threading.Thread(target=partial(_pass_on, stdout, lines), daemon=True)
    reader.start()
    try:
        yield process, lines
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=_SECONDS)
        assert (process.returncode, errors) == (0, "")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        reader.join(_SECONDS)
        for pipe in filter(None, (process.stdout, process.stderr)):
            pipe.close()


def _pass_on(stdout: Iterable[str], lines: "queue.Queue[str]") -> None:
    for line in stdout:
        lines.put(line)


def next_line(lines: "queue.Queue[str]", wanted: Callable[[str], bool]) -> str:
    """Return the next line that is wanted."""
    deadline = time.monotonic() + _SECONDS
    while True:
        line = lines.get(timeout=max(0.1, deadline - time.monotonic()))
        if wanted(line):
            return line


def test_watching_follows_pods_that_come_and_nodes_that_go_until_ctrl_c(
    control_plane: ControlPlane, namespace: str, node: str
) -> None:
    def of_node(line: str) -> bool:
        return bool(json.loads(line)["name"] == node)

    with watching(control_plane, "-o", "json") as (_, lines):
        assert used(json.loads(next_line(lines, of_node)), SHARED) == 0
        where = {"kubernetes.io/hostname": node}
        create(control_plane, namespace, [pod("late", SHARED, nodeSelector=where)])
        next_line(lines, lambda line: of_node(line) and used(json.loads(line), SHARED) == 1)
        control_plane.kubectl(
            "delete", "pod", "late", "-n", namespace, "--grace-period=0", "--force"
        )
        next_line(lines, lambda line: of_node(line) and used(json.loads(line), SHARED) == 0)
        control_plane.kubectl("delete", "node", node)
        gone = next_line(lines, lambda line: of_node(line) and "Gone" in line)
        assert json.loads(gone) == {"name": node, "status": "Gone"}


def test_watching_as_text_prints_the_table_again_when_it_has_changed(
    control_plane: ControlPlane, node: str
) -> None:
    with watching(control_plane) as (_, lines):
        assert next_line(lines, lambda line: line.startswith(node)).split()[1] == "Ready"
        control_plane.kubectl("cordon", node)
        cordoned = [node, "Ready,SchedulingDisabled"]
        next_line(lines, lambda line: line.split()[:2] == cordoned)


@pytest.fixture
def server(monitoring: Mapping[str, Path]) -> Iterator[PrometheusServer]:
    with PrometheusServer(monitoring["prometheus"]) as started:
        yield started


def test_loads_and_cards_are_those_that_a_real_prometheus_tells(
    control_plane: ControlPlane, namespace: str, placed: str, server: PrometheusServer
) -> None:
    cards = [
        Card("GPU-0", busy=0.5, used_mib=20_000, pods=((namespace, "small", "main"),)),
        Card("GPU-1", busy=0.7, used_mib=40_000, pods=((namespace, "large", "main"),)),
    ]
    with DcgmExporter(placed, cards) as exporter:
        server.set_targets([exporter.address])
        deadline = time.monotonic() + _SECONDS
        while (node := seen(control_plane, "--prometheus", server.url)[placed])["load"] is None:
            assert time.monotonic() < deadline, node
        assert node["utilisation"] == pytest.approx(0.6)
        assert node["load"] == pytest.approx(0.7 * 0.6 + 0.3 * 60_000 / 163_118)
        assert (node["memoryUsedMib"], node["memoryTotalMib"]) == (60_000, 163_118)
        assert abs(time.time() - node["measuredAt"]) < 60
        found = json.loads(command(control_plane, "map", "-o", "json", "--prometheus", server.url))
    (shown,) = (each for each in found["nodes"] if each["name"] == placed)
    first = [part["pod"] for part in shown["cards"][0]["parts"]]
    assert f"{namespace}/small" in first


def test_a_prometheus_that_is_not_there_is_said_and_loads_are_unknown(
    control_plane: ControlPlane, node: str
) -> None:
    done = subprocess.run(
        argv("nodes", "--prometheus", "http://127.0.0.1:1"),
        capture_output=True,
        text=True,
        check=False,
        env=environment(control_plane),
    )
    assert done.returncode == 0
    assert done.stderr.startswith("warning: no load from Prometheus: ")
    assert any(line.startswith(node) for line in done.stdout.splitlines())
