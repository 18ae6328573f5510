# SPDX-License-Identifier: Apache-2.0
"""What exporters call things: the data is well-formed, and labels become subjects."""

import pytest
from jsonschema import Draft202012Validator

from policies.telemetry.names import EXPORTERS, Metric, exporters, read_data
from policies.telemetry.quantities import UNITS, Quantity
from policies.telemetry.samples import PodName, Subject


def _metric(name: str) -> Metric:
    return next(metric for each in exporters() for metric in each.metrics if metric.name == name)


@pytest.mark.parametrize("name", EXPORTERS)
def test_the_data_of_an_exporter_fits_the_schema(name: str) -> None:
    Draft202012Validator(read_data("schema")).validate(read_data(name))


def test_the_schema_knows_just_the_quantities_and_units_that_there_are() -> None:
    properties = read_data("schema")["properties"]["metrics"]["items"]["properties"]
    assert set(properties["quantity"]["enum"]) == set(Quantity)
    assert set(properties["unit"]["enum"]) == set(UNITS)


def test_no_two_metrics_have_one_name_or_one_rank() -> None:
    metrics = [metric for each in exporters() for metric in each.metrics]
    assert len({metric.name for metric in metrics}) == len(metrics)
    assert len({metric.rank for metric in metrics}) == len(metrics)


def test_an_exporter_that_nobody_knows_is_named() -> None:
    with pytest.raises(ValueError, match="no exporter is called 'intel'; there are dcgm, amd"):
        exporters(("dcgm", "intel"))


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        (
            "DCGM_FI_DEV_FB_USED",
            {"gpu": "3", "UUID": "GPU-1", "Hostname": "a", "namespace": "t", "pod": "p"},
            Subject("a", "GPU-1", 3, pod=PodName("t", "p")),
        ),
        (
            "DCGM_FI_DEV_FB_USED",
            {"gpu": "0", "UUID": "GPU-1", "hostname": "a", "pod_name": "p", "pod_namespace": "t"},
            Subject("a", "GPU-1", 0, pod=PodName("t", "p")),
        ),
        (
            "DCGM_FI_DEV_FB_USED",
            {"gpu": "0", "UUID": "GPU-1", "Hostname": "a", "GPU_I_ID": "7"}
            | {"GPU_I_PROFILE": "1g.10gb"},
            Subject("a", "GPU-1", 0, "7", "1g.10gb"),
        ),
        (
            "gpu_used_vram",
            {"gpu_id": "2", "gpu_uuid": "ccff", "hostname": "b", "pod": "", "namespace": ""},
            Subject("b", "ccff", 2),
        ),
        (
            "hami_host_gpu_memory_used_bytes",
            {"node": "c", "device_index": "1", "device_uuid": "GPU-2", "device_type": "x"},
            Subject("c", "GPU-2", 1),
        ),
        (
            "HostGPUMemoryUsage",
            {"nodeid": "c", "deviceidx": "1", "deviceuuid": "GPU-2", "devicetype": "x"},
            Subject("c", "GPU-2", 1),
        ),
    ],
)
def test_labels_of_each_exporter_become_a_subject(
    name: str, labels: dict[str, str], expected: Subject
) -> None:
    assert _metric(name).labels.subject(labels) == expected


_PARTITION = {
    "card_model": "102-G30211-0C",
    "card_series": "AMD Instinct MI300X OAM",
    "gpu_compute_partition_type": "cpx",
    "gpu_memory_partition_type": "nps4",
    "hostname": "tw009",
    "serial_number": "692409005296",
}


def test_partitions_of_an_amd_card_are_told_apart_though_their_serial_number_is_one() -> None:
    subject = _metric("gpu_used_vram").labels.subject
    found = [subject({**_PARTITION, "gpu_id": str(index)}) for index in (40, 47)]
    assert [each.card for each in found if each] == ["#40", "#47"]
    named = subject({**_PARTITION, "gpu_id": "47", "gpu_uuid": "c3ff74a1"})
    assert named == Subject("tw009", "c3ff74a1", 47)


def test_the_pod_of_an_exporter_that_fills_in_for_empty_labels_is_nobody_s() -> None:
    labels = {**_PARTITION, "gpu_id": "47", "pod": "default-metrics-exporter-vvvkm"}
    assert _metric("gpu_gfx_activity").labels.subject(labels) == Subject("tw009", "", 47)


def test_a_pod_that_prometheus_renamed_comes_before_the_exporter_s_own() -> None:
    labels = {"gpu": "0", "UUID": "GPU-1", "Hostname": "a", "pod": "nvidia-dcgm-exporter-x"}
    labels |= {"namespace": "gpu-operator", "exported_pod": "job", "exported_namespace": "team"}
    subject = _metric("DCGM_FI_DEV_GPU_UTIL").labels.subject(labels)
    assert subject is not None
    assert subject.pod == PodName("team", "job")


def test_an_idle_card_is_not_attributed_to_the_exporter_s_own_pod() -> None:
    labels = {"gpu": "0", "UUID": "GPU-1", "Hostname": "a", "pod": "nvidia-dcgm-exporter-x"}
    labels |= {"namespace": "gpu-operator", "container": "nvidia-dcgm-exporter"}
    subject = _metric("DCGM_FI_DEV_GPU_UTIL").labels.subject(labels)
    assert subject == Subject("a", "GPU-1", 0)


def test_a_label_of_the_node_that_discovery_gave_comes_before_the_exporter_s_host_name() -> None:
    labels = {"gpu": "0", "UUID": "GPU-1", "Hostname": "dcgm-exporter-x8k2d", "node": "a"}
    assert _metric("DCGM_FI_DEV_GPU_UTIL").labels.subject(labels) == Subject("a", "GPU-1", 0)


@pytest.mark.parametrize(
    "labels",
    [
        {"gpu": "0", "UUID": "GPU-1"},
        {"Hostname": "a"},
        {"Hostname": "a", "gpu": "nvidia0"},
        {"Hostname": "a", "gpu": "99999"},
        {},
    ],
)
def test_a_series_without_node_or_card_is_of_nothing(labels: dict[str, str]) -> None:
    assert _metric("DCGM_FI_DEV_GPU_UTIL").labels.subject(labels) is None


@pytest.mark.parametrize(
    ("name", "raw", "quantity", "value"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", 40.0, Quantity.UTILISATION, 0.4),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.4, Quantity.UTILISATION, 0.4),
        ("HostGPUMemoryUsage", 3 * 2**20, Quantity.MEMORY_USED, 3.0),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5000.0, Quantity.ENERGY, 5.0),
        ("gpu_energy_consumed", 5e6, Quantity.ENERGY, 5.0),
    ],
)
def test_values_are_turned_into_the_quantity_s_unit(
    name: str, raw: float, quantity: Quantity, value: float
) -> None:
    sample = _metric(name).sample(Subject("a", "GPU-1", 0), raw, 1.0)
    assert sample is not None
    assert sample.quantity is quantity
    assert sample.value == pytest.approx(value)


def test_utilisation_of_the_whole_card_is_none_of_an_instance() -> None:
    subject = Subject("a", "GPU-1", 0, "7", "1g.10gb")
    assert _metric("DCGM_FI_DEV_GPU_UTIL").sample(subject, 50.0, 1.0) is None
    assert _metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE").sample(subject, 0.5, 1.0) is not None
