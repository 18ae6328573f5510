# SPDX-License-Identifier: Apache-2.0
"""Whole nodes of the size that they have in clusters: 10 to 30 kB of JSON, most of it images.

Added to the simulated nodes is what clusters have on theirs: labels of node feature discovery,
annotations of network and storage drivers, conditions of the kubelet and of node-problem-detector,
and the 50 images that a kubelet reports at most (nodeStatusMaxImages).
"""

from collections.abc import Mapping
from typing import Any, Final

from tests.bench.extender_load import Json, raw_nodes

_IMAGES: Final = 50
_CPU_FEATURES: Final = 90
_ANNOTATIONS: Final = 20
_VOLUMES: Final = 12
_SINCE: Final = "2026-11-01T08:00:00Z"
_PROBLEMS: Final = (
    *("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "KernelDeadlock"),
    *("ReadonlyFilesystem", "FrequentKubeletRestart", "FrequentContainerdRestart", "GpuFault"),
)


def whole_nodes(count: int) -> list[Json]:
    """Return nodes of every kind, each as large as a real one."""
    return [_filled(node, number) for number, node in enumerate(raw_nodes(count))]


def _filled(node: Json, number: int) -> Json:
    metadata, status = node["metadata"], node["status"]
    return {
        **node,
        "metadata": {
            **metadata,
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(10_000_000 + number),
            "creationTimestamp": _SINCE,
            "labels": {**metadata["labels"], **_features()},
            "annotations": {**metadata["annotations"], **_annotations(number)},
        },
        "status": {
            **status,
            "addresses": [{"type": "InternalIP", "address": f"10.0.0.{number}"}],
            "conditions": _conditions(),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [_image(number, index) for index in range(_IMAGES)],
            "volumesInUse": [f"kubernetes.io/csi/ebs^vol-{i:017x}" for i in range(_VOLUMES)],
        },
    }


def _features() -> Mapping[str, str]:
    prefix = "feature.node.kubernetes.io/cpu-cpuid"
    return {f"{prefix}.AVX512FEATURE{index}": "true" for index in range(_CPU_FEATURES)}


def _annotations(number: int) -> Mapping[str, str]:
    return {
        f"driver-{index}.example.com/node": f'{{"node":"{number:04d}","id":"{index:096x}"}}'
        for index in range(_ANNOTATIONS)
    }


def _conditions() -> list[dict[str, Any]]:
    times = {"lastHeartbeatTime": _SINCE, "lastTransitionTime": _SINCE}
    none = {"status": "False", "reason": "NoProblem", "message": "the node has no such problem"}
    ready = {"status": "True", "reason": "KubeletReady", "message": "kubelet is ready"}
    problems = [{"type": kind, **none, **times} for kind in _PROBLEMS]
    return [*problems, {"type": "Ready", **ready, **times}]


def _image(number: int, index: int) -> dict[str, Any]:
    repository = f"registry.example.com/ml-platform/model-server-{index}"
    digest = f"{number * _IMAGES + index:064x}"
    names = [f"{repository}@sha256:{digest}", f"{repository}:2026.11.{index}"]
    return {"names": names, "sizeBytes": 1_000_000_000 + index}
