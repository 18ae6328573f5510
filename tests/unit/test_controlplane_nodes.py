# SPDX-License-Identifier: Apache-2.0
"""The simulated nodes are such as real hardware could be."""

import re
from typing import Any

import pytest

from tests.controlplane import nodes

_SLICES = re.compile(r"(\d)g\.")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")

_FLEET: tuple[Any, ...] = nodes.fleet()


def _extended(node: Any) -> dict[str, int]:
    allocatable = node["status"]["allocatable"]
    return {name: int(count) for name, count in allocatable.items() if "/" in name}


def test_the_fleet_gives_every_form_of_gpu() -> None:
    given = {node["metadata"]["name"]: _extended(node) for node in _FLEET}

    assert given == {
        "h100-whole": {"nvidia.com/gpu": 8},
        "h100-shared": {"nvidia.com/gpu.shared": 32},
        "h100-mig": {
            "nvidia.com/mig-1g.10gb": 30,
            "nvidia.com/mig-2g.20gb": 6,
            "nvidia.com/mig-3g.40gb": 4,
        },
        "a100-whole": {"nvidia.com/gpu": 8},
        "l40s-shared": {"nvidia.com/gpu.shared": 32},
        "mi300x-whole": {"amd.com/gpu": 8},
        "cpu": {},
    }


def test_a_node_of_mps_gives_its_shares_and_says_how_it_makes_them() -> None:
    node: Any = nodes.mps("a100-mps")

    assert _extended(node) == {"nvidia.com/gpu.shared": 64}
    labels = node["metadata"]["labels"]
    assert labels["nvidia.com/gpu.sharing-strategy"] == "mps"
    assert labels["nvidia.com/gpu.replicas"] == "8"
    assert labels["nvidia.com/mps.capable"] == "true"


@pytest.mark.parametrize("layout", nodes.MIXED_LAYOUT)
def test_a_mig_layout_fits_seven_compute_slices(layout: tuple[str, ...]) -> None:
    slices = [_SLICES.match(profile) for profile in layout]

    assert sum(int(found[1]) for found in slices if found) <= 7


@pytest.mark.parametrize("node", _FLEET, ids=lambda node: node["metadata"]["name"])
def test_labels_are_legal_and_gpu_nodes_are_tainted(node: Any) -> None:
    assert all(_LABEL_VALUE.fullmatch(value) for value in node["metadata"]["labels"].values())
    vendors = {name.partition("/")[0] for name in _extended(node)}
    assert {taint["key"] for taint in node["spec"]["taints"]} == {f"{v}/gpu" for v in vendors}


@pytest.mark.parametrize("node", _FLEET, ids=lambda node: node["metadata"]["name"])
def test_what_the_labels_count_is_what_the_node_gives(node: Any) -> None:
    labels = node["metadata"]["labels"]
    for resource, count in _extended(node).items():
        if resource.startswith("nvidia.com/mig-"):
            assert labels[f"{resource}.count"] == str(count)
        elif resource.startswith("nvidia.com/"):
            gpus, replicas = labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.replicas"]
            assert int(gpus) * int(replicas) == count


def test_name_count_and_replicas_are_parameters() -> None:
    node: Any = nodes.time_sliced("small", nodes.L40S, count=2, replicas=10)

    assert node["metadata"]["name"] == "small"
    assert _extended(node) == {"nvidia.com/gpu.shared": 20}
    assert node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"] == "time-slicing"
