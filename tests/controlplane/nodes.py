# SPDX-License-Identifier: Apache-2.0
"""Simulated nodes as data: plain Node objects that KWOK makes and keeps Ready.

Each carries the labels that NVIDIA's GPU feature discovery (or AMD's node labeller) writes and the
extended resources that the device plugin reports in that sharing mode, so that the real scheduler
places pods as it would on such hardware. Nothing here talks to a cluster.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_CPU = "96"
_MEMORY = "1Ti"
_PODS = "110"
_GPUS = 8

Node = dict[str, object]


@dataclass(frozen=True, slots=True)
class Instance:
    """What feature discovery says of a MIG profile on one board.

    Memory is usable MiB; `slices` counts GPU instance slices, and as many compute instance slices
    and copy engines for the profiles used here.
    """

    memory_mib: int
    multiprocessors: int
    slices: int


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU model: the values of the labels that depend on it alone. Memory is MiB."""

    product: str
    family: str
    compute: tuple[int, int]
    memory_mib: int
    machine: str
    instances: tuple[tuple[str, Instance], ...] = ()

    @property
    def is_mig_capable(self) -> bool:
        return bool(self.instances)


# Usable memory and multiprocessors as `nvidia-smi mig -lgip` prints them.
H100 = Board(
    product="NVIDIA-H100-80GB-HBM3",
    family="hopper",
    compute=(9, 0),
    memory_mib=81559,
    machine="DGXH100",
    instances=(
        ("1g.10gb", Instance(9984, 16, 1)),
        ("2g.20gb", Instance(20096, 32, 2)),
        ("3g.40gb", Instance(40448, 60, 3)),
    ),
)
A100 = Board(
    product="NVIDIA-A100-SXM4-80GB",
    family="ampere",
    compute=(8, 0),
    memory_mib=81920,
    machine="DGXA100-920-23687-2530-000",
    instances=(
        ("1g.10gb", Instance(9856, 14, 1)),
        ("2g.20gb", Instance(19968, 28, 2)),
        ("3g.40gb", Instance(40192, 42, 3)),
    ),
)
L40S = Board(
    product="NVIDIA-L40S",
    family="ada-lovelace",
    compute=(8, 9),
    memory_mib=46068,
    machine="PowerEdge-R760xa",
)

# Four GPUs in the smallest instances, two of mixed sizes, two in halves: all fit the placements.
MIXED_LAYOUT = (
    *(("1g.10gb",) * 7,) * 4,
    *(("2g.20gb", "2g.20gb", "2g.20gb", "1g.10gb"),) * 2,
    *(("3g.40gb", "3g.40gb"),) * 2,
)


def whole(name: str, board: Board = H100, count: int = _GPUS) -> Node:
    """Make a node that gives out whole GPUs: `count` of nvidia.com/gpu."""
    labels = _nvidia_labels(board, count, strategy="none", replicas=1)
    return _nvidia_node(name, labels, {"nvidia.com/gpu": count})


def time_sliced(name: str, board: Board = H100, count: int = _GPUS, replicas: int = 4) -> Node:
    """Make a node whose `count` GPUs are each shared in time by `replicas`.

    As with the device plugin's renameByDefault: nvidia.com/gpu.shared, and a product without
    -SHARED.
    """
    labels = _nvidia_labels(board, count, strategy="time-slicing", replicas=replicas)
    return _nvidia_node(name, labels, {"nvidia.com/gpu.shared": count * replicas})


def mps(name: str, board: Board = A100, count: int = _GPUS, replicas: int = 8) -> Node:
    """Make a node whose `count` GPUs are each shared by MPS among `replicas`, renamed as above."""
    labels = _nvidia_labels(board, count, strategy="mps", replicas=replicas)
    labels["nvidia.com/mps.capable"] = "true"
    return _nvidia_node(name, labels, {"nvidia.com/gpu.shared": count * replicas})


def mig_mixed(
    name: str, board: Board = H100, layout: tuple[tuple[str, ...], ...] = MIXED_LAYOUT
) -> Node:
    """Make a node with MIG strategy mixed; `layout` lists the profiles on each GPU in turn."""
    counts = Counter(profile for gpu in layout for profile in gpu)
    # Feature discovery writes 0 replicas for the full GPUs where MIG has taken them all.
    labels = _nvidia_labels(board, len(layout), strategy="none", replicas=0)
    labels["nvidia.com/mig.config"] = "custom"
    instances = dict(board.instances)
    for profile, count in counts.items():
        labels |= _instance_labels(board, profile, instances[profile], count)
    resources = {f"nvidia.com/mig-{profile}": count for profile, count in counts.items()}
    return _nvidia_node(name, labels, resources)


def amd(name: str, count: int = _GPUS) -> Node:
    """Make a node of AMD MI300X: `count` of amd.com/gpu."""
    labels = {
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
        "amd.com/gpu.device-id": "74a1",
        "amd.com/gpu.family": "AI",
        "amd.com/gpu.vram": "192G",
        "amd.com/gpu.cu-count": "304",
    }
    return _node(name, labels, {"amd.com/gpu": count}, taint="amd.com/gpu")


def cpu(name: str) -> Node:
    """Make a node without GPUs and without a taint."""
    return _node(name, {}, {}, taint=None)


def fleet() -> tuple[Node, ...]:
    """One node of every kind, named after what it gives."""
    return (
        whole("h100-whole"),
        time_sliced("h100-shared"),
        mig_mixed("h100-mig"),
        whole("a100-whole", A100),
        time_sliced("l40s-shared", L40S),
        amd("mi300x-whole"),
        cpu("cpu"),
    )


def _nvidia_labels(board: Board, count: int, *, strategy: str, replicas: int) -> dict[str, str]:
    major, minor = board.compute
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.machine": board.machine,
        "nvidia.com/gpu.product": board.product,
        "nvidia.com/gpu.family": board.family,
        "nvidia.com/gpu.compute.major": str(major),
        "nvidia.com/gpu.compute.minor": str(minor),
        "nvidia.com/gpu.memory": str(board.memory_mib),
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": strategy,
        # The strategy is the whole cluster's, so nodes whose GPUs are not split say it as well.
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig.capable": str(board.is_mig_capable).lower(),
        "nvidia.com/mps.capable": "false",
    }
    if board.is_mig_capable:
        labels["nvidia.com/mig.config"] = "all-disabled"
        labels["nvidia.com/mig.config.state"] = "success"
    return labels


def _instance_labels(board: Board, profile: str, instance: Instance, count: int) -> dict[str, str]:
    values: Mapping[str, object] = {
        "count": count,
        "product": f"{board.product}-MIG-{profile}",
        "replicas": 1,
        "sharing-strategy": "none",
        "memory": instance.memory_mib,
        "multiprocessors": instance.multiprocessors,
        "slices.gi": instance.slices,
        "slices.ci": instance.slices,
        "engines.copy": instance.slices,
        "engines.encoder": 0,
        "engines.ofa": 0,
    }
    return {f"nvidia.com/mig-{profile}.{key}": str(value) for key, value in values.items()}


def _nvidia_node(name: str, labels: Mapping[str, str], resources: Mapping[str, int]) -> Node:
    return _node(name, labels, resources, taint="nvidia.com/gpu")


def _node(
    name: str, labels: Mapping[str, str], resources: Mapping[str, int], *, taint: str | None
) -> Node:
    basic = {"cpu": _CPU, "memory": _MEMORY, "ephemeral-storage": _MEMORY, "pods": _PODS}
    extended = {resource: str(count) for resource, count in resources.items()}
    common = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    taints = [{"key": taint, "value": "present", "effect": "NoSchedule"}] if taint else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**common, **labels},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": taints},
        "status": {
            "capacity": {**basic, **extended},
            "allocatable": {**basic, **extended},
            "nodeInfo": _NODE_INFO,
        },
    }


_NODE_INFO = {
    "architecture": "amd64",
    "operatingSystem": "linux",
    "kubeletVersion": "v1.37.2",
    "containerRuntimeVersion": "kwok",
    "bootID": "",
    "kernelVersion": "",
    "kubeProxyVersion": "",
    "machineID": "",
    "osImage": "KWOK",
    "systemUUID": "",
}
