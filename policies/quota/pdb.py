# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets as values, and whether one can ever let a pod go.

What one says is `disruptions_allowed`, as its controller last counted; whether an eviction is let
through is the API server's answer alone. Source: Kubernetes API `policy/v1`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from policies.model.labels import LabelSelector

_ALL_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Percent:
    """A share of the pods that a budget covers, 0 to 100."""

    percent: int

    def of(self, count: int) -> int:
        """Return the share, rounded up as the disruption controller does."""
        return -(-self.percent * count // _ALL_PERCENT)


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget:
    """One budget. `selector` is None where it covers nothing.

    `expected` is how many pods its controller wants, 0 where the status does not tell. With
    `is_stuck` the controller cannot count its pods, so it never allows anything.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    min_available: int | Percent | None = None
    max_unavailable: int | Percent | None = None
    disruptions_allowed: int = 0
    expected: int = 0
    is_stuck: bool = False

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether it covers a pod of this namespace with these labels."""
        selector = self.selector
        return namespace == self.namespace and selector is not None and selector.matches(labels)

    @property
    def can_never_allow(self) -> bool:
        """Tell whether it forbids every eviction even with all of its pods healthy.

        A status that tells no count is taken for a single pod: at least the one that is asked about
        is there.
        """
        if self.is_stuck:
            return True
        expected = max(1, self.expected)
        if self.max_unavailable is not None:
            return _count(self.max_unavailable, expected) <= 0
        return self.min_available is not None and _count(self.min_available, expected) >= expected


def covering(
    namespace: str, labels: Mapping[str, str], pdbs: Iterable[PodDisruptionBudget]
) -> tuple[PodDisruptionBudget, ...]:
    """Return the budgets that cover a pod."""
    return tuple(pdb for pdb in pdbs if pdb.covers(namespace, labels))


def can_never_be_evicted(found: tuple[PodDisruptionBudget, ...]) -> bool:
    """Tell whether these budgets together never let their pod go.

    The Eviction API answers 500 for a pod that several budgets cover (registry/core/pod/storage).
    """
    return len(found) > 1 or any(pdb.can_never_allow for pdb in found)


def _count(value: int | Percent, expected: int) -> int:
    return value.of(expected) if isinstance(value, Percent) else value
