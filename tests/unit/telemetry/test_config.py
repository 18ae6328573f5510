# SPDX-License-Identifier: Apache-2.0
"""Telemetry as the environment asks for it, and what it is told where it asks wrongly."""

import pytest

from policies.telemetry.load import LoadWeights
from policies.telemetry.quantities import Quantity
from policies.telemetry.smoothing import Method, Smoothing
from reconciler.telemetry.config import TelemetryConfig, config_from_environment
from reconciler.telemetry.kinds import SourceKind


def test_without_a_word_there_is_no_source() -> None:
    config = config_from_environment({})
    assert config.source is SourceKind.NONE
    assert config == TelemetryConfig(pods=config.pods)


def test_an_address_of_prometheus_makes_it_the_source() -> None:
    config = config_from_environment(
        {
            "PROMETHEUS_URL": "https://mimir.example/prometheus",
            "PROMETHEUS_TOKEN_FILE": "/token",
            "PROMETHEUS_CA_FILE": "/ca.crt",
            "PROMETHEUS_TENANT": "gpu",
            "PROMETHEUS_MATCHERS": 'cluster="a"',
            "SLUICE_TELEMETRY_EXPORTERS": "dcgm, hami",
        }
    )
    assert config.source is SourceKind.PROMETHEUS
    assert config.prometheus is not None
    access = config.prometheus.access
    assert (access.token_file, access.ca_file, access.tenant) == ("/token", "/ca.crt", "gpu")
    assert config.prometheus.exporters == ("dcgm", "hami")
    assert config.prometheus.range_seconds == 90


def test_intervals_and_what_follows_from_them_can_be_set() -> None:
    config = config_from_environment(
        {
            "SLUICE_TELEMETRY_SOURCE": "scrape",
            "SLUICE_SAMPLING_INFERENCE_SECONDS": "5",
            "SLUICE_SAMPLING_TRAINING_SECONDS": "60",
            "SLUICE_EXPORTER_SELECTOR": "app=own",
            "SLUICE_EXPORTER_NAMESPACE": "gpu",
            "SLUICE_EXPORTER_PORT": "9401",
            "GPU_UTIL_WEIGHT": "0.6",
        }
    )
    assert [each.interval_seconds for each in config.classes] == [5.0, 60.0]
    assert {pods.selectors for pods in config.pods} == {("app=own",)}
    assert {(pods.namespace, pods.port) for pods in config.pods} == {("gpu", 9401)}
    assert config.weights == LoadWeights(0.6, 0.4)


@pytest.mark.parametrize("between", ["; ", "\n", "\n\n"])
def test_queries_and_smoothing_are_declared_by_name(between: str) -> None:
    queries = 'DCGM_FI_DEV_FB_USED=gpu:used{a="b=c"}', "DCGM_FI_DEV_FB_FREE = gpu:free"
    smoothing = "utilisation=Exponential:60", "memory_used_mib=percentile:300:90"
    config = config_from_environment(
        {
            "PROMETHEUS_URL": "http://prometheus:9090",
            "PROMETHEUS_QUERIES": between.join(queries),
            "SLUICE_TELEMETRY_SMOOTHING": between.join(smoothing),
        }
    )
    assert config.prometheus is not None
    assert config.prometheus.queries == {
        "DCGM_FI_DEV_FB_USED": 'gpu:used{a="b=c"}',
        "DCGM_FI_DEV_FB_FREE": "gpu:free",
    }
    assert config.smoothing == {
        Quantity.UTILISATION: Smoothing(Method.EXPONENTIAL, 60.0),
        Quantity.MEMORY_USED: Smoothing(Method.PERCENTILE, 300.0, 90.0),
    }


def test_annotations_as_the_source_are_not_written() -> None:
    config = config_from_environment({"SLUICE_TELEMETRY_SOURCE": "Annotations"})
    assert config.writes_annotations is False


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SLUICE_TELEMETRY_SOURCE", "influx", "can be one of None, Prometheus, Scrape"),
        ("SLUICE_TELEMETRY_SOURCE", "prometheus", "needs PROMETHEUS_URL"),
        ("PROMETHEUS_URL", "prometheus:9090", "not an http or https address"),
        ("SLUICE_TELEMETRY_EXPORTERS", "intel", "no exporter is called 'intel'"),
        ("SLUICE_SAMPLING_TRAINING_SECONDS", "0", "SLUICE_SAMPLING_TRAINING_SECONDS is '0'"),
        ("SLUICE_SAMPLING_INFERENCE_SECONDS", "nan", "no number of seconds"),
        ("SLUICE_EXPORTER_PORT", "http", "no port"),
        ("SLUICE_EXPORTER_PORT", "70000", "no port"),
        ("GPU_UTIL_WEIGHT", "1.5", "from 0 to 1"),
        ("GPU_UTIL_WEIGHT", "most", "from 0 to 1"),
        ("SLUICE_TELEMETRY_SMOOTHING", "speed=exponential:60", "can be one of utilisation"),
        ("SLUICE_TELEMETRY_SMOOTHING", "utilisation", "not like NAME=VALUE"),
        ("SLUICE_TELEMETRY_SMOOTHING", "utilisation=mean:60", "'mean:60' is not like"),
        ("SLUICE_TELEMETRY_SMOOTHING", "utilisation=exponential", "needs a window above 0"),
        ("SLUICE_TELEMETRY_SMOOTHING", "utilisation=exponential:nan", "needs a window above 0"),
        ("SLUICE_TELEMETRY_SMOOTHING", "utilisation=percentile:60:101", "up to 100"),
        ("SLUICE_TELEMETRY_SMOOTHING", "utilisation=percentile:1:2:3", "is not like"),
    ],
)
def test_a_variable_that_says_nothing_sensible_is_named(
    name: str, value: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        config_from_environment({name: value})


@pytest.mark.parametrize("queries", ["up=up", "DCGM_FI_DEV_FB_USED", "=x", "DCGM_FI_DEV_FB_USED="])
def test_queries_for_what_is_not_read_or_that_are_none_are_told(queries: str) -> None:
    environment = {"PROMETHEUS_URL": "http://prometheus:9090", "PROMETHEUS_QUERIES": queries}
    with pytest.raises(ValueError, match=r"no metric that Sluice reads|PROMETHEUS_QUERIES"):
        config_from_environment(environment)
