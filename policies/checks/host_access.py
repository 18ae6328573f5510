# SPDX-License-Identifier: Apache-2.0
"""Privileges, host namespaces and host paths that reach devices past the request.

Restricted in pods that ask for a GPU: privileged, capabilities SYS_ADMIN, MKNOD, SYS_RAWIO and
ALL in any container (also one beside the GPU's), hostPID, hostIPC. Restricted in every pod: a
hostPath at or below a device's path, and a volume mounted where NVIDIA's runtime reads device
names; in GPU pods also a hostPath above one, and the paths of kubelet and container runtimes.
"""

import posixpath
from collections.abc import Iterable, Iterator

from policies.admission.context import Context
from policies.model.decision import Violation
from policies.model.reasons import Reason
from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at, string_at
from policies.pod.view import Container

DEVICE_PATHS = (
    "/dev/dri",
    "/dev/kfd",
    "/dev/nvidia",
    "/etc/cdi",
    "/run/cdi",
    "/run/nvidia",
    "/tmp/nvidia-mps",  # noqa: S108 - a path that is refused, not used
    "/var/run/cdi",
    "/var/run/nvidia",
)
"""No pod may have these."""

DAEMON_PATHS = (
    "/run/containerd",
    "/run/crio",
    "/run/docker.sock",
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet/plugins",
    "/var/lib/kubelet/pod-resources",
    "/var/run/containerd",
    "/var/run/crio",
    "/var/run/docker.sock",
)
"""No GPU pod may have these; storage drivers and other agents live by them."""

MOUNT_PATHS = ("/var/run/nvidia-container-devices", "/run/nvidia-container-devices")
CAPABILITIES = frozenset({"ALL", "MKNOD", "SYS_ADMIN", "SYS_RAWIO"})


def check(context: Context) -> Iterable[Violation]:
    """Yield a violation for each privilege, namespace, path and mount."""
    takes_gpus, spec = context.takes_gpus, context.pod.spec
    if takes_gpus:
        for field in ("hostPID", "hostIPC"):
            if spec.get(field):
                yield _refused(f"{field} reaches other tenants' GPU processes: take it out")
    for volume in objects_at(spec, "volumes"):
        path = _normal(string_at(object_at(volume, "hostPath"), "path"))
        if path and _reaches_devices(path, above=takes_gpus):
            yield _refused(
                f"volume {string_at(volume, 'name')}: hostPath {path[:128]} reaches devices "
                "past the request: take it out"
            )
    for container in context.pod.containers:
        yield from container_violations(container, takes_gpus=takes_gpus)


def container_violations(container: Container, *, takes_gpus: bool) -> Iterator[Violation]:
    """Yield what one container of a pod that takes GPUs, or does not, reaches past the request."""
    security = object_at(container.raw, "securityContext")
    if takes_gpus:
        if security.get("privileged"):
            yield _refused(
                f"container {container.name} is privileged, so it sees every GPU of its node: "
                "set privileged: false"
            )
        for name in _capabilities(security):
            yield _refused(
                f"container {container.name} adds capability {name}, which reaches devices past "
                "the request: take it out"
            )
    for mount in objects_at(container.raw, "volumeMounts"):
        path = _normal(string_at(mount, "mountPath"))
        if _below(path, MOUNT_PATHS):
            yield _refused(
                f"container {container.name}: a volume at {path[:128]} selects devices: take it out"
            )


def _capabilities(security: JsonObject) -> list[str]:
    added = object_at(security, "capabilities").get("add")
    names = added if isinstance(added, list) else []
    plain = (str(name).upper().removeprefix("CAP_") for name in names)
    return [name for name in plain if name in CAPABILITIES]


def _reaches_devices(path: str, *, above: bool) -> bool:
    paths = DEVICE_PATHS + DAEMON_PATHS if above else DEVICE_PATHS
    if _below(path, paths) or path.startswith("/dev/nvidia"):
        return True
    return above and any(target.startswith(path.rstrip("/") + "/") for target in paths)


def _below(path: str, parents: tuple[str, ...]) -> bool:
    return any(path == parent or path.startswith(f"{parent}/") for parent in parents)


def _normal(path: str) -> str:
    """Fold what the kernel folds; kubelets take a relative mount path as one from the root."""
    return posixpath.normpath(f"/{path.lstrip('/')}") if path else ""


def _refused(message: str) -> Violation:
    return Violation(Reason.HOST_ACCESS, message)
