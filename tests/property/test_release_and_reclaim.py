# SPDX-License-Identifier: Apache-2.0
"""Releases and reclaim together, whatever happens in whatever order, and leaders that crash.

The laws are counted from the pods alone, with arithmetic of the tests' own. In the end, with
nothing more from outside, all comes to rest, and whoever is owed what could be had has it.
"""

from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from policies.quota.planning.values import Plan
from policies.quota.reclaim.outcome import Delete, Evict, GiveUp
from tests.support.turmoil.cluster import Answer
from tests.support.turmoil.happenings import NUMBERS, Happenings
from tests.support.turmoil.leader import Leader, Reclaimed
from tests.support.turmoil.reclaim_laws import ReclaimLaws
from tests.support.turmoil.release_laws import ReleaseLaws
from tests.support.turmoil.rest import owed_in_vain
from tests.support.turmoil.sums import MOST_GRACE_SECONDS, milli, total

pytestmark = pytest.mark.timeout(1800)
"""A deep look takes its time."""

ALL = 10_000
_OFTEN_SECONDS = 10


class Turmoil(Happenings):
    """Whoever leads, held against the laws."""

    def begun(self) -> None:
        self.reclaim_laws = ReclaimLaws(self.cluster, self.sums, self.policies.settings)
        self._lead({}, 0)

    def settle_for(self, seconds: int) -> None:
        self._pass(seconds)

    def _lead(self, histories: Mapping[str, Mapping[str, object]], seed: int) -> None:
        self.leader = Leader(self.cluster, self.policies, histories, seed)
        self.release_laws = ReleaseLaws(self.cluster, self.sums)

    @rule(limit=st.sampled_from([1, 3, ALL]))
    def releases_are_sent(self, limit: int) -> None:
        self._release(limit)

    def _release(self, limit: int) -> Plan:
        planned = self.leader.plan_releases(limit)
        self.release_laws.judge(planned, limit)
        lends = self.sums.lendable()
        before = self.sums.excess(lends)
        for release in planned.releases:
            self.sums.note_release(release.pod)
        self.leader.send(planned)
        self.release_laws.borrows_within_bounds(lends, before)
        if not planned.releases and limit == ALL and not self.cluster.sent:
            self._judge_reasons(planned)
        return planned

    def _judge_reasons(self, planned: Plan) -> None:
        self.release_laws.judge_reasons(planned, self._assumed())

    def _assumed(self) -> dict[str, str]:
        """Return where the leader takes what is not bound to be, by uid."""
        fit = self.leader.state.fit
        loose = [p.uid for p in self.sums.counting() if not p.node]
        return {uid: node for uid in loose if (node := fit.node_of(uid)) is not None}

    @precondition(lambda self: self.cluster.sent)
    @rule(number=NUMBERS, how=st.sampled_from(["lands", "lands", "refused", "void"]))
    def something_comes_of_a_release(self, number: int, how: str) -> None:
        uid = sorted(self.cluster.sent)[number % len(self.cluster.sent)]
        if how == "refused":
            self.cluster.release_refused(uid)
            return
        if how == "void":
            self.cluster.change(uid)
        self.cluster.land(uid)

    @rule(number=NUMBERS)
    def all_releases_land_and_are_bound(self, number: int) -> None:
        for uid in sorted(self.cluster.sent):
            self.cluster.land(uid)
        self.cluster.schedule(number)

    @rule(most=st.sampled_from([1, ALL, ALL]))
    def something_is_taken_back(self, most: int) -> None:
        self._take_back(most)

    def _take_back(self, most: int = ALL) -> Reclaimed | None:
        found = self.leader.plan_reclaim()
        if found is None:
            return None
        self.reclaim_laws.judge(found, self._assumed(), self.given.notice)
        for command in found.commands[:most]:
            pod = self.cluster.pods.get(command.pod.uid)
            answer = self.leader.carry_out(command)
            ends = isinstance(command, Evict | Delete | GiveUp)
            if ends and answer is Answer.DONE and pod is not None:
                self.reclaim_laws.note_end(pod)
                self.release_laws.evicted[pod.source] = self.cluster.now
        return found

    @rule(seed=NUMBERS)
    def a_leader_crashes_and_another_begins(self, seed: int) -> None:
        self._lead(self.leader.histories(), seed)

    @rule(passes=st.integers(1, 30), number=NUMBERS)
    def all_is_quiet_for_a_while(self, passes: int, number: int) -> None:
        for _ in range(passes):
            self._pass(5, number)

    def _pass(self, seconds: int, number: int = 0) -> bool:
        """Do what is done every few seconds; tell whether anything happened."""
        planned = self._release(ALL)
        self.all_releases_land_and_are_bound(number)
        found = self._take_back()
        soon = self.cluster.now + MOST_GRACE_SECONDS
        ending = [p for p in self.cluster.ending() if p.deleted_at and p.deleted_at <= soon]
        self.cluster.pass_time(seconds)
        if seconds > _OFTEN_SECONDS:
            # Reclaim would have planned many times meanwhile, and kept what it frees.
            self.leader.plan_reclaim()
        self.what_is_counted_is_what_lives()
        return bool(planned.releases or ending or (found is not None and found.commands))

    @invariant()
    def what_is_counted_is_what_lives(self) -> None:
        if not hasattr(self, "leader"):
            return
        ledger = self.leader.state.ledger
        self.leader.state.tick(self.cluster.now)
        tally = self.sums.tally()
        for name in {*tally.used, *self.cluster.tenants}:
            assert ledger.used(name, "").milli == milli(tally.used[name]), name
            assert ledger.entitled(name, "").milli == milli(tally.entitled[name]), name
            assert ledger.fixed(name, "").milli == milli(tally.fixed[name]), name
        assert sum(tally.used.values()) == total(self.sums.counting())
        assert set(ledger.tenants()) <= {*tally.used, *self.cluster.tenants, ""}
        self.sums.note_use(tally)

    def teardown(self) -> None:
        """With nothing more from outside, all comes to rest, and whoever is owed has it."""
        if not hasattr(self, "leader"):
            return
        quiet, ended = 0, len(self.reclaim_laws.disturbed)
        for _ in range(600):
            quiet = 0 if self._pass(60 if quiet else 5) else quiet + 1
            if quiet > 40 and not self.leader.plan_releases(ALL).releases:
                break
        else:
            raise AssertionError("it never comes to rest")
        ended = len(self.reclaim_laws.disturbed) - ended
        assert ended <= 3 * len(self.cluster.pods), "the same goes again and again"
        planned = self.leader.plan_releases(ALL)
        owed_in_vain(self.sums, self.release_laws, planned, self.given.threshold)


TestTurmoil = Turmoil.TestCase
TestTurmoil.settings = settings(
    max_examples=settings().max_examples // 5, stateful_step_count=30, deadline=None
)
