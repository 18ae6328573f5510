# SPDX-License-Identifier: Apache-2.0
"""Live load from a real Prometheus: hot nodes are avoided, and waiting pods are woken."""

import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from policies.model.keys import LOAD_FELL
from tests.controlplane import nodes
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.extender import ExtenderLaunch
from tests.controlplane.monitoring import PrometheusServer
from tests.integration.extender.cluster import create, pod, wait_refused, where
from tests.integration.extender.conftest import Scheduled

_SAMPLING_SECONDS = 1.0
_SECONDS = 20.0
_NAMES = ("hot", "cool")


@pytest.fixture(scope="module")
def exporters() -> Iterator[Mapping[str, DcgmExporter]]:
    """An exporter for each node of one card."""
    with (
        DcgmExporter("hot", [Card("GPU-hot", busy=0.1, used_mib=1000)]) as hot,
        DcgmExporter("cool", [Card("GPU-cool", busy=0.1, used_mib=1000)]) as cool,
    ):
        yield {"hot": hot, "cool": cool}


@pytest.fixture(scope="module")
def prometheus(
    monitoring: Mapping[str, Path], exporters: Mapping[str, DcgmExporter]
) -> Iterator[PrometheusServer]:
    with PrometheusServer(monitoring["prometheus"]) as server:
        server.set_targets([each.address for each in exporters.values()])
        yield server


@pytest.fixture(scope="module")
def launch(prometheus: PrometheusServer) -> ExtenderLaunch:
    environment = {
        "PROMETHEUS_URL": prometheus.url,
        "GPU_UTIL_THRESHOLD": "0.6",
        "SLUICE_SAMPLING_INFERENCE_SECONDS": str(_SAMPLING_SECONDS),
        "SLUICE_SAMPLING_TRAINING_SECONDS": str(_SAMPLING_SECONDS),
    }
    return ExtenderLaunch(environment=environment)


@pytest.fixture(scope="module")
def cluster(scheduled: Scheduled) -> Scheduled:
    plane = scheduled.control_plane
    plane.create_namespace("t")
    plane.create_nodes(nodes.time_sliced(name, count=1, replicas=100) for name in _NAMES)
    return scheduled


def test_a_hot_node_is_avoided_and_pods_are_woken_when_it_has_cooled(
    cluster: Scheduled, exporters: Mapping[str, DcgmExporter], prometheus: PrometheusServer
) -> None:
    plane = cluster.control_plane
    # Packing goes on where it began; so that node is heated.
    begun = _until(cluster, "first", frozenset(_NAMES))
    other = next(name for name in _NAMES if name != begun)
    exporters[begun].cards[0].busy = 1.0
    _until(cluster, "avoiding", {other})

    exporters[other].cards[0].busy = 1.0
    _until(cluster, "waiting", {""})
    told = wait_refused(plane, "t", "waiting")
    assert "2 GPUs are overloaded: load 0.7" in told
    assert "threshold 0.60" in told

    exporters[other].cards[0].busy = 0.0
    plane.kubectl("wait", "pod/waiting", "-n", "t", "--for=condition=PodScheduled", "--timeout=20s")
    assert where(plane, "t")["waiting"] == other
    assert LOAD_FELL in plane.get("node", other)["metadata"]["annotations"]

    exporters[other].cards[0].busy = 1.0
    _until(cluster, "refused", {""})
    prometheus.kill()
    # What is not known any more keeps nobody off.
    _until(cluster, "unknowing", frozenset(_NAMES))


def _until(cluster: Scheduled, name: str, wanted: AbstractSet[str]) -> str:
    """Make pods of a name until one is put as wanted (empty: refused); return its node.

    Those that were put elsewhere are deleted. It fails unless that comes about in time.
    """
    plane, deadline = cluster.control_plane, time.monotonic() + _SECONDS
    while True:
        create(plane, "t", [pod(name)])
        node = _placed(cluster, name)
        if node in wanted:
            return node
        assert time.monotonic() < deadline, (name, node)
        plane.kubectl("delete", "pod", name, "-n", "t", "--grace-period=0", "--force")


def _placed(cluster: Scheduled, name: str) -> str:
    """Return the node of a pod, empty if it was refused."""
    plane, deadline = cluster.control_plane, time.monotonic() + _SECONDS
    while True:
        found = plane.get("pod", name, "-n", "t")
        for condition in found["status"].get("conditions", []):
            if condition["type"] == "PodScheduled":
                return str(found["spec"].get("nodeName", ""))
        assert time.monotonic() < deadline, f"{name} is neither bound nor refused"
        time.sleep(0.1)
