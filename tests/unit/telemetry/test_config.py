# SPDX-License-Identifier: Apache-2.0
"""Telemetry as the environment asks for it, and what it is told where it asks wrongly."""

import pytest

from policies.telemetry.load import LoadWeights
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
    ],
)
def test_a_variable_that_says_nothing_sensible_is_named(
    name: str, value: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        config_from_environment({name: value})
