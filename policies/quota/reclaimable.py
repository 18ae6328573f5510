# SPDX-License-Identifier: Apache-2.0
"""Whether work could be taken back from its tenant, which it must be to be more than guaranteed.

Asked when a pod is released; the answer stays in its charge. So an owner who asks later not to be
disturbed, or adds a disruption budget, does not keep for ever what was lent.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from policies.model.keys import EVICTION_COST
from policies.model.reclaim import ReclaimPolicy
from policies.quota.pdb import PodDisruptionBudget, can_never_be_evicted, covering
from policies.quota.pods import QuotaPod

_KEEP_ANNOTATIONS: Final[Mapping[str, str]] = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""What Karpenter and the cluster autoscaler take for the wish not to be disturbed."""

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,9}", re.ASCII)
_MAX_INT32: Final = 2**31 - 1


class Keeps(StrEnum):
    """Why work is never taken back, in words that go on with "it"."""

    EXCLUSIVE = "is exclusive"
    DISTURBED = "asks not to be disrupted"
    GRACE = "takes longer to end than reclaim allows"
    SEVERAL_PDBS = "is covered by several disruption budgets, which the Eviction API refuses"
    PDB = "is covered by a disruption budget that never allows its eviction"


def reclaimable(
    pod: QuotaPod, policy: ReclaimPolicy, pdbs: Iterable[PodDisruptionBudget] = ()
) -> bool:
    """Tell whether a pod, once released, could be taken back. `policy` is that of its cohort."""
    return what_keeps(pod, policy, pdbs) is None


def what_keeps(
    pod: QuotaPod, policy: ReclaimPolicy, pdbs: Iterable[PodDisruptionBudget] = ()
) -> Keeps | None:
    """Return why a pod that is to be released could never be taken back, None if it could."""
    if pod.shape.exclusive:
        return Keeps.EXCLUSIVE
    if pod.do_not_disrupt:
        return Keeps.DISTURBED
    if pod.shape.grace_seconds > policy.max_grace_seconds:
        return Keeps.GRACE
    found = covering(pod.namespace, pod.labels, pdbs)
    if not can_never_be_evicted(found):
        return None
    return Keeps.SEVERAL_PDBS if len(found) > 1 else Keeps.PDB


def eviction_cost(annotations: Mapping[str, str]) -> int:
    """Return what a pod says it costs to evict it: an int32 as Kubernetes writes it, else 0.

    As Kubernetes reads `controller.kubernetes.io/pod-deletion-cost`: no plus sign, no leading zero.
    """
    text = annotations.get(EVICTION_COST, "")
    if not _INTEGER.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -_MAX_INT32 - 1 <= cost <= _MAX_INT32 else 0


def asks_not_to_be_disrupted(annotations: Mapping[str, str]) -> bool:
    """Tell whether a pod carries a known wish not to be disturbed; "True" and "yes" are none."""
    return any(annotations.get(key) == value for key, value in _KEEP_ANNOTATIONS.items())
