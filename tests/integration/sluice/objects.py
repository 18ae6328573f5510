# SPDX-License-Identifier: Apache-2.0
"""Manifests as people write them, and the parts of live objects that a rewrite concerns."""

from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
SHARED: Final = "nvidia.com/gpu.shared"
MIG: Final = "nvidia.com/mig-1g.10gb"
GATE: Final = "sluice.dev/quota"
DECISION: Final = "state.sluice.dev/decision"
VOID: Final = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
IMAGE: Final = "registry.test/image"

HOLD: Final = "example.test/hold"
"""A gate of somebody else, with which a pod stays gated while Sluice runs."""


def container(name: str = "main", gpus: object = None, resource: str = GPU, **fields: Any) -> Json:
    """Return a container with so many GPUs under limits, as people write them."""
    limits = {} if gpus is None else {"resources": {"limits": {resource: gpus}}}
    return {"name": name, "image": IMAGE, **limits, **fields}


def pod(*containers: Json, name: str = "gpu", **parts: Any) -> Json:
    """Return a pod, of one container with one GPU unless others are given.

    `annotations` and `labels` go into its metadata, other parts into its spec.
    """
    metadata: Json = {"name": name}
    metadata |= {key: parts.pop(key) for key in ("annotations", "labels") if key in parts}
    spec = {"containers": list(containers or [container(gpus=1)]), **parts}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def plain_pod(name: str = "plain", **parts: Any) -> Json:
    """Return a pod that asks for no GPU."""
    return pod(container(), name=name, **parts)


def workload(kind: str, template: Json, name: str = "work", **spec: Any) -> Json:
    """Return a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob with this pod."""
    metadata: Json = {"labels": {"app": name}, **template["metadata"]}
    metadata["labels"] = {"app": name, **metadata["labels"]}
    del metadata["name"]
    pods: Json = {"metadata": metadata, "spec": dict(template["spec"])}
    if kind in ("Job", "CronJob"):
        pods["spec"].setdefault("restartPolicy", "Never")
        content: Json = {"template": pods, **spec}
        if kind == "CronJob":
            content = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": content}}
        version = "batch/v1"
    else:
        content = {"selector": {"matchLabels": {"app": name}}, "template": pods, **spec}
        version = "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": content}


def all_containers(live: Json) -> list[Json]:
    """Return the containers of every kind."""
    spec = live["spec"]
    sections = ("initContainers", "containers", "ephemeralContainers")
    return [c for section in sections for c in spec.get(section, [])]


def gpus(live: Json) -> dict[str, dict[str, str]]:
    """Return what each container takes of devices; limits and requests must agree."""
    found = {}
    for c in all_containers(live):
        resources = c.get("resources", {})
        limits, requests = (
            {k: v for k, v in resources.get(key, {}).items() if "/" in k}
            for key in ("limits", "requests")
        )
        assert limits == requests, f"{c['name']} has limits {limits} and requests {requests}"
        if limits:
            found[c["name"]] = limits
    return found


def void_containers(live: Json) -> set[str]:
    """Return the containers that the runtime gives no device, whatever their image says."""
    return {c["name"] for c in all_containers(live) if VOID in c.get("env", [])}


def gates(live: Json) -> list[str]:
    """Return the names of the scheduling gates."""
    return [gate["name"] for gate in live["spec"].get("schedulingGates", [])]


def decision(live: Json) -> str | None:
    """Return the annotation that Sluice leaves, if there is one."""
    found: str | None = live["metadata"].get("annotations", {}).get(DECISION)
    return found
