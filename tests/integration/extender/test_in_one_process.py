# SPDX-License-Identifier: Apache-2.0
"""`sluice run --extender-port`: webhook, leader and extender in one process, with one telemetry."""

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from certs.files import ensure, read_ca_bundle
from certs.names import LOOPBACK
from policies.vendors import build_catalog
from reconciler.manifests.scheduler_config import extender_entry, managed_resources
from reconciler.manifests.telemetry import TelemetryOptions
from reconciler.telemetry.nodes import read_note
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.components import Options
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.installed import InstalledSluice
from tests.controlplane.monitoring import PrometheusServer
from tests.controlplane.ports import HOST, free_ports
from tests.controlplane.replica import Launch
from tests.integration.extender.cluster import WHOLE, create, pod, wait_bound

pytestmark = pytest.mark.timeout(180)

_SECONDS: Final = 40.0
_URL: Final = "PROMETHEUS_URL"
_DOCUMENTS: Final = """
apiVersion: sluice.dev/v1alpha1
kind: Tenant
metadata: {name: t}
spec:
  namespaces: {names: [t]}
  quota: {gpus: {guarantee: 8, ceiling: 8}}
---
apiVersion: sluice.dev/v1alpha1
kind: SharingProfile
metadata: {name: slice}
spec: {mode: TimeSlice, replicas: 8, products: [NVIDIA-H100-80GB-HBM3]}
---
apiVersion: sluice.dev/v1alpha1
kind: GPUPolicy
metadata: {name: slices}
spec: {order: 1, rewrite: {profile: slice}}
"""


@pytest.fixture(scope="module")
def exporters() -> Iterator[Mapping[str, DcgmExporter]]:
    """An exporter for each of two nodes of one card: one is hot and the other is not."""
    with (
        DcgmExporter("hot", [Card("GPU-hot", busy=1.0, used_mib=60_000)]) as hot,
        DcgmExporter("cool", [Card("GPU-cool", busy=0.1, used_mib=1000)]) as cool,
    ):
        yield {"hot": hot, "cool": cool}


@pytest.fixture(scope="module")
def telemetry(
    monitoring: Mapping[str, Path], exporters: Mapping[str, DcgmExporter]
) -> Iterator[TelemetryOptions]:
    with PrometheusServer(monitoring["prometheus"]) as server:
        server.set_targets([each.address for each in exporters.values()])
        sampling = "SLUICE_SAMPLING_INFERENCE_SECONDS"
        yield TelemetryOptions({"PROMETHEUS_URL": server.url, sampling: "1"})


@pytest.fixture(scope="module")
def plane(
    binaries: Mapping[str, Path],
    telemetry: TelemetryOptions,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """A control plane with Sluice in one process, which its scheduler asks."""
    directory = tmp_path_factory.mktemp("one")
    (directory / "policies").mkdir()
    (directory / "policies" / "all.yaml").write_text(_DOCUMENTS, encoding="utf-8")
    files = ensure(directory / "run" / "certificates", LOOPBACK, datetime.now(UTC))
    (port,) = free_ports(1)
    bundle = read_ca_bundle(files.ca_certificate)
    names = managed_resources(build_catalog())
    entry = extender_entry(f"https://{HOST}:{port}/scheduler", names, bundle)
    options = Options(scheduler_config={"extenders": [entry]})
    arguments = ("--extender-port", str(port), "--prometheus-url", telemetry.environment[_URL])
    launch = Launch(arguments, telemetry.environment)
    with ControlPlane(binaries, options) as control_plane:
        control_plane.create_nodes(
            nodes.time_sliced(name, count=1, replicas=8) for name in ("hot", "cool")
        )
        control_plane.create_namespace("t")
        with InstalledSluice(
            control_plane, directory / "policies", directory / "run", launch, telemetry=telemetry
        ) as sluice:
            sluice.leave_objects()
            yield control_plane
            sluice.check()


def test_one_process_admits_and_releases_annotates_nodes_and_avoids_the_hot_one(
    plane: ControlPlane,
) -> None:
    deadline = time.monotonic() + _SECONDS
    while _used(plane, "hot") != 60_000:
        assert time.monotonic() < deadline, "the leader has not annotated the node"
        time.sleep(0.2)
    create(plane, "t", (pod(f"p{number}", WHOLE) for number in range(4)))
    found = wait_bound(plane, "t", 4)
    assert set(found.values()) == {"cool"}


def _used(plane: ControlPlane, node: str) -> int | None:
    note = read_note(plane.get("node", node)["metadata"].get("annotations", {}))
    return None if note is None else note.used_mib
