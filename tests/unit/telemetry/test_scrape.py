# SPDX-License-Identifier: Apache-2.0
"""Exporters' pages: found by pod, read line by line, whatever is in them."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from policies.telemetry.names import exporters
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import PodName, Subject
from reconciler.telemetry.access import HttpAccess
from reconciler.telemetry.endpoints import Endpoint, ExporterPods
from reconciler.telemetry.exposition import Memory, PageReader
from reconciler.telemetry.http import Http, HttpLimits
from reconciler.telemetry.scrape import Scrape, ScrapeSettings
from reconciler.telemetry.source import SourceError
from tests.controlplane.dcgm import METRICS, Card, DcgmExporter, Fault, Instance, page
from tests.support.telemetry import NOW, Clock, Taken

_POD = ("team-a", "serve-0", "main")


def _read(text: bytes, memory: Memory | None = None) -> Taken:
    found = PageReader(exporters()).read(text, NOW, "node-a", memory or Memory())
    taken = Taken()
    taken(found.samples)
    return taken


def test_the_stand_in_s_page_is_read_by_prometheus_client_as_well() -> None:
    cards = [Card("GPU-0", busy=0.5, pods=(_POD,)), Card("GPU-1", xid=79)]
    text = page("node-a", cards).decode()
    families = list(text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    assert len(samples) == 2 * len(METRICS)
    (xid,) = (s for s in samples if s.name == "DCGM_FI_DEV_XID_ERRORS" and s.labels["gpu"] == "1")
    assert (xid.value, xid.labels["Hostname"], xid.labels["device"]) == (79, "node-a", "nvidia1")


def test_a_page_is_read_as_prometheus_client_reads_it() -> None:
    cards = [
        Card("GPU-0", busy=0.25, used_mib=1234, pods=(_POD, ("team-b", "x", "y"))),
        Card("GPU-1", instances=(Instance("7", "1g.10gb", 0.5, 100, pod=_POD),)),
    ]
    text = page("node-a", cards)
    metrics = {metric.name: metric for each in exporters() for metric in each.metrics}
    expected = []
    for family in text_string_to_metric_families(text.decode()):
        for line in family.samples:
            # The library adds this to the names of counters.
            metric = metrics.get(line.name.removesuffix("_total"))
            subject = metric.labels.subject(line.labels, "node-a") if metric else None
            if metric and subject and (made := metric.sample(subject, line.value, NOW)):
                expected.append(made)
    memory = Memory()
    first, again = _read(text, memory), _read(text, memory)
    assert first.samples == again.samples
    assert sorted(map(repr, first.samples)) == sorted(map(repr, expected))


@pytest.mark.parametrize("label", ["Hostname", "hostname"])
def test_the_node_is_the_exporter_pod_s_whatever_the_page_says(label: str) -> None:
    text = page("dcgm-exporter-x8k2d", [Card("GPU-0", busy=0.5)], node_label=label)
    assert {sample.subject.node for sample in _read(text).samples} == {"node-a"}


def test_an_instance_is_told_by_its_id_and_profile() -> None:
    text = page("node-a", [Card("GPU-0", instances=(Instance("7", "1g.10gb", 0.5, pod=_POD),))])
    subjects = {sample.subject for sample in _read(text).samples}
    assert subjects == {Subject("node-a", "GPU-0", 0, "7", "1g.10gb", PodName(*_POD))}


def test_a_timestamp_in_the_page_is_the_sample_s_own() -> None:
    taken = _read(b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} 50 1800000000250\n')
    assert [sample.time for sample in taken.samples] == [1_800_000_000.25]


def test_braces_commas_and_escapes_in_labels_are_read_right() -> None:
    line = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="G}\\"{,=\\\\",pod="p",namespace="n"} 50\n'
    (sample,) = _read(line).samples
    assert sample.subject == Subject("node-a", 'G}"{,=\\', 0, pod=PodName("n", "p"))


@pytest.mark.parametrize(
    "line",
    [
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"}',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} ',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} fifty',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} 50 now',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} 50 1 2',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0} 50',
        b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="\xff\xfe"} 50',
    ],
)
def test_a_line_that_is_cut_off_or_broken_is_counted_and_left_out(line: bytes) -> None:
    good = b'\nDCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-1"} 50\n'
    found = PageReader(exporters()).read(line + good, NOW, "node-a", Memory())
    assert [sample.subject.uuid for sample in found.samples] == ["GPU-1"]
    assert found.malformed == 1


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# HELP\n", b"<html></html>", b"up 1\n{} 1\n"])
def test_a_page_without_anything_of_interest_is_empty(text: bytes) -> None:
    assert _read(text).samples == []


def test_labels_that_are_not_written_any_more_are_forgotten() -> None:
    memory = Memory()
    _read(page("node-a", [Card("GPU-0"), Card("GPU-1")]), memory)
    _read(page("node-a", [Card("GPU-1")]), memory)
    assert not any(b"GPU-0" in labels for labels in memory.subjects)


@asynccontextmanager
async def _scrape(
    *exporters_: DcgmExporter, limits: HttpLimits | None = None
) -> AsyncIterator[Scrape]:
    limits = limits or HttpLimits(seconds=5.0, max_bytes=2**20, connections=4)
    endpoints = [Endpoint(each.node, f"http://{each.address}/metrics") for each in exporters_]
    async with Http(HttpAccess(), limits) as http:
        yield Scrape(endpoints, http, ScrapeSettings(limits=limits, concurrency=3), Clock())


async def test_only_the_nodes_that_are_asked_for_are_scraped() -> None:
    taken = Taken()
    with DcgmExporter("node-a", [Card("GPU-0", busy=0.5)]) as a, DcgmExporter("node-b", []) as b:
        async with _scrape(a, b) as source:
            report = await source.read({"node-a"}, taken)
        assert (a.scrapes, b.scrapes) == (1, 0)
    assert report.problems == ()
    assert taken.values(Quantity.SM_OCCUPANCY) == {"node-a/GPU-0": 0.25}


async def test_an_exporter_that_fails_is_named_and_the_others_are_read() -> None:
    taken = Taken()
    with (
        DcgmExporter("node-a", [Card("GPU-0")]) as a,
        DcgmExporter("node-b", []) as b,
        DcgmExporter("node-c", []) as c,
        DcgmExporter("node-d", []) as d,
    ):
        b.fault = Fault(status=500, body=b"profiling module\nis held")
        c.fault = Fault(body=b"x" * 2**21)
        d.stop()
        async with _scrape(a, b, c, d) as source:
            report = await source.read({"node-a", "node-b", "node-c", "node-d"}, taken)
    assert {sample.subject.node for sample in taken.samples} == {"node-a"}
    (problem,) = report.problems
    assert "node-b: status 500: profiling module is held" in problem
    assert "node-c: the answer is larger than 1048576 bytes" in problem
    assert "node-d: " in problem


async def test_an_exporter_that_is_silent_holds_up_no_other_for_longer_than_the_limit() -> None:
    taken = Taken()
    with DcgmExporter("node-a", [Card("GPU-0")]) as a, DcgmExporter("node-b", []) as b:
        b.fault = Fault(silent=threading.Event())
        async with _scrape(a, b, limits=HttpLimits(seconds=0.2)) as source:
            report = await source.read({"node-a", "node-b"}, taken)
    assert {sample.subject.node for sample in taken.samples} == {"node-a"}
    assert report.problems == ("exporters that gave nothing: node-b: no answer within 0.2 s",)


async def test_no_answer_at_all_is_an_error_and_no_exporter_at_all_is_none() -> None:
    with DcgmExporter("node-a", []) as a:
        a.stop()
        async with _scrape(a) as source:
            with pytest.raises(SourceError, match="node-a: "):
                await source.read({"node-a"}, Taken())
            assert (await source.read({"node-z"}, Taken())).problems == ()


def _pod(**status: Any) -> dict[str, Any]:
    ports = [{"name": "other", "containerPort": 1}, {"name": "metrics", "containerPort": 9401}]
    return {
        "spec": {"nodeName": "node-a", "containers": [{"ports": ports}]},
        "status": {"phase": "Running", "podIP": "10.0.0.7", **status},
    }


def test_the_endpoint_is_the_pod_s_address_and_its_named_port() -> None:
    (dcgm,) = exporters(("dcgm",))
    assert ExporterPods(dcgm).endpoint(_pod()) == Endpoint("node-a", "http://10.0.0.7:9401/metrics")
    own = ExporterPods(dcgm, port=1234, tls=True)
    assert own.endpoint(_pod(podIP="fd00::7")) == Endpoint(
        "node-a", "https://[fd00::7]:1234/metrics"
    )
    plain = {**_pod(), "spec": {"nodeName": "node-a"}}
    assert ExporterPods(dcgm).endpoint(plain) == Endpoint("node-a", "http://10.0.0.7:9400/metrics")


@pytest.mark.parametrize(
    "pod",
    [
        _pod(phase="Succeeded"),
        _pod(phase="Pending"),
        _pod(podIP=""),
        _pod(podIP="evil.example/?"),
        {"spec": {}, "status": _pod()["status"]},
        {},
    ],
)
def test_a_pod_that_cannot_be_called_is_no_endpoint(pod: dict[str, Any]) -> None:
    (dcgm,) = exporters(("dcgm",))
    assert ExporterPods(dcgm).endpoint(pod) is None


def test_pods_are_found_by_the_exporter_s_labels_unless_told_otherwise() -> None:
    (dcgm,) = exporters(("dcgm",))
    assert [each.label_selector for each in ExporterPods(dcgm).selections] == [
        "app=nvidia-dcgm-exporter",
        "app.kubernetes.io/name=dcgm-exporter",
    ]
    assert [each.label_selector for each in ExporterPods(dcgm, ("a=b",)).selections] == ["a=b"]
    with pytest.raises(ValueError, match="no port"):
        ExporterPods(dcgm, port=70_000)
