# SPDX-License-Identifier: Apache-2.0
"""Whatever happens in whatever order, plans keep the laws of quota.

The laws are counted here from the pods themselves, with arithmetic of its own.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from policies.quota.planning.values import Plan, Release
from policies.quota.pods import Phase, QuotaPod
from tests.support.planning import World, lending_at_once, node, tenant

_NAMES = ("a", "b", "c", "d")
_NODES = ("n1", "n2", "n3")
_TENANTS = st.sampled_from(_NAMES)
_NUMBER = st.integers(0, 10**6)


def gpus(pod: QuotaPod) -> int:
    return pod.shape.gpus.get("nvidia.com/gpu", 0)


class Quota(RuleBasedStateMachine):
    """A cluster in which anything may happen, and a leader that now and then plans."""

    @initialize(
        ceilings=st.lists(st.integers(0, 8), min_size=4, max_size=4),
        guarantees=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    )
    def begin(self, ceilings: list[int], guarantees: list[int]) -> None:
        self.ceilings = dict(zip(_NAMES, ceilings, strict=True))
        self.guarantees = {
            name: min(guarantee, self.ceilings[name])
            for name, guarantee in zip(_NAMES, guarantees, strict=True)
        }
        self.live: dict[str, QuotaPod] = {}
        self.waiting: dict[str, QuotaPod] = {}
        self.declared: dict[str, Release] = {}
        self.sizes = {"n1": 4, "n2": 2, "n3": 2}
        self.world = World([], [node(name, size) for name, size in self.sizes.items()])
        self._set()

    def _set(self) -> None:
        self.world.set_tenants(
            tenant(
                name,
                self.guarantees[name],
                self.ceilings[name],
                cohort="x" if name in "ab" else None,
                priority=10 if name == "a" else 0,
                weight=2 if name == "b" else 1,
                lending=lending_at_once(),
            )
            for name in _NAMES
        )

    def _used(self, name: str) -> int:
        declared = (r.pod for r in self.declared.values())
        return sum(gpus(pod) for pod in (*self.live.values(), *declared) if pod.namespace == name)

    @rule(name=_TENANTS, size=st.integers(1, 4), many=st.integers(1, 3), fields=st.data())
    def pods_come(self, name: str, size: int, many: int, fields: Any) -> None:
        made = self.world.wait(
            name,
            size,
            many,
            priority=fields.draw(st.sampled_from([0, 5])),
            form=fields.draw(st.sampled_from([{}, {}, {"exclusive": True}])),
        )
        self.waiting |= {pod.uid: pod for pod in made}

    @rule(name=_TENANTS, size=st.integers(1, 2), many=st.integers(2, 4), short=st.booleans())
    def a_gang_comes(self, name: str, size: int, many: int, short: bool) -> None:
        gang = (f"gang-{len(self.waiting)}-{self.world.now}", many)
        made = self.world.wait(name, size, many - short, gang=gang, owner="Job/x")
        self.waiting |= {pod.uid: pod for pod in made}

    @rule(seconds=st.sampled_from([1, 60, 700]))
    def time_passes(self, seconds: int) -> None:
        self.world.now += seconds

    @rule(limit=st.sampled_from([0, 1, 3, 500]))
    def the_leader_plans(self, limit: int) -> None:
        planned = self.world.plan(limit)
        assert self.world.plan(limit) == planned
        self._judge(planned, limit)
        for release in planned.releases:
            self.world.state.charge_intent(release.pod.uid, release.charge, release.node)
            self.declared[release.pod.uid] = release
            del self.waiting[release.pod.uid]
        fit = self.world.state.fit
        assert all(fit.node_of(release.pod.uid) == release.node for release in planned.releases)

    def _judge(self, planned: Plan, limit: int) -> None:
        assert len(planned.releases) <= limit
        uids = [release.pod.uid for release in planned.releases]
        assert len(set(uids)) == len(uids)
        assert set(uids) <= self.waiting.keys()
        before = {name: self._used(name) for name in _NAMES}
        more = Counter[str]()
        for release in planned.releases:
            more[release.pod.namespace] += gpus(release.pod)
        for name, count in more.items():
            assert before[name] + count <= self.ceilings[name]
        self._judge_fixed(planned)
        self._judge_nodes(planned)
        self._judge_gangs(planned, limit)
        self._judge_waits(planned, limit)

    def _judge_fixed(self, planned: Plan) -> None:
        released = [r.pod for r in (*planned.releases, *self.declared.values())]
        fixed = [p for p in (*released, *self.live.values()) if p.shape.exclusive]
        for name in {r.pod.namespace for r in planned.releases if r.pod.shape.exclusive}:
            assert sum(gpus(p) for p in fixed if p.namespace == name) <= self.guarantees[name]

    def _judge_nodes(self, planned: Plan) -> None:
        taken = sum(gpus(pod) for pod in self.live.values())
        taken += sum(gpus(r.pod) for r in (*self.declared.values(), *planned.releases))
        if planned.releases:
            assert taken <= sum(self.sizes.values())
            assert max(gpus(r.pod) for r in planned.releases) <= max(self.sizes.values())

    def _judge_gangs(self, planned: Plan, limit: int) -> None:
        here = [*self.live.values(), *(r.pod for r in self.declared.values())]
        begun = {pod.gang.name for pod in here if pod.gang is not None}
        for release in planned.releases:
            gang = release.pod.gang
            if gang is None or gang.name in begun:
                continue
            together = [r for r in planned.releases if r.pod.gang == gang]
            assert len(together) == gang.size or len(planned.releases) == limit

    def _judge_waits(self, planned: Plan, limit: int) -> None:
        told = [pod.uid for wait in planned.waits for pod in wait.pods]
        assert len(set(told)) == len(told)
        released = {release.pod.uid for release in planned.releases}
        assert not released & set(told)
        if len(planned.releases) < limit and limit == 500:
            assert released | set(told) == self.waiting.keys()

    @rule(number=_NUMBER)
    def a_release_lands(self, number: int) -> None:
        if self.declared:
            uid = sorted(self.declared)[number % len(self.declared)]
            release = self.declared.pop(uid)
            pod = replace(release.pod, phase=Phase.LIVE, charge=release.charge, version="2")
            self.live[uid] = pod
            self.world.state.put_pod(pod)
            self.world.state.settle(uid)

    @rule(number=_NUMBER)
    def a_release_is_refused(self, number: int) -> None:
        if self.declared:
            uid = sorted(self.declared)[number % len(self.declared)]
            self.waiting[uid] = self.declared.pop(uid).pod
            self.world.state.settle(uid)

    @rule(number=_NUMBER)
    def a_pod_is_bound(self, number: int) -> None:
        unbound = sorted(uid for uid, pod in self.live.items() if not pod.node)
        if unbound:
            pod = self.live[unbound[number % len(unbound)]]
            place = self.world.state.fit.node_of(pod.uid)
            if place is not None:
                self.live[pod.uid] = self.world.bind(pod, place)

    @rule(number=_NUMBER, how=st.sampled_from(["gone", "ended", "deleting"]))
    def a_pod_goes(self, number: int, how: str) -> None:
        if not self.live:
            return
        pod = self.live[sorted(self.live)[number % len(self.live)]]
        match how:
            case "gone":
                self.world.end(self.live.pop(pod.uid))
            case "ended":
                self.world.state.put_pod(replace(self.live.pop(pod.uid), phase=Phase.ENDED))
            case _:
                doomed = replace(pod, deleted_at=self.world.now + 30)
                self.live[pod.uid] = doomed
                self.world.state.put_pod(doomed)

    @rule(number=_NUMBER)
    def a_waiting_pod_is_deleted(self, number: int) -> None:
        if self.waiting:
            self.world.end(self.waiting.pop(sorted(self.waiting)[number % len(self.waiting)]))

    @rule(name=_TENANTS, ceiling=st.integers(0, 8))
    def a_quota_changes(self, name: str, ceiling: int) -> None:
        self.ceilings[name] = ceiling
        self.guarantees[name] = min(self.guarantees[name], ceiling)
        self._set()

    @rule(name=st.sampled_from(_NODES[1:]), size=st.integers(0, 3))
    def an_empty_node_changes(self, name: str, size: int) -> None:
        takers = (*self.live, *self.declared)
        if all(self.world.state.fit.node_of(uid) != name for uid in takers):
            self.sizes[name] = size
            self.world.state.put_node(node(name, size))

    @invariant()
    def what_is_charged_is_what_lives(self) -> None:
        if hasattr(self, "world"):
            for name in _NAMES:
                assert self.world.used(name) == 1000 * self._used(name)

    @invariant()
    def a_state_that_is_made_anew_plans_the_same(self) -> None:
        if not hasattr(self, "world"):
            return
        fresh = World([], [node(name, size) for name, size in self.sizes.items()])
        fresh.now = self.world.now
        fresh.set_tenants(self.world.tenants.values())
        assert len(fresh.tenants) == len(_NAMES)
        for pod in reversed([*self.live.values(), *self.waiting.values()]):
            fresh.state.put_pod(pod)
        for uid, release in self.declared.items():
            fresh.state.put_pod(release.pod)
            fresh.state.charge_intent(uid, release.charge)
        for name in _NAMES:
            assert fresh.used(name) == self.world.used(name)
            theirs, ours = fresh.state.ledger, self.world.state.ledger
            assert theirs.fixed(name, "") == ours.fixed(name, "")
            assert theirs.entitled(name, "") == ours.entitled(name, "")


TestQuota = Quota.TestCase
TestQuota.settings = settings(stateful_step_count=40, max_examples=60, deadline=None)
