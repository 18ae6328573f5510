# SPDX-License-Identifier: Apache-2.0
"""Which nodes pods may be taken off, so that a pod gets room: the least harm, and some never.

kube-scheduler proposes victims by node and takes the node that it likes best of those that are
left; so only nodes of the least harm are left. Who would be victims is its decision.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from policies.placement.pods import PlacedPod, Work


class Proposal(Protocol):
    """The victims of one node, by UID, and how many disruption budgets that would violate."""

    @property
    def uids(self) -> Sequence[str]:
        """Return the victims."""
        ...

    @property
    def violations(self) -> int:
        """Return the number of violated budgets."""
        ...


@dataclass(frozen=True, slots=True, order=True)
class Harm:
    """What taking pods off a node does; the less, the better. Violated budgets come last."""

    violates: bool
    trains: bool


def acceptable(
    proposals: Mapping[str, Proposal],
    known: Callable[[str], PlacedPod | None],
    holds_after: Callable[[str, frozenset[str]], bool],
) -> tuple[str, ...]:
    """Return the nodes of least harm, of those that are possible at all, in the order given.

    A node is out if nobody would go, if exclusive training would, or if `holds_after` says that
    it must not get the pod even then. Victims that are not `known` count as training.
    """
    harms: dict[str, Harm] = {}
    for node, proposal in proposals.items():
        victims = [known(uid) for uid in proposal.uids]
        if not victims or any(pod is not None and pod.is_protected for pod in victims):
            continue
        if holds_after(node, frozenset(proposal.uids)):
            trains = any(
                pod is None or (pod.work is Work.TRAINING and bool(pod.wish.ask.devices))
                for pod in victims
            )
            harms[node] = Harm(proposal.violations > 0, trains)
    least = min(harms.values(), default=None)
    return tuple(node for node, harm in harms.items() if harm == least)
