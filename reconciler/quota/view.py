# SPDX-License-Identifier: Apache-2.0
"""From raw pods to what the quota controller keeps of them.

Pure. Pods that do not carry Sluice's gate are of no interest here.
"""

from collections.abc import Mapping
from typing import Final

from policies.model.keys import QUOTA_GATE
from reconciler.kube import raw
from reconciler.kube.resources import PODS, Selection
from reconciler.quota.plan import GatedPod

UNSCHEDULED_PODS: Final = Selection(PODS, field_selector="spec.nodeName=")
"""A gated pod is on no node; gates themselves cannot be selected by the API."""


def gated_pod(item: Mapping[str, object]) -> GatedPod | None:
    """Return the view of a raw pod that carries Sluice's gate, None of any other."""
    gates = tuple(
        raw.text(gate, "name")
        for gate in raw.mappings(raw.mapping(item, "spec"), "schedulingGates")
    )
    if QUOTA_GATE not in gates:
        return None
    metadata = raw.mapping(item, "metadata")
    return GatedPod(
        namespace=raw.text(metadata, "namespace"),
        name=raw.text(metadata, "name"),
        uid=raw.text(metadata, "uid"),
        version=raw.text(metadata, "resourceVersion"),
        created=raw.text(metadata, "creationTimestamp"),
        gates=gates,
        is_deleting=bool(raw.text(metadata, "deletionTimestamp")),
    )
