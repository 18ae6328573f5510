# SPDX-License-Identifier: Apache-2.0
"""Which gated pods may go on, and the patch that lets one go.

Pure. At present whoever waits for nothing but quota goes on at once, and nothing is charged; this
is where shares, order and ceilings will be decided. Watches, calls and retries are not here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from policies.model.keys import QUOTA_GATE


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod that carries Sluice's gate, as its watch last showed it.

    `created` is the API's time stamp (RFC 3339, UTC), which sorts as text.
    """

    namespace: str
    name: str
    uid: str
    version: str
    created: str
    gates: tuple[str, ...]
    is_deleting: bool = False


def is_releasable(pod: GatedPod, is_guarded: Callable[[str], bool]) -> bool:
    """Tell whether ours is the last gate of a pod that is to live, in a guarded namespace."""
    return pod.gates == (QUOTA_GATE,) and not pod.is_deleting and is_guarded(pod.namespace)


def plan_release(
    pods: Iterable[GatedPod], is_guarded: Callable[[str], bool]
) -> tuple[GatedPod, ...]:
    """Return the pods to release, the longest waiting first."""
    return tuple(
        sorted(
            (pod for pod in pods if is_releasable(pod, is_guarded)),
            key=lambda pod: (pod.created, pod.namespace, pod.name),
        )
    )


def release_patch(pod: GatedPod) -> tuple[Mapping[str, object], ...]:
    """Return the JSON patch that removes the gate, if the pod is still as it was seen.

    A stale version is a clean 409 only where every operation still applies to the newer pod: what
    does not is a 422, like any invalid patch. So the version comes as `replace` and not `test`,
    and the gates as `add`, which sets the field whether or not it is there.
    """
    rest = [{"name": gate} for gate in pod.gates if gate != QUOTA_GATE]
    return (
        {"op": "replace", "path": "/metadata/resourceVersion", "value": pod.version},
        {"op": "add", "path": "/spec/schedulingGates", "value": rest},
    )
