# SPDX-License-Identifier: Apache-2.0
"""What may happen to a cluster: the rules that know of no plan.

Pods come, finish and are deleted; nodes are lost and come back; people change quotas, namespaces,
tenants and disruption budgets; time passes.
"""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from policies.model.policyset import PolicySet
from policies.model.tenant import Quota, Tenant
from policies.quota.pods import Gang, Phase, QuotaPod
from tests.support.builders import GPU, MIG, SHARED
from tests.support.turmoil.cluster import UNREACHABLE, Cluster
from tests.support.turmoil.given import GIVEN, NAMESPACES, TENANTS, Given, policies_of, tenants_of
from tests.support.turmoil.leader import Leader
from tests.support.turmoil.shapes import make_node, make_shape
from tests.support.turmoil.sums import COSTS, Sums, guarantee

NODES = ("n0", "n1", "n2", "n3")
RESOURCES = (GPU, GPU, SHARED, MIG)
COUNTS = (4, 3, 3, 7)
NUMBERS = st.integers(0, 10**6)
PLACES = st.sampled_from(NAMESPACES)
BORROWERS = st.sampled_from(["c1", "c1", "d1", "b1"])
SIZES = st.sampled_from([1, 1, 1, 2, 2, 4])
DEVICES = st.sampled_from(RESOURCES)
KINDS = st.sampled_from(["plain"] * 9 + ["exclusive", "slow", "kept"])


class Happenings(RuleBasedStateMachine):
    """A cluster in which anything may happen. Who judges says in `begun` what is to be set up."""

    given: Given
    cluster: Cluster
    sums: Sums
    leader: Leader
    policies: PolicySet

    def begun(self) -> None:
        """Have a leader, and whoever judges it."""
        raise NotImplementedError

    def settle_for(self, seconds: int) -> None:
        """Do what is done every few seconds, and let so many pass."""
        raise NotImplementedError

    @initialize(
        given=GIVEN,
        zones=st.tuples(*[st.sampled_from("ab")] * 4),
        filled=st.lists(
            st.tuples(BORROWERS, DEVICES, st.integers(4, 9), st.sampled_from(["", "own", "all"])),
            min_size=1,
            max_size=4,
        ),
    )
    def begin(self, given: Given, zones: tuple[str, ...], filled: list[Any]) -> None:
        self.given = given
        self.known_tenants = tenants_of(given)
        self.known_nodes = {
            name: make_node(name, resource, count, zone)
            for name, resource, count, zone in zip(NODES, RESOURCES, COUNTS, zones, strict=True)
        }
        self.policies = policies_of(given)
        self.cluster = Cluster(self.known_tenants, self.known_nodes)
        self.sums = Sums(self.cluster)
        self.made = 0
        self.begun()
        self.pass_time(1800)
        for namespace, resource, many, owner in filled:
            for _ in range(many):
                self._create(namespace=namespace, resource=resource, count=1, owner=owner)
        self.settle_for(600)

    # What people and machines do.

    @rule(
        namespace=PLACES,
        resource=DEVICES,
        count=SIZES,
        many=st.integers(1, 4),
        kind=KINDS,
        zone=st.sampled_from(["", "", "", "a"]),
        owner=st.sampled_from(["", "own", "all"]),
        priority=st.sampled_from([0, 5]),
    )
    def pods_come(self, many: int, **asked: Any) -> None:
        for _ in range(many):
            self._create(**asked)

    @rule(
        namespace=PLACES,
        resource=DEVICES,
        count=st.sampled_from([1, 1, 2]),
        size=st.integers(2, 4),
        less=st.sampled_from([0, 0, 0, 1]),
        owner=st.sampled_from(["", "all"]),
        priority=st.sampled_from([0, 5]),
    )
    def a_gang_comes(self, size: int, less: int, **asked: Any) -> None:
        gang = Gang(f"gang-{self.made}", size)
        for _ in range(size - less):
            self._create(gang=gang, **asked)

    @rule(
        namespace=BORROWERS,
        count=st.sampled_from([1, 1, 2]),
        kinds=st.lists(KINDS, min_size=6, max_size=9),
        owner=st.sampled_from(["", "own", "all"]),
        number=NUMBERS,
        passes=st.integers(0, 20),
    )
    def some_borrow_and_the_owner_comes_back(
        self, kinds: list[str], number: int, passes: int, **asked: Any
    ) -> None:
        for kind in kinds:
            self._create(kind=kind, resource=GPU, **asked)
        for _ in range(3):
            self.settle_for(20)
        self.a_tenant_comes_back(number, GPU)
        for _ in range(passes):
            self.settle_for(10)

    @rule(number=NUMBERS, resource=st.sampled_from([GPU, GPU, GPU, MIG]))
    def a_tenant_comes_back(self, number: int, resource: str) -> None:
        """It wants all of its guarantee, which others may have borrowed."""
        entitled = self.sums.tally().entitled
        owed = {n: guarantee(t) - entitled[n] for n, t in self.cluster.tenants.items()}
        names = [n for n in owed if owed[n] > 0 and self.cluster.tenants[n].namespaces]
        if names:
            name = names[number % len(names)]
            namespace = min(self.cluster.tenants[name].namespaces)
            for _ in range(owed[name] // COSTS[resource]):
                self._create(
                    namespace=namespace, resource=resource, count=1, owner="all", priority=5
                )

    def _create(self, **asked: Any) -> QuotaPod:
        self.made += 1
        name, kind, owner = f"pod-{self.made:04}", asked.get("kind", "plain"), asked["owner"]
        uids = {"": "", "own": f"job-{name}", "all": f"job-{asked['namespace']}"}
        pod = QuotaPod(
            namespace=asked["namespace"],
            name=name,
            uid=name,
            version="",
            created_at=self.cluster.now,
            phase=Phase.WAITING,
            shape=make_shape(
                asked["resource"],
                asked["count"],
                asked.get("zone", ""),
                exclusive=kind == "exclusive",
                grace_seconds=10**6 if kind == "slow" else 30,
            ),
            priority=asked.get("priority", 0),
            gang=asked.get("gang"),
            owner=f"Job/{owner}" if owner else "",
            owner_uid=uids[owner],
            do_not_disrupt=kind == "kept",
        )
        return self.cluster.create(pod)

    def _pick(self, number: int, *, phase: Phase = Phase.LIVE) -> QuotaPod | None:
        pods = [p for _, p in sorted(self.cluster.pods.items()) if p.phase is phase]
        return pods[number % len(pods)] if pods else None

    @rule(number=NUMBERS)
    def a_pod_finishes(self, number: int) -> None:
        pod = self._pick(number)
        if pod is not None and pod.node:
            self.cluster.finish(pod.uid)

    @rule(number=NUMBERS, again=st.booleans(), phase=st.sampled_from([Phase.LIVE, Phase.WAITING]))
    def a_pod_is_deleted(self, number: int, *, again: bool, phase: Phase) -> None:
        pod = self._pick(number, phase=phase)
        if pod is not None:
            (self.cluster.delete if again else self.cluster.dismiss)(pod.uid)

    @rule()
    def what_is_deleted_goes_early(self) -> None:
        for pod in self.cluster.ending():
            self.cluster.remove(pod.uid)

    @rule(
        node=st.sampled_from(NODES), what=st.sampled_from(["back"] * 5 + ["lost", "left", "gone"])
    )
    def something_befalls_a_node(self, node: str, what: str) -> None:
        found = self.cluster.nodes.get(node)
        if what == "back":
            self.cluster.put_node(self.known_nodes[node])
        elif found is not None and what == "gone":
            self.cluster.remove_node(node)
        elif found is not None:
            self.cluster.put_node(replace(found, ready=False, taints=(UNREACHABLE,)))
            if what == "left":
                for pod in [p for p in self.cluster.pods.values() if p.node == node]:
                    self.cluster.delete(pod.uid)

    @rule(tenant=st.sampled_from(TENANTS), guarantee=st.integers(0, 6), more=st.integers(0, 6))
    def a_quota_changes(self, tenant: str, guarantee: int, more: int) -> None:
        old = self.known_tenants[tenant]
        quota = Quota(1000 * guarantee, 1000 * (guarantee + more))
        self.known_tenants[tenant] = replace(old, pools={"": quota})
        if tenant in self.cluster.tenants:
            self._set_tenants({**self.cluster.tenants, tenant: self.known_tenants[tenant]})

    @rule(
        what=st.sampled_from(["moved"] * 2 + ["made"] * 3 + ["deleted"]),
        namespace=PLACES,
        tenant=st.sampled_from(TENANTS),
    )
    def a_namespace_moves_or_a_tenant_goes(self, what: str, namespace: str, tenant: str) -> None:
        found = dict(self.cluster.tenants)
        match what:
            case "moved":
                for name, old in self.known_tenants.items():
                    others = old.namespaces - {namespace}
                    new = others | {namespace} if name == tenant else others
                    self.known_tenants[name] = replace(old, namespaces=new)
            case "deleted":
                found.pop(tenant, None)
            case _:
                found[tenant] = self.known_tenants[tenant]
        self._set_tenants({name: self.known_tenants[name] for name in found})

    def _set_tenants(self, tenants: dict[str, Tenant]) -> None:
        self.cluster.set_tenants(tenants)

    @rule(namespace=PLACES, most=st.sampled_from([None, 0, 1]))
    def a_disruption_budget_changes(self, namespace: str, most: int | None) -> None:
        self.cluster.set_budget(namespace, most)

    @rule(seconds=st.sampled_from([1, 20, 60, 700]))
    def pass_time(self, seconds: int) -> None:
        while seconds > 0:
            self.cluster.pass_time(min(60, seconds))
            self.leader.state.tick(self.cluster.now)
            seconds -= 60
