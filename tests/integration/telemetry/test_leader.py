# SPDX-License-Identifier: Apache-2.0
"""The leader of installed processes writes what cards hold, with the rights that are rendered."""

import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from reconciler.manifests.telemetry import TelemetryOptions
from reconciler.telemetry.nodes import MemoryNote, read_note
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.monitoring import PrometheusServer
from tests.controlplane.replica import Launch

pytestmark = pytest.mark.timeout(120)

_NODE: Final = "led-node"
_SECONDS: Final = 40.0
_POLICIES: Final = Path(__file__).parents[1] / "sluice" / "policies"


@pytest.fixture
def exporter(control_plane: ControlPlane) -> Iterator[DcgmExporter]:
    """The exporter of a node of two cards."""
    control_plane.create_nodes([nodes.time_sliced(_NODE, count=2)])
    cards = [Card("GPU-0", busy=0.5, used_mib=20_000), Card("GPU-1", busy=0.7, used_mib=40_000)]
    with DcgmExporter(_NODE, cards) as started:
        yield started
    control_plane.kubectl("delete", "node", _NODE)


@pytest.fixture
def telemetry(monitoring: Mapping[str, Path], exporter: DcgmExporter) -> Iterator[TelemetryOptions]:
    """A Prometheus that scrapes the exporter each second, asked as often."""
    with PrometheusServer(monitoring["prometheus"]) as server:
        server.set_targets([exporter.address])
        yield TelemetryOptions(
            {
                "PROMETHEUS_URL": server.url,
                "SLUICE_SAMPLING_INFERENCE_SECONDS": "1",
                "SLUICE_SAMPLING_TRAINING_SECONDS": "1",
            }
        )


@pytest.fixture
def sluice(
    control_plane: ControlPlane, telemetry: TelemetryOptions, tmp_path: Path
) -> Iterator[InstalledSluice]:
    """One process as the manifests install it where telemetry is set up."""
    launch = Launch(environment=telemetry.environment)
    directory = tmp_path / "run"
    with InstalledSluice(
        control_plane, _POLICIES, directory, launch, telemetry=telemetry
    ) as installed:
        yield installed


def _note(control_plane: ControlPlane) -> MemoryNote | None:
    metadata: Any = control_plane.get("node", _NODE)["metadata"]
    return read_note(metadata.get("annotations", {}))


def _wait_used(control_plane: ControlPlane, used_mib: int) -> MemoryNote:
    deadline = time.monotonic() + _SECONDS
    while True:
        note = _note(control_plane)
        if note is not None and note.used_mib == used_mib:
            return note
        assert time.monotonic() < deadline, note
        time.sleep(0.2)


def test_the_leader_writes_and_the_next_one_goes_on(
    control_plane: ControlPlane,
    sluice: InstalledSluice,
    exporter: DcgmExporter,
    telemetry: TelemetryOptions,
) -> None:
    note = _wait_used(control_plane, 60_000)
    assert note.total_mib == 2 * 81_559
    assert abs(time.time() - note.time) < 10
    other = sluice.add_replica("other", Launch(environment=telemetry.environment))
    sluice.stop()
    exporter.cards[1].used_mib = 70_000
    _wait_used(control_plane, 90_000)
    for log in (sluice.log, other.log):
        assert "forbidden" not in log.read_text(encoding="utf-8").lower()


def test_a_standby_does_not_ask_prometheus(
    control_plane: ControlPlane, sluice: InstalledSluice, telemetry: TelemetryOptions
) -> None:
    _wait_used(control_plane, 60_000)
    other = sluice.add_replica("other", Launch(environment=telemetry.environment))
    deadline = time.monotonic() + _SECONDS
    while "sluice_telemetry_looks_total{" not in _metrics(sluice.port, sluice.certificates):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert "sluice_telemetry_looks_total{" not in _metrics(other.port, sluice.certificates)


def test_the_leader_shows_how_busy_the_cards_of_a_model_are(sluice: InstalledSluice) -> None:
    # Of all H100 the exporter tells of these two.
    wanted = 'sluice_gpu_utilisation_ratio{model="NVIDIA-H100-80GB-HBM3"} 0.6'
    deadline = time.monotonic() + _SECONDS
    while wanted not in (page := _metrics(sluice.port, sluice.certificates)):
        assert time.monotonic() < deadline, page
        time.sleep(0.5)
    assert 'sluice_gpu_utilisation_ratio{model="NVIDIA-L40S"}' not in page


def test_a_reconciler_that_is_apart_writes_and_a_webhook_that_is_apart_may_not(
    control_plane: ControlPlane, telemetry: TelemetryOptions, tmp_path: Path
) -> None:
    url = telemetry.environment["PROMETHEUS_URL"]
    sampling = {"SLUICE_SAMPLING_INFERENCE_SECONDS": "1"}
    with InstalledSluice(
        *(control_plane, _POLICIES, tmp_path / "run"),
        launch=Launch(command="serve"),
        telemetry=telemetry,
    ) as apart:
        launch = Launch(("--prometheus-url", url), sampling, command="reconcile")
        reconciler = apart.add_replica("reconciler", launch)
        _wait_used(control_plane, 60_000)
        assert "forbidden" not in reconciler.log.read_text(encoding="utf-8").lower()
        for account, allowed in (("sluice", "yes"), ("sluice-webhook", "no")):
            user = f"--as=system:serviceaccount:sluice:{account}"
            asked = ("auth", "can-i", "patch", "nodes", user)
            assert control_plane.kubectl(*asked, check=False).stdout.strip() == allowed


def _metrics(port: int, certificates: Path) -> str:
    tls = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=tls) as answer:
        return str(answer.read().decode())
