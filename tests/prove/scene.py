# SPDX-License-Identifier: Apache-2.0
"""The cluster of a proof: its numbers, and the nodes, namespaces and documents that say the same.

The documents are written from the numbers, so that the observer never reads what Sluice reads.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane import ControlPlane, nodes
from tests.controlplane.components import Layout, scheduler, scheduler_config
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import Command, Process, ProcessGroup
from tests.prove.world import Json, Tenant, World

SHARED: Final = "nvidia.com/gpu.shared"
WHOLE: Final = "nvidia.com/gpu"
OTHER_SCHEDULER: Final = "second-scheduler"

NOTICE_SECONDS: Final = 3
PDB_SECONDS: Final = 10
"""How long borrowed pods are told before, and how long a disruption budget may refuse."""

_COHORT: Final = "main"
_REPLICAS: Final = 7
_GPUS_OF_NODE: Final = 8
_READY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a scene is; quotas in GPUs.

    Every fifth tenant gets whole GPUs, the others shares of a seventh.
    """

    tenants: int = 20
    shared_nodes: int = 3
    whole_nodes: int = 2
    guarantee: int = 1
    ceiling: int = 3


def make_world(scale: Scale) -> World:
    """Return the numbers of a scene."""
    tenants = tuple(
        Tenant(
            f"team-{number:02}",
            frozenset({f"team-{number:02}"}),
            Fraction(1000 * scale.guarantee),
            Fraction(1000 * scale.ceiling),
            _COHORT,
        )
        for number in range(scale.tenants)
    )
    return World(
        tenants,
        {SHARED: Fraction(1000, _REPLICAS), WHOLE: Fraction(1000)},
        {
            SHARED: scale.shared_nodes * _GPUS_OF_NODE * _REPLICAS,
            WHOLE: scale.whole_nodes * _GPUS_OF_NODE,
        },
    )


def takes_whole(tenant: Tenant) -> bool:
    """Tell whether a tenant's pods get whole GPUs."""
    return int(tenant.name[-2:]) % 5 == 0


def resource_of(tenant: Tenant) -> str:
    """Return the name of what a tenant's pods get."""
    return WHOLE if takes_whole(tenant) else SHARED


def make_nodes(scale: Scale) -> list[nodes.Node]:
    """Return nodes that offer what the world says."""
    shared = [
        nodes.time_sliced(f"shared-{i}", replicas=_REPLICAS) for i in range(scale.shared_nodes)
    ]
    return shared + [nodes.whole(f"whole-{i}") for i in range(scale.whole_nodes)]


def documents(world: World) -> list[Json]:
    """Return the documents that say the same as the world."""
    whole = [tenant.name for tenant in world.tenants if takes_whole(tenant)]
    shared = [tenant.name for tenant in world.tenants if not takes_whole(tenant)]
    product = ["NVIDIA-H100-80GB-HBM3"]
    slices = {"mode": "TimeSlice", "replicas": _REPLICAS, "products": product}
    return [
        *(tenant_document(tenant) for tenant in world.tenants),
        document("SharingProfile", "proof-slice", slices),
        document("SharingProfile", "proof-whole", {"mode": "Exclusive", "products": product}),
        document("ReclaimPolicy", "proof", _RECLAIM),
        *_policies({"proof-slice": shared, "proof-whole": whole}),
    ]


def write_documents(directory: Path, items: list[Json]) -> None:
    """Replace the documents of a directory in one step."""
    path = directory / "proof.yaml"
    beside = directory / ".proof.yaml.new"
    beside.write_text(yaml.safe_dump_all(items, sort_keys=False), encoding="utf-8")
    beside.replace(path)


def gpu_pod(tenant: Tenant, name: str, **parts: Any) -> Json:
    """Return a pod that asks for one GPU and gets what its tenant's pods get.

    `annotations`, `labels` and `ownerReferences` go into its metadata, other parts into its spec.
    """
    (namespace,) = tenant.namespaces
    metadata: Json = {"name": name, "namespace": namespace}
    for key in ("annotations", "labels", "ownerReferences"):
        if key in parts:
            metadata[key] = parts.pop(key)
    container = {"name": "main", "image": "registry.test/work", "resources": _ONE_GPU}
    spec = {"restartPolicy": "Never", "containers": [container], **parts}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@contextmanager
def second_scheduler(control_plane: ControlPlane) -> Iterator[None]:
    """Run another real scheduler beside the first, for pods that name it."""
    made = control_plane._made.layout
    ports = replace(made.ports, scheduler=free_ports(1)[0])
    layout = Layout(made.binaries, ports, made.files, made.options)
    config = made.files.directory / "second-scheduler.yaml"
    profiles = {"profiles": [{"schedulerName": OTHER_SCHEDULER}]}
    config.write_text(yaml.safe_dump(scheduler_config(layout) | profiles), encoding="utf-8")
    command = scheduler(layout)
    arguments = tuple(
        f"--config={config}" if each.startswith("--config=") else each for each in command.arguments
    )
    group = ProcessGroup()
    process = Process.start(
        Command(OTHER_SCHEDULER, arguments, command.port, command.health_path),
        made.files.log(OTHER_SCHEDULER),
        group,
        made.files.directory,
    )
    try:
        tls = ssl.create_default_context(cadata=control_plane.ca_bundle.decode())
        process.wait_healthy(tls, control_plane.token, _READY_SECONDS)
        yield
    finally:
        process.kill()
        group.close()


def tenant_document(tenant: Tenant) -> Json:
    """Return the document that says of a tenant what its numbers say."""
    quota = {"guarantee": float(tenant.guarantee / 1000), "ceiling": float(tenant.ceiling / 1000)}
    spec: Json = {"namespaces": {"names": sorted(tenant.namespaces)}, "quota": {"gpus": quota}}
    if tenant.cohort:
        spec["cohort"] = tenant.cohort
    return document("Tenant", tenant.name, spec)


def _policies(tenants: Mapping[str, list[str]]) -> list[Json]:
    return [
        document(
            "GPUPolicy",
            f"{profile}-for-all",
            {"order": 100, "match": {"tenants": names}, "rewrite": {"profile": profile}},
        )
        for profile, names in tenants.items()
        if names
    ]


def document(kind: str, name: str, spec: Json) -> Json:
    """Return a document of Sluice."""
    head = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": spec}


_RECLAIM: Final = {
    "cohorts": [_COHORT],
    "notice": f"{NOTICE_SECONDS}s",
    "pdbTimeout": f"{PDB_SECONDS}s",
}
_ONE_GPU: Final = {"limits": {WHOLE: 1}}
