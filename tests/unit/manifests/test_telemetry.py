# SPDX-License-Identifier: Apache-2.0
"""Where telemetry is set up: what the leader and the extender are given, and what they may do."""

from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import sluice
from reconciler.cli.terminal import BAD_INPUT

_URL = "http://prometheus.monitoring:9090"
_PATCH_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}

_READ_METRICS = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


def _rendered(*arguments: str) -> dict[tuple[str, str], Any]:
    result = CliRunner().invoke(sluice.main, ["manifests", "--no-crds", *arguments])
    assert result.exit_code == 0, result.output
    documents = yaml.safe_load_all(result.stdout)
    return {(item["kind"], item["metadata"]["name"]): item for item in documents}


def _pod(objects: dict[tuple[str, str], Any], name: str) -> Any:
    return objects["Deployment", name]["spec"]["template"]["spec"]


def _environment(objects: dict[tuple[str, str], Any], name: str) -> dict[str, str]:
    container = _pod(objects, name)["containers"][0]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def test_without_telemetry_nobody_is_told_of_it_and_nodes_are_not_written() -> None:
    objects = _rendered("--scheduler", "default")
    assert _environment(objects, "sluice") == {}
    assert _environment(objects, "sluice-extender") == {}
    assert _PATCH_NODES not in objects["ClusterRole", "sluice"]["rules"]


def test_leader_and_extender_read_the_same_prometheus_and_the_leader_may_write_nodes() -> None:
    objects = _rendered(
        *("--scheduler", "default", "--prometheus-url", _URL, "--prometheus-tenant", "gpu"),
        *("--telemetry-env", "SLUICE_SAMPLING_TRAINING_SECONDS=60"),
        *("--extender-env", "GPU_UTIL_THRESHOLD=0.9"),
    )
    told = {
        "PROMETHEUS_URL": _URL,
        "PROMETHEUS_TENANT": "gpu",
        "SLUICE_SAMPLING_TRAINING_SECONDS": "60",
    }
    assert _environment(objects, "sluice") == told
    assert _environment(objects, "sluice-extender") == told | {"GPU_UTIL_THRESHOLD": "0.9"}
    assert _PATCH_NODES in objects["ClusterRole", "sluice"]["rules"]


def test_annotations_that_others_write_are_not_written_by_the_leader() -> None:
    objects = _rendered("--telemetry-source", "Annotations")
    assert _PATCH_NODES not in objects["ClusterRole", "sluice"]["rules"]


def test_a_secret_of_credentials_is_mounted_where_the_flags_can_name_its_files() -> None:
    objects = _rendered(
        *("--scheduler", "default", "--prometheus-url", _URL, "--prometheus-secret", "reader"),
        *("--prometheus-token-file", "/etc/sluice/prometheus/token"),
    )
    for name in ("sluice", "sluice-extender"):
        pod = _pod(objects, name)
        (volume,) = [each for each in pod["volumes"] if each["name"] == "prometheus"]
        assert volume["secret"]["secretName"] == "reader"
        mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
        assert mounts["prometheus"] == "/etc/sluice/prometheus"
        assert _environment(objects, name)["PROMETHEUS_TOKEN_FILE"].startswith(mounts["prometheus"])


_GUARDED = (
    *("--scheduler", "default", "--telemetry-source", "Scrape", "--exporter-scheme", "https"),
    *("--exporter-ca-file", "/etc/sluice/exporters/ca.crt", "--exporter-secret", "exporters-ca"),
    *("--exporter-server-name", "dcgm-exporter.gpu-operator.svc"),
)


def test_exporters_behind_tls_are_told_to_leader_and_extender_with_the_ca() -> None:
    objects = _rendered(*_GUARDED)
    for name in ("sluice", "sluice-extender"):
        assert _environment(objects, name) == {
            "SLUICE_TELEMETRY_SOURCE": "Scrape",
            "SLUICE_EXPORTER_SCHEME": "https",
            "SLUICE_EXPORTER_CA_FILE": "/etc/sluice/exporters/ca.crt",
            "SLUICE_EXPORTER_SERVER_NAME": "dcgm-exporter.gpu-operator.svc",
        }
        assert _sources(objects, name) == [{"secret": {"name": "exporters-ca"}}]
        assert _READ_METRICS not in objects["ClusterRole", name]["rules"]


def test_exporters_behind_a_proxy_see_a_token_for_them_alone_of_an_account_that_may_read() -> None:
    objects = _rendered(*_GUARDED, "--exporter-audience", "exporters")
    for name in ("sluice", "sluice-extender"):
        token_file = _environment(objects, name)["SLUICE_EXPORTER_TOKEN_FILE"]
        (secret, own) = _sources(objects, name)
        token = own["serviceAccountToken"]
        assert secret == {"secret": {"name": "exporters-ca"}}
        assert token["audience"] == "exporters"
        assert token_file == f"/etc/sluice/exporters/{token['path']}"
        assert _READ_METRICS in objects["ClusterRole", name]["rules"]


def _sources(objects: dict[tuple[str, str], Any], name: str) -> Any:
    pod = _pod(objects, name)
    (volume,) = [each for each in pod["volumes"] if each["name"] == "exporters"]
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    assert mounts["exporters"] == "/etc/sluice/exporters"
    return volume["projected"]["sources"]


@pytest.mark.parametrize("processes", ["together", "apart"])
def test_only_who_may_lead_is_told_how_many_nodes_pods_prefer(processes: str) -> None:
    objects = _rendered(
        *("--scheduler", "default", "--preferred-nodes", "3", "--processes", processes),
        *("--prometheus-url", _URL),
    )
    leader = "sluice" if processes == "together" else "sluice-reconciler"
    assert _environment(objects, leader) == {
        "PROMETHEUS_URL": _URL,
        "SLUICE_PREFERRED_NODES": "3",
    }
    assert _environment(objects, "sluice-extender") == {"PROMETHEUS_URL": _URL}
    if processes == "apart":
        assert _environment(objects, "sluice") == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--prometheus-url", "prometheus:9090"), "the address of Prometheus"),
        (("--telemetry-source", "Prometheus"), "needs PROMETHEUS_URL"),
        (("--telemetry-env", "1X=1"), "--telemetry-env '1X=1'"),
        (("--telemetry-env", "SLUICE_SAMPLING_TRAINING_SECONDS=0"), "SECONDS is '0'"),
        (("--telemetry-env", "GPU_UTIL_THRESHOLD=x"), "GPU_UTIL_THRESHOLD is 'x'"),
        (("--telemetry-env", "SLUICE_PREFERRED_NODES=99"), "SLUICE_PREFERRED_NODES is '99'"),
        (
            ("--scheduler", "default", "--extender-env", "GPU_UTIL_THRESHOLD=2"),
            "GPU_UTIL_THRESHOLD is '2'",
        ),
        (
            ("--scheduler", "default", "--extender-env", "GPU_UTIL_WEIGHT=heavy"),
            "GPU_UTIL_WEIGHT is 'heavy'",
        ),
        (("--prometheus-secret", "No Name"), "--prometheus-secret 'No Name'"),
        (("--exporter-secret", "No Name"), "--exporter-secret 'No Name'"),
        (("--exporter-secret", "ca"), "changes nothing without --telemetry-source Scrape"),
        (("--exporter-scheme", "tls"), "SLUICE_EXPORTER_SCHEME is 'tls'"),
        (("--exporter-ca-file", "/ca.crt"), "SLUICE_EXPORTER_CA_FILE is for https"),
        (("--exporter-audience", "exporters"), "TOKEN_FILE needs SLUICE_EXPORTER_SCHEME=https"),
        (("--exporters", "--exporter-scheme", "https"), "need --exporter-web-config"),
    ],
)
def test_what_processes_would_not_start_with_is_not_rendered(
    arguments: tuple[str, ...], told: str
) -> None:
    result = CliRunner().invoke(sluice.main, ["manifests", *arguments])
    assert result.exit_code == BAD_INPUT
    assert told in result.stderr
