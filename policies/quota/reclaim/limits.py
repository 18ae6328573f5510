# SPDX-License-Identifier: Apache-2.0
"""The disruption budget: how much work may be disturbed within a while. Nothing is chosen here.

What a past leader has disturbed is not written down. A new one takes the budget for used up until
its `per` has passed since then: by that time nothing of before counts, whatever it was.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from policies.model.settings import Budget
from policies.quota.reclaim.snapshot import Disruption, Snapshot

Where: TypeAlias = tuple[str, str]
"""The tenant and the node of a pod that is disturbed."""


class Limits:
    """Counts disruptions by tenant, by node and in all, beside those of the last while.

    Until `used_up_until` (Unix seconds) there is no room in any bound that is set.
    """

    def __init__(
        self,
        budget: Budget,
        now: int,
        spent: Iterable[Disruption] = (),
        used_up_until: int = 0,
    ) -> None:
        self._budget = budget
        self._now = now
        recent = [d for d in spent if d.at > now - budget.per_seconds]
        self._tenants = Counter(d.tenant for d in recent)
        self._nodes = Counter(d.node for d in recent if d.node)
        self._all = len(recent)
        times = [d.at + budget.per_seconds for d in recent]
        is_bound = (budget.per_tenant, budget.per_node, budget.per_cluster) != (None, None, None)
        self._is_used_up = is_bound and now < used_up_until
        if self._is_used_up:
            times.append(used_up_until)
        self._eases_at = min(times, default=None)

    def admits(self, more: Iterable[Where]) -> bool:
        """Tell whether so many more may be disturbed now."""
        return not self._is_used_up and self._fits(
            list(more), self._tenants, self._nodes, self._all
        )

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
        return not (self._all or self._is_used_up)

    @property
    def eases_at(self) -> int | None:
        """Return when the first of what counts now counts no more."""
        return self._eases_at

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


def limits_of(snapshot: Snapshot) -> Limits:
    """Return the budget of a picture, beside what was disturbed before it."""
    budget, now = snapshot.settings.budget, snapshot.now
    return Limits(budget, now, snapshot.spent, snapshot.budget_used_up_until)


def _within(limit: int | None, count: int) -> bool:
    return limit is None or count <= limit
