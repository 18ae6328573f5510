# SPDX-License-Identifier: Apache-2.0
"""How much GPU a node offers to quota, by what its plugin advertises and its labels say."""

from typing import Final

import pytest

from policies.cluster.capacity import gpu_milli
from policies.cluster.nodes import read_node
from tests.controlplane import nodes as fleet
from tests.support.builders import Json, catalog

H100: Final = "NVIDIA-H100-80GB-HBM3"


def _milli(allocatable: dict[str, int], **labels: str) -> int:
    named = {
        f"nvidia.com/gpu.{key.replace('_', '-')}" if "/" not in key else key: value
        for key, value in labels.items()
    }
    raw = {"metadata": {"labels": named}, "status": {"allocatable": allocatable}}
    return gpu_milli(read_node(raw), catalog())


@pytest.mark.parametrize(
    ("raw", "milli"),
    [
        (fleet.whole("a"), 8000),
        (fleet.time_sliced("a"), 8000),
        (fleet.time_sliced("a", count=4, replicas=3), 4000),
        (fleet.mps("a"), 8000),
        (fleet.amd("a"), 8000),
        (fleet.cpu("a"), 0),
        # 28 of 1g.10gb, 6 of 2g.20gb and 2 more of 1g.10gb, 4 of 3g.40gb.
        (fleet.mig_mixed("a"), 30 * 125 + 6 * 250 + 4 * 500),
    ],
)
def test_a_node_offers_what_its_devices_are_charged(raw: Json, milli: int) -> None:
    assert gpu_milli(read_node(raw), catalog()) == milli


def test_shares_that_keep_the_whole_gpus_name_are_shares() -> None:
    whole = {"nvidia.com/gpu": 32}
    assert _milli(whole, sharing_strategy="time-slicing", replicas="4") == 8000
    assert _milli(whole, sharing_strategy="mps", replicas="4") == 8000
    assert _milli(whole, sharing_strategy="none", replicas="1") == 32_000
    assert _milli(whole) == 32_000


def test_whole_gpus_beside_shares_of_another_name_are_whole() -> None:
    labels = {"sharing_strategy": "time-slicing", "replicas": "4"}
    assert _milli({"nvidia.com/gpu": 1, "nvidia.com/gpu.shared": 4}, **labels) == 2000


def test_shares_are_rounded_once_for_the_node_and_down() -> None:
    assert _milli({"nvidia.com/gpu.shared": 21}, replicas="7") == 3000
    assert _milli({"nvidia.com/gpu.shared": 2}, replicas="3") == 666
    assert _milli({"nvidia.com/gpu.shared": 4}, replicas="3") == 1333


def test_the_number_of_gpus_tells_the_size_of_shares_that_no_label_tells() -> None:
    assert _milli({"nvidia.com/gpu.shared": 16}, count="4") == 4000
    assert _milli({"nvidia.com/gpu.shared": 16}) == 0
    assert _milli({"nvidia.com/gpu.shared": 2}, count="4") == 0


def test_devices_that_are_out_of_order_are_not_offered() -> None:
    assert _milli({"nvidia.com/gpu": 7}, count="8", sharing_strategy="none") == 7000


def test_an_instance_is_its_memory_slices_of_its_board() -> None:
    assert _milli({"nvidia.com/mig-1g.10gb": 7}, product=H100) == 875
    assert _milli({"nvidia.com/mig-1g.10gb.me": 1}, product=H100) == 125
    assert _milli({"nvidia.com/mig-1g.6gb": 4}, product="NVIDIA-A30") == 1000
    # 1g.10gb is one slice of eight on an H100, two on an A100 of 40 GB.
    assert _milli({"nvidia.com/mig-1g.10gb": 4}, product="NVIDIA-A100-SXM4-40GB") == 1000


def test_an_instance_of_an_unknown_board_is_the_least_it_is_of_any() -> None:
    assert _milli({"nvidia.com/mig-1g.10gb": 4}, product="NVIDIA-NEXT") == 500
    assert _milli({"nvidia.com/mig-1g.10gb": 4}) == 500
    assert _milli({"nvidia.com/mig-9g.999gb": 4}) == 0


def test_instances_that_are_shared_in_time_are_divided() -> None:
    name = "nvidia.com/mig-1g.10gb"
    labels = {f"{name}.replicas": "2", f"{name}.sharing-strategy": "time-slicing", "product": H100}
    assert _milli({f"{name}.shared": 14}, **labels) == 875
    assert _milli({name: 14}, **labels) == 875
    assert _milli({name: 7}, **{**labels, f"{name}.sharing-strategy": "none"}) == 875


def test_instances_of_the_single_strategy_go_by_the_product() -> None:
    labels = {"slices.gi": "1", "count": "7", "replicas": "1", "sharing_strategy": "none"}
    assert _milli({"nvidia.com/gpu": 7}, **labels, product=f"{H100}-MIG-1g.10gb") == 875
    shared = {**labels, "replicas": "2", "sharing_strategy": "time-slicing"}
    assert _milli({"nvidia.com/gpu": 14}, **shared, product=f"{H100}-MIG-1g.10gb-SHARED") == 875
    assert _milli({"nvidia.com/gpu": 7}, **labels, product=f"{H100}-MIG-INVALID") == 0


def test_devices_of_a_form_that_cannot_be_judged_offer_nothing() -> None:
    assert _milli({"nvidia.com/gpumem": 80_000, "cpu": 8, "example.com/nic": 4}) == 0


@pytest.mark.parametrize("replicas", ["", "0", "-1", "many", "9" * 5000])
def test_an_odd_number_of_replicas_is_none(replicas: str) -> None:
    assert _milli({"nvidia.com/gpu": 8}, sharing_strategy="mps", replicas=replicas) == 8000
    assert _milli({"nvidia.com/gpu.shared": 8}, sharing_strategy="mps", replicas=replicas) == 0
