# SPDX-License-Identifier: Apache-2.0
"""The disruption budget: how much work may be disturbed within a while. Nothing is chosen here."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from policies.model.settings import Budget
from policies.quota.reclaim.snapshot import Disruption

Where: TypeAlias = tuple[str, str]
"""The tenant and the node of a pod that is disturbed."""


class Limits:
    """Counts disruptions by tenant, by node and in all, beside those of the last while."""

    def __init__(self, budget: Budget, now: int, spent: Iterable[Disruption] = ()) -> None:
        self._budget = budget
        self._now = now
        recent = [d for d in spent if d.at > now - budget.per_seconds]
        self._tenants = Counter(d.tenant for d in recent)
        self._nodes = Counter(d.node for d in recent if d.node)
        self._all = len(recent)
        self._oldest = min((d.at for d in recent), default=None)

    def admits(self, more: Iterable[Where]) -> bool:
        """Tell whether so many more may be disturbed now."""
        return self._fits(list(more), self._tenants, self._nodes, self._all)

    def could_ever(self, more: Iterable[Where]) -> bool:
        """Tell whether so many may be disturbed at once when nothing else is."""
        return self._fits(list(more), Counter(), Counter(), 0)

    def spend(self, more: Iterable[Where]) -> None:
        """Count disruptions."""
        for tenant, node in more:
            self._tenants[tenant] += 1
            self._all += 1
            if node:
                self._nodes[node] += 1

    @property
    def is_unspent(self) -> bool:
        """Tell whether nothing counts against the budget."""
        return not self._all

    @property
    def eases_at(self) -> int | None:
        """Return when the first of what counts now counts no more."""
        return None if self._oldest is None else self._oldest + self._budget.per_seconds

    def _fits(
        self, more: list[Where], tenants: Counter[str], nodes: Counter[str], all_: int
    ) -> bool:
        budget = self._budget
        return (
            _within(budget.per_cluster, all_ + len(more))
            and all(
                _within(budget.per_tenant, tenants[tenant] + count)
                for tenant, count in Counter(tenant for tenant, _ in more).items()
            )
            and all(
                _within(budget.per_node, nodes[node] + count)
                for node, count in Counter(node for _, node in more if node).items()
            )
        )


def _within(limit: int | None, count: int) -> bool:
    return limit is None or count <= limit
