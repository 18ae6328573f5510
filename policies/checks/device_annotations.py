# SPDX-License-Identifier: Apache-2.0
"""Annotations that other components take as a device allocation.

Container runtimes inject CDI devices by annotation, and device plugins of sharing projects
believe theirs, both without any request. Restricted: metadata.annotations keys,
on CREATE and where an UPDATE adds or changes one, since runtimes read them when a container starts.
"""

from collections.abc import Iterable

from policies.admission.context import Context
from policies.model.decision import Violation
from policies.model.reasons import Reason

PREFIXES = (
    "cdi.k8s.io/",
    "nvidia.cdi.k8s.io/",
    "hami.io/vgpu-",
    "hami.io/bind-",
    "run.ai/",
    "scheduling.koordinator.sh/device-allocated",
    "volcano.sh/vgpu-",
    "volcano.sh/gpu-",
)
NAMES = frozenset(
    {
        "gpu-fraction",
        "gpu-fraction-num-devices",
        "gpu-memory",
        "nvidia.com/use-gpuuuid",
        "nvidia.com/vgpu-mode",
    }
)


def check(context: Context) -> Iterable[Violation]:
    """Yield a violation for each such annotation."""
    return violations(context.pod.annotations)


def violations(keys: Iterable[str]) -> Iterable[Violation]:
    """Yield a violation for each key that allocates devices."""
    for key in keys:
        if key in NAMES or key.startswith(PREFIXES):
            yield Violation(
                Reason.DEVICE_ANNOTATION,
                f"annotation {key[:128]} allocates devices past the request: take it out",
            )
