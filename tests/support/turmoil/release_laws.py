# SPDX-License-Identifier: Apache-2.0
"""The laws of releases, held against one plan before anything of it is done."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from policies.quota.planning.values import Plan, Wait, Why
from policies.quota.pods import Phase, QuotaPod
from tests.support.turmoil.cluster import Cluster
from tests.support.turmoil.sums import UNIT, Sums, ceiling, cost, guarantee, total

GANG_SECONDS = 300
READMIT_SECONDS = 60


class ReleaseLaws:
    """Judges plans. `evicted` is by source when such was last taken back by this leader."""

    def __init__(self, cluster: Cluster, sums: Sums) -> None:
        self.cluster = cluster
        self.sums = sums
        self.evicted: dict[tuple[str, str], int] = {}

    def judge(self, planned: Plan, limit: int) -> None:
        """Hold a plan against the laws. Nothing of it may have been sent yet."""
        pods = [release.pod for release in planned.releases]
        waiting = {pod.uid for pod in self.waiting()}
        uids = Counter(pod.uid for pod in pods)
        told = Counter(pod.uid for wait in planned.waits for pod in wait.pods)
        assert max(uids.values(), default=0) <= 1
        assert max(told.values(), default=0) <= 1
        assert len(pods) <= limit
        assert uids.keys() <= waiting
        assert not uids.keys() & told.keys()
        assert told.keys() <= waiting
        if len(pods) < limit >= len(waiting):
            assert uids.keys() | told.keys() == waiting, "somebody is told nothing"
        self._gangs(pods, limit)
        self._ceilings(pods)
        self._readmissions(pods)
        self._nodes(planned)

    def waiting(self) -> list[QuotaPod]:
        """Return what waits, and has not been sent."""
        sent = self.cluster.sent
        pods = self.cluster.pods.values()
        return [p for p in pods if p.phase is Phase.WAITING and p.uid not in sent]

    def _ceilings(self, pods: list[QuotaPod]) -> None:
        tally = self.sums.tally()
        for name in {self.sums.payer(pod) for pod in pods}:
            tenant = self.cluster.tenants[name]
            own = [pod for pod in pods if self.sums.payer(pod) == name]
            used = tally.used[name] + total(own)
            assert used <= ceiling(tenant), f"{name} passes its ceiling with {own}"
            firm = [pod for pod in own if self.sums.is_firm(pod)]
            if firm:
                fixed = tally.fixed[name] + total(firm)
                assert fixed <= guarantee(tenant), f"{firm} could never be taken back"

    def borrows_within_bounds(self, lends: Counter[str], before: int) -> None:
        """Demand that what a plan has borrowed, which has been sent, was there to be lent.

        `lends` and `before` are what could be lent, and was borrowed past that, when it was made.
        """
        after = self.sums.excess(lends)
        assert after <= max(before, self.sums.spare()), "more is borrowed than may be lent"

    def _readmissions(self, pods: list[QuotaPod]) -> None:
        used = self.sums.tally().used
        for pod in pods:
            at, name = self.evicted.get(pod.source), self.sums.payer(pod)
            if at is None or self.cluster.now >= at + READMIT_SECONDS:
                continue
            # In whatever order they go: with others of the plan it may be past the guarantee.
            own = guarantee(self.cluster.tenants[name])
            assert used[name] + cost(pod) <= own, f"{pod} borrows again at once"

    def _nodes(self, planned: Plan) -> None:
        taken: dict[str, Counter[str]] = {}
        for release in planned.releases:
            assert self.cluster.takes(release.pod, release.node), release
            taken.setdefault(release.node, Counter()).update(dict(release.pod.shape.fit.requests))
        for name, counts in taken.items():
            free = self.cluster.free(name)
            assert all(free[resource] >= n for resource, n in counts.items()), (name, planned)

    def _gangs(self, pods: list[QuotaPod], limit: int) -> None:
        for key in {(p.namespace, p.gang.name) for p in pods if p.gang is not None}:
            here = self.gang(key)
            begun = [p for p in here if p.phase is Phase.LIVE or p.uid in self.cluster.sent]
            waits = [p for p in here if p not in begun and p.phase is Phase.WAITING]
            ended = sum(p.phase is Phase.ENDED for p in here)
            go = [p for p in pods if p in waits]
            sizes = {p.gang.size for p in (*begun, *waits) if p.gang is not None}
            assert len(sizes) == 1, f"{key} disagrees about its size"
            size = sizes.pop()
            assert size is not None
            assert len(begun) + len(waits) <= size, f"{key} has more pods than it says"
            if begun or len(pods) == limit:
                continue
            assert len(go) == len(waits), f"a part of {key} is released"
            assert len(go) + ended >= size, f"{key} lacks pods"

    def gang(self, key: tuple[str, str]) -> list[QuotaPod]:
        """Return the members of a gang that are not being deleted."""
        return [
            p
            for p in self.cluster.pods.values()
            if p.gang is not None and (p.namespace, p.gang.name) == key and p.deleted_at is None
        ]

    # Why the rest waits.

    def judge_reasons(
        self, planned: Plan, assumed: Mapping[str, str], *, is_kept: bool = False
    ) -> None:
        """Demand that each reason is so. Nothing is released by the plan, nor under way.

        `assumed` is the node of what is released and not bound, by uid; `is_kept` tells that room
        is kept for whom it is taken back for.
        """
        assert not planned.releases
        free = self._free(assumed)
        for wait in planned.waits:
            for unit in self._units(wait):
                fault = self._fault(wait, unit, planned, free)
                assert fault is None, f"{fault}: {wait.reason} {unit}"

    def _units(self, wait: Wait) -> Iterable[list[QuotaPod]]:
        if wait.pods[0].gang is not None:
            yield list(wait.pods)
        else:
            yield from ([pod] for pod in wait.pods)

    def _free(self, assumed: Mapping[str, str]) -> dict[str, Counter[str]]:
        free = {name: self.cluster.free(name) for name in self.cluster.nodes}
        for uid, node in assumed.items():
            if node in free:
                free[node].subtract(dict(self.cluster.pods[uid].shape.fit.requests))
        return free

    def _fault(
        self,
        wait: Wait,
        unit: list[QuotaPod],
        planned: Plan,
        free: Mapping[str, Counter[str]],
    ) -> str | None:
        why, pod = wait.hold.why, unit[0]
        if why is Why.NO_TENANT:
            return None if self.cluster.owner(pod.namespace) is None else "it has an owner"
        if why is Why.GANG:
            return self._fault_of_gang(pod)
        if why is Why.RESERVED:
            others = [p for p in self.waiting() if p not in unit]
            return None if others else "nobody else waits"
        if why in (Why.NO_ROOM, Why.NO_SUCH_NODE):
            return self._fault_of_room(why, unit, planned, free)
        return self._fault_of_quota(why, unit)

    def _fault_of_quota(self, why: Why, unit: list[QuotaPod]) -> str | None:
        sums, more, pod = self.sums, total(unit), unit[0]
        tenant = self.cluster.tenants[sums.payer(pod)]
        name, own = tenant.name, guarantee(tenant)
        tally = sums.tally()
        used, firm = tally.used[name], total(p for p in unit if sums.is_firm(p))
        at = max((self.evicted.get(p.source, 0) for p in unit), default=0)
        borrowed = sum(sums.borrowed().values()) + max(0, used + more - max(own, used))
        rounding = UNIT * len(tally.used)  # what each tenant borrows counts in whole thousandths
        lends_less = used + more > own and borrowed + rounding > sums.spare()
        holds: dict[Why, Callable[[], bool]] = {
            Why.CEILING: lambda: used + more > ceiling(tenant),
            Why.FIXED: lambda: bool(firm) and tally.fixed[name] + firm > own,
            Why.NEVER: lambda: more > ceiling(tenant) or firm > own,
            Why.BORROWING: lambda: lends_less,
            Why.TAKEN_BACK: lambda: at + READMIT_SECONDS > self.cluster.now and used + more > own,
        }
        return None if why in holds and holds[why]() else "that is not so"

    def _fault_of_gang(self, pod: QuotaPod) -> str | None:
        assert pod.gang is not None
        here = self.gang((pod.namespace, pod.gang.name))
        alive = [p for p in here if p.phase is not Phase.ENDED]
        sizes = {p.gang.size for p in alive if p.gang is not None}
        if len(sizes) > 1 or len(alive) != pod.gang.size:
            return None
        return "all of it is there"

    def _fault_of_room(
        self, why: Why, unit: list[QuotaPod], planned: Plan, free: Mapping[str, Counter[str]]
    ) -> str | None:
        uids = {pod.uid for pod in unit}
        if why is Why.NO_SUCH_NODE:
            for pod in unit:
                if not any(self._could(pod, name) for name in self.cluster.nodes):
                    return None
            return "there are nodes that could hold it"
        left = {name: Counter(room) for name, room in free.items()}
        for kept in planned.kept:
            if kept.uid not in uids and kept.node in left:
                left[kept.node].subtract(dict(kept.fit.requests))
        asks = [dict(pod.shape.fit.requests) for pod in unit]
        if any(ask != asks[0] for ask in asks):
            return None  # whether unlike pods fit beside each other is hard to tell
        room = 0
        for name, counts in left.items():
            if self.cluster.takes(unit[0], name):
                room += max(0, min(counts[resource] // n for resource, n in asks[0].items()))
        return None if room < len(unit) else "nodes have room"

    def _could(self, pod: QuotaPod, node: str) -> bool:
        offered = self.cluster.nodes[node].allocatable
        return self.cluster.suits(pod, node) and all(
            offered.get(name, 0) >= n for name, n in pod.shape.fit.requests
        )
