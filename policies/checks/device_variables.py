# SPDX-License-Identifier: Apache-2.0
"""Environment variables that select devices or undo limits, in env of any container.

A pod's own env wins over what the device plugin sets, so such a variable in a GPU container
reaches other GPUs; some open devices in any container. In containers without a GPU
NVIDIA_VISIBLE_DEVICES is overwritten with void instead, which also beats envFrom. Restricted:
spec.{containers,initContainers,ephemeralContainers}[*].env[*].name.
"""

from collections.abc import Iterable, Iterator

from policies.admission.context import Context
from policies.model.decision import Violation
from policies.model.keys import VISIBLE_DEVICES
from policies.model.reasons import Reason
from policies.pod.reading import object_at, objects_at, string_at
from policies.pod.view import Container
from policies.rewrite.containers import takes_nvidia

EVERYWHERE = frozenset(
    {"NVIDIA_IMEX_CHANNELS", "NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES"}
)
"""They open devices without any request."""

IN_GPU_CONTAINERS = frozenset(
    {
        VISIBLE_DEVICES,
        "ACTIVE_OOM_KILLER",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
        "CUDA_DEVICE_SM_LIMIT",
        "CUDA_DISABLE_CONTROL",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
        "CUDA_MPS_CLIENT_PRIORITY",
        "CUDA_MPS_LOG_DIRECTORY",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        "CUDA_MPS_PIPE_DIRECTORY",
        "CUDA_OVERSUBSCRIBE",
        "CUDA_REDIRECT",
        "CUDA_TASK_PRIORITY",
        "GPU_CORE_UTILIZATION_POLICY",
        "LD_PRELOAD",
    }
)
PREFIXES_IN_GPU_CONTAINERS = ("CUDA_DEVICE_MEMORY_LIMIT",)


def check(context: Context) -> Iterable[Violation]:
    """Yield a violation for each such variable."""
    for container in context.pod.containers:
        for name in _restricted(container):
            if (container.name, name) in context.overridden:
                continue
            yield Violation(
                Reason.DEVICE_VARIABLE,
                f"container {container.name}: the variable {name} selects devices or undoes "
                "limits: take it out, what the pod may use is set for it",
            )


def _restricted(container: Container) -> Iterator[str]:
    takes_gpu = bool(container.gpus) and takes_nvidia(object_at(container.raw, "resources"))
    for entry in objects_at(container.raw, "env"):
        name = string_at(entry, "name")
        if name in EVERYWHERE or (
            takes_gpu and (name in IN_GPU_CONTAINERS or name.startswith(PREFIXES_IN_GPU_CONTAINERS))
        ):
            yield name
