# SPDX-License-Identifier: Apache-2.0
"""What may touch GPUs, when nothing but the object's text is known."""

from typing import Any

import pytest

from policies.model.request import Phase
from policies.vendors import build_catalog
from tests.support.reviews import Json, body, container, gpu_container, pod, review
from webhook.envelope import parse
from webhook.screen import Screen

VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


def touches(given: Json, **fields: Any) -> bool:
    request = parse(body(review(given, **fields)), Phase.MUTATE)
    return Screen(build_catalog()).touches_gpus(request)


def annotated(key: str) -> Json:
    given = pod(container())
    given["metadata"]["annotations"] = {key: "x"}
    return given


@pytest.mark.parametrize(
    "given",
    [
        pod(),
        pod(gpu_container(resource="amd.com/gpu")),
        pod(gpu_container(resource="habana.ai/gaudi")),
        pod(gpu_container(resource="NVIDIA.com/GPU")),
        pod(container(), initContainers=[gpu_container()]),
        pod(container(), runtimeClassName="nvidia-cdi"),
        pod(container(), resourceClaims=[{"name": "x"}]),
        pod(container() | {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}),
        pod(container() | {"env": [{"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/x"}]}),
        pod(container() | {"env": [VOID | {"value": "0"}, VOID]}),
        annotated("sluice.dev/gpu-memory"),
        annotated("cdi.k8s.io/x"),
        annotated("hami.io/vgpu-devices-allocated"),
        {"kind": "ResourceClaim"},
    ],
)
def test_whatever_might_reach_a_gpu_is_seen(given: Json) -> None:
    assert touches(given)


@pytest.mark.parametrize(
    "given",
    [
        pod(container()),
        pod(container() | {"env": [VOID, {"name": "OUTPUT", "value": "input"}]}),
        pod(container() | {"env": [{"value": "void", "name": "NVIDIA_VISIBLE_DEVICES"}]}),
        {},
    ],
)
def test_a_pod_that_has_nothing_to_do_with_gpus_is_not(given: Json) -> None:
    assert not touches(given)


def test_the_old_object_counts_too() -> None:
    assert touches(pod(container()), operation="UPDATE", oldObject=pod())
