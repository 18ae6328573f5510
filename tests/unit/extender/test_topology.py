# SPDX-License-Identifier: Apache-2.0
"""What links a node's GPUs, and what that costs work which is spread over them."""

import pytest

from policies.cluster.nodes import Node
from policies.placement.topology import COST, Interconnect, interconnect_of


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({"sluice.dev/interconnect": "pcie"}, Interconnect.PCIE),
        ({"sluice.dev/interconnect": "Mixed", "nvidia.com/gpu.clique": "a.1"}, Interconnect.MIXED),
        ({"nvidia.com/gpu.clique": "a.1"}, Interconnect.NVLINK),
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, Interconnect.NVLINK),
        ({"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB"}, Interconnect.PCIE),
        ({"nvidia.com/gpu.product": "NVIDIA-L40S"}, None),
        ({"sluice.dev/interconnect": "string"}, None),
        ({}, None),
    ],
)
def test_what_links_gpus_is_told_by_labels_or_not_known(
    labels: dict[str, str], found: Interconnect | None
) -> None:
    assert interconnect_of(Node("n", labels, (), {})) is found


def test_the_better_the_link_the_less_is_lost() -> None:
    assert COST[Interconnect.NVLINK] <= 50
    assert 150 <= COST[Interconnect.MIXED] <= 250
    assert 350 <= COST[Interconnect.PCIE] <= 400
