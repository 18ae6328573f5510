# SPDX-License-Identifier: Apache-2.0
"""Put a preference for some nodes onto the spec of a gated pod, beside its own preferences.

Preferred terms may change in any way while a pod is gated, since they keep it off no node. Source:
Kubernetes KEP-3838, validatePodUpdate.
"""

from collections.abc import Sequence
from typing import Final

from policies.model.request import JsonObject
from policies.pod.reading import object_at, objects_at

PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_MOST: Final = 100
"""The largest weight of a term. Source: core validation ValidatePreferredSchedulingTerms."""


def preferring(spec: JsonObject, nodes: Sequence[str]) -> JsonObject:
    """Return the spec with the nodes preferred, the best first; itself without any.

    The first weighs as much as a term can, the others evenly less. Raises MalformedError.
    """
    if not nodes:
        return spec
    affinity = object_at(spec, "affinity")
    node = object_at(affinity, "nodeAffinity")
    own = objects_at(node, PREFERRED)
    wanted = [
        _term(name, _MOST * (len(nodes) - rank) // len(nodes)) for rank, name in enumerate(nodes)
    ]
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": {**node, PREFERRED: [*own, *wanted]}},
    }


def _term(name: str, weight: int) -> JsonObject:
    # By its name and not a label: labels of the host's name may differ from it.
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"weight": max(1, weight), "preference": {"matchFields": [field]}}
