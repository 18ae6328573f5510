# SPDX-License-Identifier: Apache-2.0
"""What a run begins with: tenants and their quotas, and the settings of queue and reclaim."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from policies.model.policyset import PolicySet
from policies.model.reclaim import ReclaimPolicy
from policies.model.settings import Budget, QueueSettings
from policies.model.tenant import Lending, Quota, Tenant
from tests.support.turmoil.shapes import documents

TENANTS = ("a", "b", "c", "d")
NAMESPACES = ("a1", "a2", "b1", "c1", "d1")


@dataclass(frozen=True)
class Given:
    """What a run begins with."""

    guarantees: tuple[int, ...]
    more: tuple[int, ...]
    cohorts: tuple[str | None, ...]
    idle_seconds: int
    min_runtime: int
    notice: int
    budget: Budget
    threshold: int | None
    reserve_after: int


GIVEN = st.builds(
    Given,
    guarantees=st.tuples(
        *[st.sampled_from(own) for own in ([3, 2, 4], [2, 3, 1], [0, 0, 1], [1, 0, 2])]
    ),
    more=st.tuples(*[st.sampled_from([8, 8, 8, 4, 1])] * 4),
    cohorts=st.tuples(*[st.sampled_from(["x"] * 6 + ["y", None])] * 4),
    idle_seconds=st.sampled_from([0, 0, 300, 1800]),
    min_runtime=st.sampled_from([0, 0, 300]),
    notice=st.sampled_from([0, 60]),
    budget=st.sampled_from(
        [Budget(), Budget(), Budget(per_tenant=1), Budget(per_cluster=2), Budget(per_node=1)]
    ),
    threshold=st.sampled_from([None, None, 5]),
    reserve_after=st.sampled_from([600, 10**9]),
)


def tenants_of(given: Given) -> dict[str, Tenant]:
    """Return the tenants by name."""
    return {
        name: Tenant(
            name=name,
            namespaces=frozenset(n for n in NAMESPACES if n.startswith(name)),
            selector=None,
            pools={"": Quota(1000 * own, 1000 * (own + more))},
            cohort=cohort,
            priority=10 if name == "a" else 0,
            weight=2 if name == "b" else 1,
            lending=Lending(idle_after_seconds=given.idle_seconds),
            min_runtime_seconds=given.min_runtime,
        )
        for name, own, more, cohort in zip(
            TENANTS, given.guarantees, given.more, given.cohorts, strict=True
        )
    }


def policies_of(given: Given) -> PolicySet:
    """Return the policies, whose tenants are the cluster's."""
    plain = documents()
    queue = QueueSettings(reserve_after_seconds=given.reserve_after)
    policy = ReclaimPolicy(name="main", notice_seconds=given.notice, pdb_timeout_seconds=120)
    return replace(
        plain,
        pools={},
        settings=replace(
            plain.settings, budget=given.budget, priority_threshold=given.threshold, queue=queue
        ),
        reclaim_policies=(policy,),
    )
