# SPDX-License-Identifier: Apache-2.0
"""The exporters that are rendered measure as often as those who read them look."""

from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import sluice
from policies.telemetry.names import exporters
from reconciler.cli.terminal import BAD_INPUT


def _rendered(*arguments: str) -> dict[tuple[str, str], Any]:
    result = CliRunner().invoke(sluice.main, ["manifests", "--no-crds", "--exporters", *arguments])
    assert result.exit_code == 0, result.output
    documents = yaml.safe_load_all(result.stdout)
    return {(item["kind"], item["metadata"]["name"]): item for item in documents}


def _template(objects: dict[tuple[str, str], Any], sampling: str) -> Any:
    return objects["DaemonSet", f"dcgm-exporter-{sampling}"]["spec"]["template"]


def _environment(objects: dict[tuple[str, str], Any], sampling: str) -> dict[str, str]:
    (container,) = _template(objects, sampling)["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}


def test_each_class_measures_in_its_own_interval_in_milliseconds() -> None:
    objects = _rendered()
    assert _environment(objects, "inference")["DCGM_EXPORTER_INTERVAL"] == "10000"
    assert _environment(objects, "training")["DCGM_EXPORTER_INTERVAL"] == "30000"


def test_intervals_that_sluice_is_told_are_the_exporters_too() -> None:
    objects = _rendered("--telemetry-env", "SLUICE_SAMPLING_INFERENCE_SECONDS=2.5")
    assert _environment(objects, "inference")["DCGM_EXPORTER_INTERVAL"] == "2500"


def test_sluice_finds_the_exporters_that_it_renders() -> None:
    (dcgm,) = exporters(("dcgm",))
    labels = _template(_rendered(), "training")["metadata"]["labels"]
    selectors = [selector.split("=") for selector in dcgm.discovery.selectors]
    assert any(labels.get(key) == value for key, value in selectors)
    (container,) = _template(_rendered(), "training")["spec"]["containers"]
    assert container["ports"] == [{"name": dcgm.discovery.port_names[0], "containerPort": 9400}]


def test_pods_that_share_cards_are_told_of_under_every_name_that_they_ask_by() -> None:
    found = _environment(_rendered(), "inference")
    assert found["KUBERNETES_VIRTUAL_GPUS"] == "true"
    assert found["NVIDIA_RESOURCE_NAMES"] == "nvidia.com/gpu.shared"


def test_exporters_are_where_they_are_looked_for() -> None:
    objects = _rendered("--exporter-namespace", "monitoring", "--exclude", "monitoring")
    for name in ("dcgm-exporter-inference", "dcgm-exporter-training"):
        assert objects["DaemonSet", name]["metadata"]["namespace"] == "monitoring"


def test_a_runtime_class_is_left_out_where_there_is_none() -> None:
    assert _template(_rendered(), "training")["spec"]["runtimeClassName"] == "nvidia"
    objects = _rendered("--exporter-runtime-class", "")
    assert "runtimeClassName" not in _template(objects, "training")["spec"]


@pytest.mark.parametrize(
    ("namespace", "told"),
    [("monitoring", "add --exclude monitoring"), ("No Name", "this is no name of a namespace")],
)
def test_exporters_are_not_put_where_sluice_would_take_their_gpus_away(
    namespace: str, told: str
) -> None:
    arguments = ["manifests", "--exporters", "--exporter-namespace", namespace]
    result = CliRunner().invoke(sluice.main, arguments)
    assert result.exit_code == BAD_INPUT
    assert told in result.stderr


_GUARDED = ("--exporter-web-config", "exporters-web")
_SCRAPED = ("--telemetry-source", "Scrape")
_NAMED = ("--exporter-server-name", "dcgm-exporter.gpu-operator.svc")


def test_exporters_serve_by_their_web_configuration_where_there_is_one() -> None:
    objects = _rendered(*_GUARDED, *_SCRAPED, "--exporter-scheme", "https", *_NAMED)
    for sampling in ("inference", "training"):
        pod = _template(objects, sampling)["spec"]
        (volume,) = [each for each in pod["volumes"] if each["name"] == "web"]
        assert volume["secret"]["secretName"] == "exporters-web"
        (container,) = pod["containers"]
        (mount,) = [each for each in container["volumeMounts"] if each["name"] == "web"]
        file = _environment(objects, sampling)["DCGM_EXPORTER_WEB_CONFIG_FILE"]
        assert file == f"{mount['mountPath']}/web-config.yaml"
        # A kubelet that had to log in would take every exporter for dead.
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["tcpSocket"] == {"port": "metrics"}
            assert "httpGet" not in container[probe]


def test_exporters_without_a_web_configuration_are_probed_by_what_they_say() -> None:
    (container,) = _template(_rendered(), "training")["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "metrics"}
    assert "DCGM_EXPORTER_WEB_CONFIG_FILE" not in _environment(_rendered(), "training")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*_SCRAPED, "--exporter-scheme", "https"), "need --exporter-web-config for that"),
        (
            (*_SCRAPED, *_GUARDED, "--exporter-scheme", "https"),
            "need --exporter-server-name, the name that their certificate is for, such as dcgm",
        ),
        ((*_SCRAPED, *_GUARDED), "these exporters are scraped by --exporter-scheme https"),
        (("--exporter-web-config", "No Name"), "this is no name of a Secret"),
    ],
)
def test_exporters_that_would_not_be_understood_are_not_rendered(
    arguments: tuple[str, ...], told: str
) -> None:
    result = CliRunner().invoke(sluice.main, ["manifests", "--exporters", *arguments])
    assert result.exit_code == BAD_INPUT
    assert told in result.stderr
