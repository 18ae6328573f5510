# SPDX-License-Identifier: Apache-2.0
"""The exporters that are rendered: a real cluster takes them, and each node gets its own."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from policies.telemetry.classes import SAMPLING_LABEL
from policies.vendors import build_catalog
from reconciler.manifests.exporters import ExporterOptions, exporter_objects
from reconciler.manifests.options import ManifestOptions
from tests.controlplane import ControlPlane, nodes

_SECONDS: Final = 40.0
_WANTED: Final = {
    "exported-shared": "10000",
    "exported-whole": "30000",
    "exported-named": "10000",
}


@pytest.fixture
def exporters(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """The exporters in a namespace, and nodes of every class."""
    options = ManifestOptions(build_catalog(), exclude_namespaces=(namespace,))
    objects: list[Any] = list(exporter_objects(_guarded(options, namespace)))
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": [runtime, *objects]}
    control_plane.create_nodes(
        [nodes.time_sliced("exported-shared"), nodes.whole("exported-whole"), _named()]
    )
    control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=listed)
    yield namespace
    control_plane.kubectl("delete", "--wait=false", "--filename=-", stdin=listed)
    control_plane.kubectl("delete", "node", *_WANTED)


def _named() -> Mapping[str, object]:
    """Return a node of whole cards that says that it serves."""
    found: dict[str, Any] = dict(nodes.whole("exported-named"))
    found["metadata"]["labels"][SAMPLING_LABEL] = "inference"
    return found


def _guarded(options: ManifestOptions, namespace: str) -> ExporterOptions:
    return ExporterOptions(options, namespace, web_config="exporters-web")


def test_every_gpu_node_gets_one_exporter_that_measures_as_often_as_its_class(
    control_plane: ControlPlane, exporters: str
) -> None:
    deadline = time.monotonic() + _SECONDS
    while (found := _intervals(control_plane, exporters)) != _WANTED:
        assert time.monotonic() < deadline, found
        time.sleep(0.3)
    every = [pod["spec"]["nodeName"] for pod in _running(control_plane, exporters)]
    assert len(every) == len(set(every))


def _running(control_plane: ControlPlane, namespace: str) -> list[Any]:
    pods = control_plane.get("pods", "-n", namespace)["items"]
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def _intervals(control_plane: ControlPlane, namespace: str) -> dict[str, str]:
    """Return the interval of the exporter on each of our nodes, in ms."""
    found = {}
    for pod in _running(control_plane, namespace):
        if pod["spec"]["nodeName"] in _WANTED:
            environment = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
            interval = environment["DCGM_EXPORTER_INTERVAL"]["value"]
            found[pod["spec"]["nodeName"]] = interval
    return found
