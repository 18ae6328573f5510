# SPDX-License-Identifier: Apache-2.0
"""Without a Prometheus: exporters that are found by their pods, or annotations of nodes.

Exporters answer by plain http, or behind TLS to who shows a token.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.controlplane import ControlPlane, nodes
from tests.controlplane.dcgm import Card, DcgmExporter, Guard
from tests.controlplane.extender import ExtenderLaunch
from tests.integration.extender.cluster import create, pod, wait_bound
from tests.integration.extender.conftest import Scheduled
from tests.support.certificates import Pki, make_pki

pytestmark = pytest.mark.timeout(180)

_SECONDS: Final = 40.0
_MIB: Final = nodes.H100.memory_mib
_NAMES: Final = ("full", "roomy")
_GUARDED: Final = "Scrape behind TLS"
_NAME: Final = "dcgm-exporter.gpu-operator.svc"

Tell = Callable[[ControlPlane, str, int], None]
"""Has a source tell how much of a node's memory is used, in MiB."""


@pytest.fixture(scope="module", params=["Scrape", _GUARDED, "Annotations"])
def source(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """The exporters' certificate, which is not for the addresses of their pods, and a token."""
    made = make_pki(tmp_path_factory.mktemp("exporters"))
    made.renew(names=(_NAME,))
    (made.directory / "token").write_text("told\n", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def launch(source: str, pki: Pki) -> ExtenderLaunch:
    arguments = ["--lease-name", "", "--telemetry-source", source.partition(" ")[0]]
    if source == _GUARDED:
        arguments += ["--exporter-scheme", "https", "--exporter-server-name", _NAME]
        arguments += ["--exporter-ca-file", str(pki.ca)]
        arguments += ["--exporter-token-file", str(pki.directory / "token")]
    sampling = "SLUICE_SAMPLING_INFERENCE_SECONDS"
    environment = {sampling: "1", "SLUICE_EXPORTER_NAMESPACE": "exporters"}
    return ExtenderLaunch(tuple(arguments), environment)


@pytest.fixture(scope="module")
def exporters(source: str, pki: Pki) -> Iterator[Mapping[str, DcgmExporter]]:
    guard = Guard(pki.server_context(), "Bearer told") if source == _GUARDED else None
    with (
        DcgmExporter("full", [Card("GPU-full", busy=0.1)], guard=guard) as full,
        DcgmExporter("roomy", [Card("GPU-roomy", busy=0.1)], guard=guard) as roomy,
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
    if source != "Annotations":
        plane.create_namespace("exporters")
        for name in _NAMES:
            _exporter_pod(plane, name, exporters[name])
    return plane


@pytest.fixture
def tell(source: str, exporters: Mapping[str, DcgmExporter]) -> Tell:
    def scraped(_: ControlPlane, name: str, used_mib: int) -> None:
        exporters[name].cards[0].used_mib = used_mib

    return _annotate if source == "Annotations" else scraped


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
