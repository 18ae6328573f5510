# SPDX-License-Identifier: Apache-2.0
"""The invariants of quota on random orders of events, judged by an observer of its own.

Releases land late, out of order, or never; leaders change with releases under way; quotas move;
pods end, are deleted, and take long to be gone.
"""

from dataclasses import replace
from fractions import Fraction
from math import ceil

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.controlplane import nodes
from tests.prove.ending import fault_of_waiting
from tests.prove.room import is_free, waiting_units
from tests.prove.scene import SHARED, WHOLE, Scale, make_world
from tests.prove.seen import GANG, GANG_SIZE
from tests.prove.simulation import Simulation
from tests.prove.world import World

_YEAR = 365 * 24 * 3600
_AGED_SECONDS = 600
TENANTS = st.sampled_from([f"team-{number:02}" for number in range(6)])
PICKS = st.integers(0, 10**6)


def small_world() -> World:
    """Six tenants on 3 GPUs in sevenths and 4 whole ones: 1 guaranteed to each, 1 for anyone."""
    plain = make_world(Scale(tenants=6, guarantee=1, ceiling=2))
    return replace(plain, devices={SHARED: 21, WHOLE: 4})


class Quota(RuleBasedStateMachine):
    """One cluster, and whatever may happen to it."""

    @initialize(seed=st.integers(0, 100))
    def begin(self, seed: int) -> None:
        fleet = [
            nodes.time_sliced("shared", count=3, replicas=7),
            nodes.whole("whole-a", count=2),
            nodes.whole("whole-b", count=2),
        ]
        self.cluster = Simulation(small_world(), fleet, seed)

    @rule(tenant=TENANTS, count=st.integers(1, 9), firm=st.sampled_from([False] * 4 + [True]))
    def create(self, tenant: str, count: int, *, firm: bool) -> None:
        grace = _YEAR if firm else 30
        for _ in range(count):
            self.cluster.create(tenant, terminationGracePeriodSeconds=grace)

    @rule(
        tenant=TENANTS, name=st.sampled_from("gh"), size=st.integers(1, 4), made=st.integers(1, 4)
    )
    def create_gang(self, tenant: str, name: str, size: int, made: int) -> None:
        for _ in range(made):
            self.cluster.create(tenant, labels={GANG: name}, annotations={GANG_SIZE: str(size)})

    @rule(limit=st.sampled_from([1, 3, 500]))
    def send(self, limit: int) -> None:
        self.cluster.send(self.cluster.plan(limit).releases)

    @precondition(lambda self: self.cluster.sent)
    @rule(pick=PICKS)
    def land(self, pick: int) -> None:
        self.cluster.land(sorted(self.cluster.sent)[pick % len(self.cluster.sent)])

    @rule()
    def land_all(self) -> None:
        for uid in sorted(self.cluster.sent):
            self.cluster.land(uid)
        self.cluster.schedule()

    @precondition(lambda self: self.cluster.sent)
    @rule(pick=PICKS)
    def change_what_is_being_released(self, pick: int) -> None:
        self.cluster.touch(sorted(self.cluster.sent)[pick % len(self.cluster.sent)])

    @precondition(lambda self: self.cluster.pods)
    @rule(pick=PICKS)
    def finish(self, pick: int) -> None:
        running = [u for u, p in self.cluster.pods.items() if p["status"]["phase"] == "Running"]
        if running:
            self.cluster.finish(running[pick % len(running)])

    @precondition(lambda self: self.cluster.pods)
    @rule(pick=PICKS, grace=st.sampled_from([0, 30, _YEAR]))
    def delete(self, pick: int, grace: int) -> None:
        self.cluster.delete(sorted(self.cluster.pods)[pick % len(self.cluster.pods)], grace)

    @rule(pick=PICKS)
    def be_gone(self, pick: int) -> None:
        deleted = [u for u, p in self.cluster.pods.items() if "deletionTimestamp" in p["metadata"]]
        if deleted:
            self.cluster.remove(deleted[pick % len(deleted)])

    @rule(tenant=TENANTS, guarantee=st.integers(0, 1), more=st.integers(1, 2))
    def change_quota(self, tenant: str, guarantee: int, more: int) -> None:
        """What was under way by the old quota has landed before."""
        self.land_all()
        world = self.cluster.world
        own = world.by_name[tenant]
        new = replace(own, guarantee=Fraction(1000 * guarantee), ceiling=Fraction(1000 * more))
        tenants = tuple(new if each is own else each for each in world.tenants)
        self.cluster.set_world(replace(world, tenants=tenants))

    @rule()
    def change_leader(self) -> None:
        self.cluster.take_over()

    @rule(seconds=st.sampled_from([1, 60, 700]))
    def pass_time(self, seconds: int) -> None:
        self.cluster.pass_time(seconds)

    @rule()
    def come_to_rest(self) -> None:
        """With nothing under way: whoever waits, waits for what is so."""
        self.land_all()
        for _ in range(50):
            if not (releases := self.cluster.plan().releases):
                break
            self.cluster.send(releases)
            self.land_all()
        else:
            raise AssertionError("it never comes to rest")
        self.cluster.say(self.cluster.plan())
        observer = self.cluster.observer
        for pod in observer.waiting():
            assert not fault_of_waiting(observer, pod), pod
        for unit in waiting_units(observer):
            tenant = observer.tenant(unit[0])
            assert tenant is not None
            reserved = unit[0].reason.startswith("Reserved")
            assert reserved or not is_free(observer, tenant, unit), unit

    @invariant()
    def nothing_is_breached(self) -> None:
        if hasattr(self, "cluster"):
            assert not self.cluster.observer.breaches

    @invariant()
    def what_is_charged_is_what_lives(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for tenant in self.cluster.world.by_name:
            counted = ceil(self.cluster.observer.used[tenant])
            ledger = self.cluster.used_milli(tenant)
            if self.cluster.sent:
                assert ledger >= counted
            else:
                assert ledger == counted


TestQuota = Quota.TestCase
TestQuota.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
