# SPDX-License-Identifier: Apache-2.0
"""Exporters found by their pods, and the annotations of nodes, on a real API server."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.telemetry.classes import SamplingClass
from policies.telemetry.freshness import Freshness
from policies.telemetry.names import exporters
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample, Subject
from reconciler.kube.client import Client
from reconciler.kube.errors import NotFoundError
from reconciler.kube.resources import NODES, PODS, Target
from reconciler.runtime.metrics import Metrics
from reconciler.telemetry.annotations import Writer, WriterSettings
from reconciler.telemetry.config import TelemetryConfig
from reconciler.telemetry.endpoints import ExporterPods
from reconciler.telemetry.kinds import SourceKind
from reconciler.telemetry.nodes import MemoryNote, TelemetryNode, read_note
from reconciler.telemetry.prometheus import PrometheusSettings
from reconciler.telemetry.run import Telemetry
from reconciler.telemetry.store import TelemetryStore
from tests.controlplane import ControlPlane, nodes
from tests.controlplane.dcgm import Card, DcgmExporter, Fault
from tests.controlplane.monitoring import PrometheusServer
from tests.support.running import running
from tests.support.waiting import until

_FAST = (SamplingClass("fast", 0.5, 4.0),)
_WRITER = WriterSettings(node_seconds=1.0, refresh_seconds=600.0, look_seconds=0.2)
_SECONDS = 20.0
_NODE = "telemetry-node"
_KEYS = ("gpu-scheduler/memory-used", "gpu-scheduler/memory-total", "gpu-scheduler/updated-at")


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """A node that ends with the test."""
    control_plane.create_nodes([nodes.time_sliced(_NODE)])
    yield _NODE
    control_plane.kubectl("delete", "node", _NODE, "--ignore-not-found")


@pytest.fixture
def exporter(control_plane: ControlPlane, namespace: str, node: str) -> Iterator[DcgmExporter]:
    """An exporter whose pod on the node has the address that it serves under."""
    cards = [Card("GPU-0", busy=0.5, used_mib=20_000), Card("GPU-1", busy=0.7, used_mib=40_000)]
    with DcgmExporter(node, cards) as started:
        host, port = started.address.split(":")
        ports = [{"name": "metrics", "containerPort": int(port)}]
        container = {"name": "exporter", "image": "exporter", "ports": ports}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "exporter",
                "namespace": namespace,
                "labels": {"app": "nvidia-dcgm-exporter"},
            },
            "spec": {
                "nodeName": node,
                "containers": [container],
                "tolerations": [{"operator": "Exists"}],
            },
        }
        control_plane.kubectl("create", "--filename=-", stdin=pod)
        phase = "--for=jsonpath={.status.phase}=Running"
        control_plane.kubectl("wait", phase, "pod/exporter", "-n", namespace, "--timeout=20s")
        address = {"status": {"podIP": host, "podIPs": [{"ip": host}]}}
        control_plane.kubectl(
            *("patch", "pod", "exporter", "-n", namespace, "--subresource=status"),
            *("--type=merge", "--patch-file=/dev/stdin"),
            stdin=address,
        )
        yield started


@dataclass(frozen=True, slots=True)
class Live:
    """The cluster as it is now."""

    client: Client

    async def metadata(self, name: str = _NODE) -> Mapping[str, Any]:
        """Return a node's metadata."""
        found: Any = (await self.client.get(Target(NODES, name)))["metadata"]
        return dict(found)

    async def note(self, name: str = _NODE) -> MemoryNote | None:
        """Return what a node's annotations say."""
        return read_note((await self.metadata(name)).get("annotations", {}))


async def _until(ask: Callable[[], Awaitable[object]], wanted: object) -> None:
    deadline = time.monotonic() + _SECONDS
    while (seen := await ask()) != wanted:
        assert time.monotonic() < deadline, seen


def _config(source: SourceKind, namespace: str = "", **more: Any) -> TelemetryConfig:
    (dcgm,) = exporters(("dcgm",))
    pods = (ExporterPods(dcgm, namespace=namespace),)
    return TelemetryConfig(
        source=source, pods=pods, classes=_FAST, skew_seconds=1.0, writer=_WRITER, **more
    )


async def test_exporters_are_found_by_label_and_what_they_tell_is_written_to_their_nodes(
    client: Client, exporter: DcgmExporter, namespace: str
) -> None:
    live = Live(client)
    telemetry = Telemetry(client, _config(SourceKind.SCRAPE, namespace))

    async def used() -> int | None:
        note = await live.note()
        return None if note is None else note.used_mib

    async with running(telemetry.run()):
        await until(
            lambda: telemetry.store.node(_NODE).load(expected_cards=2) is not None, _SECONDS
        )
        load = telemetry.store.node(_NODE).load()
        assert load == pytest.approx((0.7 * 1.2 + 0.3 * 60_000 / 81_559) / 2)
        await _until(used, 60_000)
        note = await live.note()
        assert note is not None
        assert note.total_mib == 2 * 81_559
        assert abs(time.time() - note.time) < 10
        exporter.cards[0].used_mib = 20_500  # below the threshold of 2 %
        exporter.cards[1].used_mib = 40_500
        await until(lambda: telemetry.store.node(_NODE).memory_used_mib == 61_000, _SECONDS)
        scrapes = exporter.scrapes
        await until(lambda: exporter.scrapes >= scrapes + 4, _SECONDS)
        assert await used() == 60_000
        exporter.cards[1].used_mib = 70_500
        await _until(used, 91_000)
        exporter.stop()
        await until(lambda: telemetry.store.node(_NODE).load() is None, _SECONDS)
        assert telemetry.store.node(_NODE).memory_used_mib is None
        assert await used() == 91_000


async def test_an_exporter_that_tells_no_total_has_it_from_the_nodes_labels(
    client: Client, exporter: DcgmExporter, namespace: str
) -> None:
    live = Live(client)
    card = 'device_index="{0}",device_uuid="GPU-{0}",node="x"'
    lines = [
        f"hami_host_gpu_utilization_ratio{{{card.format(number)}}} 50\n"
        f"hami_host_gpu_memory_used_bytes{{{card.format(number)}}} {30_000 * 2**20}\n"
        for number in range(2)
    ]
    exporter.fault = Fault(body="".join(lines).encode())
    telemetry = Telemetry(client, _config(SourceKind.SCRAPE, namespace))

    async def told() -> tuple[int, int] | None:
        note = await live.note()
        return None if note is None else (note.used_mib, note.total_mib)

    async with running(telemetry.run()):
        await _until(told, (60_000, 2 * nodes.H100.memory_mib))
        load = telemetry.store.node(_NODE).load(expected_cards=2)
        assert load == pytest.approx(0.7 * 0.5 + 0.3 * 30_000 / nodes.H100.memory_mib)


async def test_who_leads_and_who_places_sample_once_and_one_ends_without_the_other(
    client: Client, exporter: DcgmExporter, namespace: str
) -> None:
    live = Live(client)
    telemetry = Telemetry(client, _config(SourceKind.SCRAPE, namespace))

    def used() -> float | None:
        return telemetry.store.node(_NODE).memory_used_mib

    async with running(telemetry.run(writes=False)):
        async with running(telemetry.run()):
            await until(lambda: used() == 60_000, _SECONDS)
            sampler, looks = telemetry.sampler, exporter.scrapes
            assert sampler is not None
            began = sum(sampler.looks.values())
            await until(lambda: exporter.scrapes >= looks + 4, _SECONDS)
            assert abs((exporter.scrapes - looks) - (sum(sampler.looks.values()) - began)) <= 1
            await _until(lambda: _total(live), 2 * 81_559)
        assert telemetry.sampler is sampler
        exporter.cards[0].used_mib = 70_000
        await until(lambda: used() == 110_000, _SECONDS)
        note = await live.note()
        assert note is not None
        assert note.used_mib == 60_000, "who wrote has ended"
    scrapes = exporter.scrapes
    async with running(telemetry.run()):
        await until(lambda: exporter.scrapes > scrapes, _SECONDS)
        assert telemetry.sampler is not sampler


async def test_a_prometheus_s_samples_reach_the_nodes_and_the_metrics(
    client: Client, monitoring: Mapping[str, Path], node: str
) -> None:
    live, metrics = Live(client), Metrics()
    with (
        PrometheusServer(monitoring["prometheus"]) as server,
        DcgmExporter(node, [Card("GPU-0", busy=0.5, used_mib=20_000)]) as started,
    ):
        server.set_targets([started.address])
        settings = PrometheusSettings(server.url, range_seconds=10.0)
        config = _config(SourceKind.PROMETHEUS, prometheus=settings)
        telemetry = Telemetry(client, config, metrics=metrics)

        def fresh() -> float | None:
            return metrics.registry.get_sample_value("sluice_telemetry_nodes", {"state": "Fresh"})

        async with running(telemetry.run()):
            await until(lambda: telemetry.store.node(node).load() is not None, _SECONDS)
            await _until(lambda: _total(live), 81_559)
            await until(lambda: fresh() == 1, _SECONDS)


async def test_only_the_three_keys_are_owned_and_those_of_others_stay(
    client: Client, control_plane: ControlPlane, exporter: DcgmExporter, namespace: str
) -> None:
    live = Live(client)
    control_plane.kubectl("annotate", "node", _NODE, "example.com/own=kept", f"{_KEYS[0]}=7")
    telemetry = Telemetry(client, _config(SourceKind.SCRAPE, namespace))
    async with running(telemetry.run()):
        await _until(lambda: _total(live), 2 * 81_559)
    metadata = await live.metadata()
    assert metadata["annotations"]["example.com/own"] == "kept"
    owned = [
        entry["fieldsV1"]
        for entry in metadata["managedFields"]
        if entry["manager"] == "sluice-telemetry"
    ]
    assert owned == [{"f:metadata": {"f:annotations": {f"f:{key}": {} for key in _KEYS}}}]


async def _total(live: Live) -> int | None:
    note = await live.note()
    return None if note is None else note.total_mib


async def test_a_pod_of_an_exporter_that_ends_is_scraped_no_more(
    client: Client, exporter: DcgmExporter, namespace: str
) -> None:
    telemetry = Telemetry(client, _config(SourceKind.SCRAPE, namespace))
    async with running(telemetry.run(writes=False)):
        await until(lambda: telemetry.store.node(_NODE).load() is not None, _SECONDS)
        await client.delete(Target(PODS, "exporter", namespace), grace_seconds=0)
        await until(lambda: telemetry.store.node(_NODE).load() is None, _SECONDS)
    assert await Live(client).note() is None


async def test_a_node_that_is_gone_is_not_made_anew(client: Client) -> None:
    store = TelemetryStore(lambda _: Freshness(30.0))
    subject = Subject("telemetry-gone", "GPU-0", 0)
    store.put(
        [
            Sample(Quantity.MEMORY_USED, subject, 1.0, time.time()),
            Sample(Quantity.MEMORY_TOTAL, subject, 80_000.0, time.time()),
        ]
    )
    gone = TelemetryNode("telemetry-gone", "3f1e2d4c-0000-4000-8000-000000000000", _FAST[0])
    assert await Writer(client, lambda: [gone], store.node, _WRITER).write(1) == 1
    with pytest.raises(NotFoundError):
        await client.get(Target(NODES, "telemetry-gone"))


async def test_a_node_of_the_same_name_that_came_later_is_left_alone(
    client: Client, node: str
) -> None:
    store = TelemetryStore(lambda _: Freshness(30.0))
    subject = Subject(node, "GPU-0", 0)
    for quantity in (Quantity.MEMORY_USED, Quantity.MEMORY_TOTAL):
        store.put([Sample(quantity, subject, 80_000.0, time.time())])
    other = TelemetryNode(node, "3f1e2d4c-0000-4000-8000-000000000000", _FAST[0])
    assert await Writer(client, lambda: [other], store.node, _WRITER).write(1) == 1
    assert await Live(client).note() is None


async def test_annotations_that_others_write_are_a_source_and_are_not_written_back(
    client: Client, control_plane: ControlPlane, node: str
) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    control_plane.kubectl(
        "annotate", "node", node, f"{_KEYS[0]}=30000", f"{_KEYS[1]}=81559", f"{_KEYS[2]}={stamp}"
    )
    config = _config(
        SourceKind.ANNOTATIONS, whole_nodes=Freshness(6.0, 1.0), writes_annotations=False
    )
    telemetry = Telemetry(client, config)
    async with running(telemetry.run()):
        await until(lambda: telemetry.store.node(node).memory_used_mib == 30_000, _SECONDS)
        assert telemetry.store.node(node).memory_total_mib == 81_559
        assert telemetry.store.node(node).load() is None
        await until(lambda: telemetry.store.node(node).memory_used_mib is None, _SECONDS)
        control_plane.kubectl("annotate", "--overwrite", "node", node, f"{_KEYS[2]}=tomorrow")
    owners = {entry["manager"] for entry in (await Live(client).metadata())["managedFields"]}
    assert "sluice-telemetry" not in owners
