# SPDX-License-Identifier: Apache-2.0
"""Without a Prometheus: exporters that are found by their pods, or annotations of nodes."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.controlplane.dcgm import Card, DcgmExporter
from tests.controlplane.extender import ExtenderLaunch
from tests.integration.extender.cluster import create, pod, wait_bound
from tests.integration.extender.conftest import Scheduled

pytestmark = pytest.mark.timeout(180)

_SECONDS: Final = 40.0
_MIB: Final = nodes.H100.memory_mib
_NAMES: Final = ("full", "roomy")

Tell = Callable[[ControlPlane, str, int], None]
"""Has a source tell how much of a node's memory is used, in MiB."""


@pytest.fixture(scope="module", params=["Scrape", "Annotations"])
def source(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def launch(source: str) -> ExtenderLaunch:
    arguments = ("--lease-name", "", "--telemetry-source", source)
    sampling = "SLUICE_SAMPLING_INFERENCE_SECONDS"
    return ExtenderLaunch(arguments, {sampling: "1", "SLUICE_EXPORTER_NAMESPACE": "exporters"})


@pytest.fixture(scope="module")
def exporters() -> Iterator[Mapping[str, DcgmExporter]]:
    with (
        DcgmExporter("full", [Card("GPU-full", busy=0.1)]) as full,
        DcgmExporter("roomy", [Card("GPU-roomy", busy=0.1)]) as roomy,
    ):
        yield {"full": full, "roomy": roomy}


@pytest.fixture(scope="module")
def cluster(
    scheduled: Scheduled, source: str, exporters: Mapping[str, DcgmExporter]
) -> ControlPlane:
    """Two nodes of one card, and the pods of their exporters where those are scraped."""
    plane = scheduled.control_plane
    plane.create_namespace("t")
    plane.create_nodes(nodes.time_sliced(name, count=1, replicas=8) for name in _NAMES)
    if source == "Scrape":
        plane.create_namespace("exporters")
        for name in _NAMES:
            _exporter_pod(plane, name, exporters[name])
    return plane


@pytest.fixture
def tell(source: str, exporters: Mapping[str, DcgmExporter]) -> Tell:
    def scraped(_: ControlPlane, name: str, used_mib: int) -> None:
        exporters[name].cards[0].used_mib = used_mib

    return scraped if source == "Scrape" else _annotate


def _annotate(plane: ControlPlane, name: str, used_mib: int) -> None:
    # Of two values of one time the worse counts, so no two may be told in the same second.
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    values = {"memory-used": used_mib, "memory-total": _MIB, "updated-at": stamp}
    pairs = (f"gpu-scheduler/{key}={value}" for key, value in values.items())
    plane.kubectl("annotate", "--overwrite", "node", name, *pairs)


def _exporter_pod(plane: ControlPlane, node: str, exporter: DcgmExporter) -> None:
    """Make the exporter's pod on a node, with the address that it serves under."""
    host, port = exporter.address.split(":")
    container = {
        "name": "exporter",
        "image": "exporter",
        "ports": [{"name": "metrics", "containerPort": int(port)}],
    }
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": node, "labels": {"app.kubernetes.io/name": "dcgm-exporter"}},
        "spec": {
            "nodeName": node,
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    plane.kubectl("create", "-n", "exporters", "--filename=-", stdin=body)
    running = "--for=jsonpath={.status.phase}=Running"
    plane.kubectl("wait", running, f"pod/{node}", "-n", "exporters", "--timeout=30s")
    address = {"status": {"podIP": host, "podIPs": [{"ip": host}]}}
    plane.kubectl(
        *("patch", "pod", node, "-n", "exporters", "--subresource=status"),
        *("--type=merge", "--patch-file=/dev/stdin"),
        stdin=address,
    )


def test_a_full_card_is_not_given_to_a_pod_that_states_its_need_until_it_is_free(
    cluster: ControlPlane, tell: Tell
) -> None:
    deadline = time.monotonic() + _SECONDS
    number = 0
    while True:
        # What is told grows old, and what is not known keeps nobody off.
        for name in _NAMES:
            tell(cluster, name, _MIB - 2_000)
        create(cluster, "t", [pod(f"p{number}", mib=10_000)])
        if "GPU memory" in (said := _said(cluster, f"p{number}")):
            break
        cluster.kubectl("delete", "pod", f"p{number}", "-n", "t", "--grace-period=0", "--force")
        assert time.monotonic() < deadline, said
        number += 1
    tell(cluster, "full", _MIB - 2_000)
    tell(cluster, "roomy", 1_000)
    assert wait_bound(cluster, "t", 1, seconds=40) == {f"p{number}": "roomy"}


def _said(plane: ControlPlane, name: str) -> str:
    """Return what the scheduler says of a pod; empty once it is bound."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        conditions = plane.get("pod", name, "-n", "t")["status"].get("conditions", [])
        for each in conditions:
            if each["type"] == "PodScheduled":
                return "" if each["status"] == "True" else str(each["message"])
        time.sleep(0.1)
    return ""
