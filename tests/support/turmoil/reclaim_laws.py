# SPDX-License-Identifier: Apache-2.0
"""The laws of reclaim, held against one pass before anything of it is done."""

from collections import Counter
from collections.abc import Iterable, Mapping

from policies.model.settings import Settings
from policies.quota.pods import Phase, QuotaPod
from policies.quota.reclaim.outcome import Delete, Evict, GiveUp, Notify
from policies.quota.reclaim.snapshot import Kept
from tests.support.turmoil.cluster import Cluster
from tests.support.turmoil.leader import Reclaimed
from tests.support.turmoil.sums import MOST_GRACE_SECONDS, Sums, cohort, cost, guarantee

LATE_SECONDS = 60


class ReclaimLaws:
    """Judges passes, and remembers what was disturbed."""

    def __init__(self, cluster: Cluster, sums: Sums, settings: Settings) -> None:
        self.cluster = cluster
        self.sums = sums
        self._settings = settings
        self.disturbed: list[tuple[int, str, str]] = []
        """When, whose, and on which node."""
        self._assumed: Mapping[str, str] = {}

    def judge(self, found: Reclaimed, assumed: Mapping[str, str], notice_seconds: int) -> None:
        """Hold a pass against the laws.

        `assumed` is the node of what is released, or about to be, and not bound, by uid.
        """
        self._assumed = assumed
        loose = {p.uid for p in self.sums.counting() if not p.node}
        unplaced = loose - assumed.keys()
        victims = dict(found.plan.victims or {})
        pods = {uid: self.cluster.pods[uid] for uid in victims}
        for pod in pods.values():
            self._may_go(pod)
        self._guarantees(found, pods, frozenset(unplaced))
        self._cohorts(found, pods)
        self._rooms(found, pods)
        self._gangs(pods)
        self._commands(found, notice_seconds)

    def _may_go(self, pod: QuotaPod) -> None:
        assert pod.phase is Phase.LIVE
        assert pod.deleted_at is None
        assert not pod.shape.exclusive
        assert pod.uid not in self.sums.firm, f"{pod} could never be taken back"

    def _guarantees(
        self, found: Reclaimed, pods: Mapping[str, QuotaPod], unplaced: frozenset[str]
    ) -> None:
        """Who gives keeps its guarantee; who gets stays within its own."""
        lost: Counter[str] = Counter()
        for pod in pods.values():
            lost[self.sums.payer(pod)] += cost(pod)
        entitled = self.sums.tally().entitled
        for name, more in lost.items():
            own = guarantee(self.cluster.tenants.get(name))
            assert entitled[name] - more >= own, f"{name} is pushed below its guarantee"
        gets: Counter[str] = Counter()
        for reservation in found.plan.reservations:
            for uid in reservation.places:
                gets[reservation.tenant] += cost(self.cluster.pods[uid])
        for name, more in gets.items():
            own = guarantee(self.cluster.tenants[name])
            used = self.sums.running(name, unplaced)
            assert used + more <= own, f"{name} gets more than its guarantee"

    def _cohorts(self, found: Reclaimed, pods: Mapping[str, QuotaPod]) -> None:
        """Nobody takes from itself, nor from another cohort that borrows nothing."""
        groups = {r.group: r.tenant for r in found.plan.reservations}
        borrowed, tenants = self.sums.borrowed(), self.cluster.tenants
        for uid, group in (found.plan.victims or {}).items():
            giver, getter = self.sums.payer(pods[uid]), groups[group]
            assert giver != getter, f"{getter} takes from itself"
            theirs = cohort(tenants.get(giver), giver)
            if giver in tenants and theirs != cohort(tenants[getter], getter):
                assert borrowed[theirs] > 0

    def _rooms(self, found: Reclaimed, victims: Mapping[str, QuotaPod]) -> None:
        """All who get room fit beside each other, and nobody goes from where it is not needed."""
        taken: dict[str, Counter[str]] = {}
        for reservation in found.plan.reservations:
            for uid, node in reservation.places.items():
                pod = self.cluster.pods[uid]
                assert self.cluster.takes(pod, node), f"{pod} could not run on {node}"
                taken.setdefault(node, Counter()).update(dict(pod.shape.fit.requests))
        for node, counts in taken.items():
            room = self._room(node, victims)
            assert all(room[name] >= n for name, n in counts.items()), (node, found.plan)
        placed = {uid for r in found.plan.reservations for uid in r.places}
        kept = [k for uid, k in found.snapshot.kept.items() if uid not in placed]
        for unit in self._units(victims):
            left = {uid: pod for uid, pod in victims.items() if uid not in unit}
            nodes = {self._node_of(victims[uid]) for uid in unit} & taken.keys()
            assert any(
                self._room(node, left)[name] - self._kept(node, kept)[name] < n
                for node in nodes
                for name, n in taken[node].items()
            ), f"{unit} is not needed: {found.plan.reservations} {found.snapshot.kept}"

    def _kept(self, node: str, kept: Iterable[Kept]) -> Counter[str]:
        """Return what of a node's room is kept for others: at most what is free if nobody goes."""
        asked: Counter[str] = Counter()
        for each in kept:
            if each.node == node:
                asked.update(dict(each.fit.requests))
        return asked & self._room(node, {})

    def _room(self, node: str, without: Mapping[str, QuotaPod]) -> Counter[str]:
        """Return what is free on a node once these and who is about to end are gone."""
        room = Counter(self.cluster.nodes[node].allocatable)
        for pod in self.cluster.pods.values():
            if self._node_of(pod) == node and pod.uid not in without:
                ends = pod.deleted_at
                soon = ends is not None and ends <= self.cluster.now + MOST_GRACE_SECONDS
                if not soon:
                    room.subtract(dict(pod.shape.fit.requests))
        return room

    def _node_of(self, pod: QuotaPod) -> str:
        bound = pod.node if pod.phase is Phase.LIVE else ""
        return bound or self._assumed.get(pod.uid, "")

    def _live(self, key: tuple[str, str]) -> list[QuotaPod]:
        return [
            p
            for p in self.cluster.pods.values()
            if p.gang is not None
            and (p.namespace, p.gang.name) == key
            and p.deleted_at is None
            and p.phase is Phase.LIVE
        ]

    def _gangs(self, victims: Mapping[str, QuotaPod]) -> None:
        """A gang goes whole, or gives what it has beyond its size."""
        for key in {(p.namespace, p.gang.name) for p in victims.values() if p.gang is not None}:
            live = self._live(key)
            stay = [p for p in live if p.uid not in victims]
            sizes = {p.gang.size for p in live if p.gang is not None}
            if stay:
                assert sizes == {max(s or 0 for s in sizes)}, f"{key} disagrees about its size"
                assert len(stay) >= max(s or 0 for s in sizes), f"{key} is torn"

    def _units(self, victims: Mapping[str, QuotaPod]) -> list[set[str]]:
        """Return sets of victims that only go together."""
        found: dict[tuple[str, str], set[str]] = {}
        singles = []
        for uid, pod in victims.items():
            if pod.gang is None:
                singles.append({uid})
                continue
            key = (pod.namespace, pod.gang.name)
            found.setdefault(key, set()).add(uid)
        for key, uids in found.items():
            if len(uids) == len(self._live(key)):
                singles.append(uids)
            else:
                singles += [{uid} for uid in uids]
        return singles

    def _commands(self, found: Reclaimed, notice_seconds: int) -> None:
        uids = Counter(command.pod.uid for command in found.commands)
        assert max(uids.values(), default=0) <= 1
        now, ends = self.cluster.now, []
        for command in found.commands:
            pod = command.pod
            if isinstance(command, Notify):
                assert command.notice.evict_at >= now + notice_seconds
            elif isinstance(command, Evict | Delete | GiveUp):
                assert pod.notice is not None
                assert pod.notice.evict_at <= now
                assert pod.notice.evict_at >= pod.notice.at + notice_seconds
                ends.append(pod)
                if not isinstance(command, GiveUp):
                    self._runtime(pod)
        self._budget(ends)

    def _runtime(self, pod: QuotaPod) -> None:
        tenant = self.cluster.tenants.get(self.sums.payer(pod))
        if tenant is not None and pod.charge is not None:
            assert pod.charge.at + tenant.min_runtime_seconds <= self.cluster.now, "too soon"

    def _budget(self, ends: list[QuotaPod]) -> None:
        budget, now = self._settings.budget, self.cluster.now
        recent = [d for d in self.disturbed if d[0] > now - budget.per_seconds]
        recent += [(now, self.sums.payer(pod), pod.node) for pod in ends]
        if not ends:
            return
        for name, count in Counter(name for _, name, _ in recent).items():
            own = any(self.sums.payer(pod) == name for pod in ends)
            assert not own or budget.per_tenant is None or count <= budget.per_tenant, name
        for name, count in Counter(node for _, _, node in recent).items():
            own = any(pod.node == name for pod in ends)
            assert not own or budget.per_node is None or count <= budget.per_node, name
        assert budget.per_cluster is None or len(recent) <= budget.per_cluster

    def note_end(self, pod: QuotaPod) -> None:
        """Take note of a pod that was disturbed."""
        self.disturbed.append((self.cluster.now, self.sums.payer(pod), pod.node))
