# SPDX-License-Identifier: Apache-2.0
"""Live telemetry from a real Prometheus: hot nodes and full cards are avoided, pods are woken."""

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest

from policies.model.keys import LOAD_FELL
from tests.controlplane import nodes
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.extender import ExtenderLaunch
from tests.controlplane.monitoring import PrometheusServer
from tests.integration.extender.cluster import Json, create, pod, wait_refused, where
from tests.integration.extender.conftest import Scheduled

pytestmark = pytest.mark.timeout(180)

_SAMPLING_SECONDS = 2.0
_LOOK_SECONDS = 4.0
"""What a look, a scheduling cycle and a busy machine may take beyond the sampling period."""
_SECONDS = 30.0
_PAIR = ("hot", "cool")
_MIB = nodes.H100.memory_mib
_FULL_MIB = 79_000.0


def _idle(*names: str, used_mib: float = 1000.0) -> list[Card]:
    return [Card(f"GPU-{name}", busy=0.1, used_mib=used_mib) for name in names]


@pytest.fixture(scope="module")
def exporters() -> Iterator[Mapping[str, DcgmExporter]]:
    """An exporter for each node."""
    with (
        DcgmExporter("hot", _idle("hot")) as hot,
        DcgmExporter("cool", _idle("cool")) as cool,
        DcgmExporter("full", _idle("full", used_mib=_FULL_MIB)) as full,
        DcgmExporter("roomy", _idle("roomy")) as roomy,
        DcgmExporter("two", _idle("two-0", "two-1")) as two,
    ):
        yield {each.node: each for each in (hot, cool, full, roomy, two)}


@pytest.fixture(scope="module")
def prometheus(
    monitoring: Mapping[str, Path], exporters: Mapping[str, DcgmExporter]
) -> Iterator[PrometheusServer]:
    with PrometheusServer(monitoring["prometheus"]) as server:
        server.set_targets([each.address for each in exporters.values()])
        yield server


@pytest.fixture(scope="module")
def launch(prometheus: PrometheusServer) -> ExtenderLaunch:
    """Telemetry by flags, the rest by the environment."""
    environment = {
        "GPU_UTIL_THRESHOLD": "0.6",
        "SLUICE_SAMPLING_INFERENCE_SECONDS": str(_SAMPLING_SECONDS),
        "SLUICE_SAMPLING_TRAINING_SECONDS": str(_SAMPLING_SECONDS),
    }
    arguments = ("--lease-name", "", "--prometheus-url", prometheus.url)
    return ExtenderLaunch(arguments, environment)


@pytest.fixture(scope="module")
def cluster(scheduled: Scheduled) -> Scheduled:
    plane = scheduled.control_plane
    plane.create_namespace("t")
    one = [*_PAIR, "full", "roomy"]
    plane.create_nodes(nodes.time_sliced(name, count=1, replicas=100) for name in one)
    plane.create_nodes([nodes.time_sliced("two", count=2, replicas=4)])
    return scheduled


def test_a_hot_node_is_avoided_within_one_sampling_period_and_pods_are_woken_when_it_has_cooled(
    cluster: Scheduled, exporters: Mapping[str, DcgmExporter], prometheus: PrometheusServer
) -> None:
    plane = cluster.control_plane
    # Packing goes on where it began; so that node is heated.
    begun = _until(cluster, "first", frozenset(_PAIR))
    other = next(name for name in _PAIR if name != begun)
    exporters[begun].cards[0].busy = 1.0
    _wait_told(prometheus, begun, 1.0)
    _until(cluster, "avoiding", {other}, _SAMPLING_SECONDS + _LOOK_SECONDS)

    exporters[other].cards[0].busy = 1.0
    _until(cluster, "waiting", {""})
    told = wait_refused(plane, "t", "waiting")
    assert "2 GPUs are overloaded: load 0.7" in told
    assert "threshold 0.60" in told

    exporters[other].cards[0].busy = 0.0
    plane.kubectl("wait", "pod/waiting", "-n", "t", "--for=condition=PodScheduled", "--timeout=30s")
    assert where(plane, "t")["waiting"] == other
    assert LOAD_FELL in plane.get("node", other)["metadata"]["annotations"]


def test_a_prometheus_that_is_killed_filters_nothing_and_counts_again_once_it_is_back(
    cluster: Scheduled, exporters: Mapping[str, DcgmExporter], prometheus: PrometheusServer
) -> None:
    plane = cluster.control_plane
    for name in _PAIR:
        exporters[name].cards[0].busy = 1.0
    _until(cluster, "refused", {""})
    prometheus.kill()
    # What is not known any more keeps nobody off, and who was refused is woken.
    _until(cluster, "unknowing", frozenset(_PAIR))
    plane.kubectl("wait", "pod/refused", "-n", "t", "--for=condition=PodScheduled", "--timeout=30s")
    prometheus.start()
    _until(cluster, "knowing", {""})
    exporters["cool"].cards[0].busy = 0.0
    plane.kubectl("wait", "pod/knowing", "-n", "t", "--for=condition=PodScheduled", "--timeout=30s")
    assert where(plane, "t")["knowing"] == "cool"


def test_a_card_that_is_full_is_not_given_to_a_pod_that_states_its_need(
    cluster: Scheduled, exporters: Mapping[str, DcgmExporter]
) -> None:
    plane, pair = cluster.control_plane, ("full", "roomy")
    _until(cluster, "stating", {"roomy"}, nodes=pair, mib=20_000)
    create(plane, "t", [_on(("full",), pod("needing", mib=20_000))])
    told = wait_refused(plane, "t", "needing")
    assert "GPU memory" in told
    assert "needs 20000" in told
    exporters["full"].cards[0].used_mib = 1000.0  # whoever it was has ended
    plane.kubectl("wait", "pod/needing", "-n", "t", "--for=condition=PodScheduled", "--timeout=30s")


def test_which_card_is_whose_is_learnt_from_the_exporter(
    cluster: Scheduled, exporters: Mapping[str, DcgmExporter]
) -> None:
    plane, two = cluster.control_plane, exporters["two"]
    create(plane, "t", [_on(("two",), pod("large", mib=60_000))])
    plane.kubectl("wait", "pod/large", "-n", "t", "--for=condition=PodScheduled", "--timeout=30s")
    two.cards[1].pods = (("t", "large", "main"),)
    two.cards[1].used_mib = 60_000.0
    cluster.extender.kill()
    cluster.extender.start()  # it finds the pod there, and has not seen which card it was given
    _until(cluster, "second", {"two"}, nodes=("two",), mib=60_000)
    two.cards[0].used_mib = _FULL_MIB
    two.cards[0].pods = (("t", "second", "main"),)
    create(plane, "t", [_on(("two",), pod("third", mib=30_000))])
    assert "GPU memory" in wait_refused(plane, "t", "third")


def _on(names: tuple[str, ...], item: Json) -> Json:
    """Return a pod that only these nodes may get."""
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    # A field of a term takes one value.
    terms = [{"matchFields": [{**field, "values": [name]}]} for name in names]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {**item, "spec": {**item["spec"], "affinity": {"nodeAffinity": required}}}


def _until(
    cluster: Scheduled,
    name: str,
    wanted: AbstractSet[str],
    seconds: float = _SECONDS,
    *,
    nodes: tuple[str, ...] = _PAIR,
    mib: int | None = None,
) -> str:
    """Make pods of a name until one is put as wanted (empty: refused); return its node.

    Those that were put elsewhere are deleted. It fails unless that comes about in time.
    """
    plane, deadline = cluster.control_plane, time.monotonic() + seconds
    while True:
        create(plane, "t", [_on(nodes, pod(name, mib=mib))])
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


def _wait_told(prometheus: PrometheusServer, node: str, busy: float) -> None:
    """Wait until Prometheus itself tells how busy a node's card is."""
    query = f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{Hostname="{node}"}}'
    url = f"{prometheus.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    deadline = time.monotonic() + _SECONDS
    while True:
        with urllib.request.urlopen(url) as answer:  # noqa: S310 - loopback
            found: list[Any] = json.load(answer)["data"]["result"]
        if any(float(series["value"][1]) == busy for series in found):
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
