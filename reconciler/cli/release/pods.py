# SPDX-License-Identifier: Apache-2.0
"""Pods behind Sluice's gate, and the patch that takes it off whatever quota says. Pure.

No charge is written: only the leader knows one. A pod without gate and charge is counted by what it
asks for, as one that is older than Sluice is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from policies.model.keys import FORCED, QUOTA_GATE, REASON
from policies.quota.notice import rfc3339
from reconciler.kube import raw

Object = Mapping[str, object]

_MAX_TEXT = 512


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod that has our gate, in one version; `others` are the gates that stay."""

    namespace: str
    name: str
    uid: str
    version: str
    others: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Force:
    """Who takes gates off, and why, as the pods will say."""

    user: str
    reason: str = ""

    def note(self, at: datetime) -> str:
        """Return what a pod says of it."""
        because = f": {self.reason}" if self.reason else ""
        text = f"by {self.user} at {rfc3339(int(at.timestamp()))}{because}"
        return text[:_MAX_TEXT]


def gated_pod(item: Object) -> GatedPod | None:
    """Return the view of a raw pod; None for one without our gate."""
    gates = raw.mapping(item, "spec").get("schedulingGates")
    names = [_name(gate) for gate in gates] if isinstance(gates, list) else []
    if QUOTA_GATE not in names:
        return None
    metadata = raw.mapping(item, "metadata")
    return GatedPod(
        namespace=raw.text(metadata, "namespace"),
        name=raw.text(metadata, "name"),
        uid=raw.text(metadata, "uid"),
        version=raw.text(metadata, "resourceVersion"),
        others=tuple(name for name in names if name != QUOTA_GATE),
        reason=raw.strings(metadata, "annotations").get(REASON, ""),
    )


def force_patch(pod: GatedPod, note: str) -> Object:
    """Return the merge patch (RFC 7386): the gate off, and what stood on the pod of its waiting."""
    annotations: dict[str, object] = {FORCED: note}
    if pod.reason:
        annotations[REASON] = None
    gates = [{"name": name} for name in pod.others]
    return {
        "metadata": {"resourceVersion": pod.version, "annotations": annotations},
        "spec": {"schedulingGates": gates or None},
    }


def by_namespace(pods: Iterable[GatedPod]) -> Sequence[tuple[str, int]]:
    """Return how many there are in each namespace, most first."""
    return Counter(pod.namespace for pod in pods).most_common()


def _name(gate: object) -> str:
    name = gate.get("name") if isinstance(gate, Mapping) else None
    return name if isinstance(name, str) else ""
