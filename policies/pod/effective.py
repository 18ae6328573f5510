# SPDX-License-Identifier: Apache-2.0
"""What a pod takes from a node, given what each container asks.

Source: kubernetes/component-helpers resource/helpers.go: the larger of all app containers and
sidecars together, and each init container with the sidecars started before it. Ephemeral
containers take nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from policies.pod.view import ContainerKind


def effective(asked: Iterable[tuple[ContainerKind, Mapping[str, int]]]) -> dict[str, int]:
    """Return the pod's request by resource name from its containers', in the order they start."""
    running: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for kind, amounts in asked:
        match kind:
            case ContainerKind.APP:
                running.update(amounts)
            case ContainerKind.SIDECAR:
                sidecars.update(amounts)
                running.update(amounts)
                peak |= sidecars
            case ContainerKind.INIT:
                peak |= sidecars + Counter(amounts)
            case ContainerKind.EPHEMERAL:
                pass
    return {name: count for name, count in sorted((peak | running).items()) if count > 0}
