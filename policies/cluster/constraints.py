# SPDX-License-Identifier: Apache-2.0
"""Which nodes a pod may go to, judged as kube-scheduler does: selector, affinity, taints, cordon.

Sources: kubernetes scheduler plugins nodeaffinity, nodeunschedulable and tainttoleration.
Amounts must not be here, nor affinity to other pods.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.cluster.affinity import NO_NODE, NodeTerm, read_terms
from policies.cluster.nodes import Node, Taint
from policies.cluster.tolerating import read_tolerations, tolerates
from policies.model.profile import Toleration

_UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_REPELLING: Final = ("NoSchedule", "NoExecute")
_PASSING: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Beginnings of the taints that Kubernetes itself sets and takes away as a node's state changes."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """What a pod asks of its node besides room. `terms` are ORed: none at all match nothing.

    `terms` is None where the pod has no required node affinity.
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


def read_constraints(spec: Mapping[str, object]) -> Constraints:
    """Return what the spec of a pod asks of its node besides room; it never raises.

    Pods that mean the same give equal values. What cannot be read widens nothing: an unreadable
    selector lets no node match.
    """
    selector = _selector(spec.get("nodeSelector"))
    return Constraints(
        node_selector=selector or (),
        terms=NO_NODE if selector is None else read_terms(spec.get("affinity")),
        tolerations=read_tolerations(spec),
    )


def admits(constraints: Constraints, node: Node) -> bool:
    """Tell whether the node takes such a pod today, if it has room."""
    return suits(constraints, node) and is_open(constraints, node)


def suits(constraints: Constraints, node: Node) -> bool:
    """Tell whether the node would take such a pod, were it ready, open and under no pressure."""
    labels = node.labels
    for key, value in constraints.node_selector:
        if labels.get(key) != value:
            return False
    if constraints.terms is not None and not _any_met(constraints.terms, node):
        return False
    return not node.taints or _repelled_by(constraints, node, passing=False) is None


def is_open(constraints: Constraints, node: Node) -> bool:
    """Tell whether the node, if it suits such a pod, is ready, not cordoned and under no pressure.

    That a node is ready is demanded of every pod: a tolerated node that is lost runs nothing new.
    """
    return not _shut(constraints, node)


def why_not(constraints: Constraints, node: Node) -> str:
    """Return why the node does not admit such a pod, in a few words; empty if it does.

    What lasts comes first: that a node of another kind is not ready explains nothing.
    """
    for key, value in constraints.node_selector:
        if node.labels.get(key) != value:
            return f"node selector {key}={value}"
    if (affinity := _affinity(constraints, node)) is not None:
        return affinity
    taint = _repelled_by(constraints, node, passing=False)
    return f"taint {taint.key}" if taint is not None else _shut(constraints, node)


def _any_met(terms: tuple[NodeTerm, ...], node: Node) -> bool:
    for term in terms:  # noqa: SIM110 - a generator costs as much as a term, for each node
        if term.unmet(node) is None:
            return True
    return False


def _repelled_by(constraints: Constraints, node: Node, *, passing: bool) -> Taint | None:
    """Return the first taint, of those that pass or of those that last, that is not tolerated."""
    for taint in node.taints:
        if (
            taint.effect in _REPELLING
            and taint.key.startswith(_PASSING) is passing
            and not tolerates(constraints.tolerations, taint)
        ):
            return taint
    return None


def _shut(constraints: Constraints, node: Node) -> str:
    """Return what keeps such a pod off for now, empty if nothing does."""
    if not node.ready:
        return "not ready"
    if node.unschedulable and not tolerates(constraints.tolerations, _UNSCHEDULABLE):
        return "cordoned"
    taint = _repelled_by(constraints, node, passing=True) if node.taints else None
    if taint is None:
        return ""
    return "cordoned" if taint.key == _UNSCHEDULABLE.key else f"taint {taint.key}"


def _affinity(constraints: Constraints, node: Node) -> str | None:
    if constraints.terms is None:
        return None
    unmet = [key for term in constraints.terms if (key := term.unmet(node)) is not None]
    if len(unmet) < len(constraints.terms):
        return None
    return f"node affinity {unmet[0]}" if len(unmet) == 1 else "node affinity"


def _selector(raw: object) -> tuple[tuple[str, str], ...] | None:
    """Return the pairs in name order; None where they cannot be read."""
    if raw is None:
        return ()
    if not isinstance(raw, dict):
        return None
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in raw.items()):
        return None
    return tuple((sys.intern(key), sys.intern(raw[key])) for key in sorted(raw))
