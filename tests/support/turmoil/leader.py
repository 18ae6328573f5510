# SPDX-License-Identifier: Apache-2.0
"""A leader: the real planners of releases and reclaim, and beside them what their shells do.

It has nothing but what it was told since it began, and what its predecessor wrote down.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from policies.model.facts import NamespaceFacts
from policies.model.policyset import PolicySet
from policies.quota.planning.plan import plan
from policies.quota.planning.values import Plan
from policies.quota.pods import QuotaPod
from policies.quota.reclaim.memory import Memory
from policies.quota.reclaim.outcome import (
    Command,
    Delete,
    Evict,
    Forewarn,
    GiveUp,
    Notify,
    ReclaimPlan,
    Withdraw,
    reserves_of,
)
from policies.quota.reclaim.picture import take_picture
from policies.quota.reclaim.snapshot import Disruption, Snapshot
from policies.quota.reclaim.torn import give_up, uids_of
from policies.quota.reclaim.units import KnownUnits
from policies.quota.state import QuotaState
from reconciler.reclaim.actuate import tenant_of
from reconciler.reclaim.controller import policy_of, readmit_after
from reconciler.reclaim.plan import plan_reclaim
from tests.support.builders import catalog
from tests.support.turmoil.cluster import Answer, Cluster, Sent

_KEEP_SECONDS: Final = 15
_REFUSED_SECONDS: Final = 15


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """One pass of reclaim: what it saw, what it planned, and what is to be done now."""

    released: Plan
    snapshot: Snapshot
    plan: ReclaimPlan
    commands: Sequence[Command]


class Leader:
    """Leads from its making until another is made."""

    def __init__(
        self,
        cluster: Cluster,
        policies: PolicySet,
        histories: Mapping[str, Mapping[str, object]],
        seed: int = 0,
    ) -> None:
        """Begin with what `cluster` has, told in any order, and the idle `histories` by tenant."""
        self._cluster = cluster
        self._policies = policies
        self._generation = 0
        self.state = QuotaState(catalog())
        self.memory = Memory(self.state.hold_back)
        self._known = KnownUnits()
        self.last: Plan | None = None
        self._begin(histories, random.Random(seed))  # noqa: S311 - an example must be repeatable
        cluster.watcher = self

    def _begin(self, histories: Mapping[str, Mapping[str, object]], chance: random.Random) -> None:
        cluster, state = self._cluster, self.state
        self.tenants_changed()
        for tenant, by_pool in histories.items():
            for pool, plain in by_pool.items():
                state.inherit_history(tenant, pool, plain)
        for namespace in sorted({n for t in cluster.tenants.values() for n in t.namespaces}):
            state.put_namespace(NamespaceFacts(namespace, {}))
        for name in cluster.nodes:
            self.node_changed(name)
        for namespace in cluster.budgets:
            self.budgets_changed(namespace)
        pods = list(cluster.pods.values())
        chance.shuffle(pods)
        for pod in pods:
            state.put_pod(pod)
        for uid, sent in cluster.sent.items():
            state.charge_intent(uid, sent.release.charge)
        state.tick(cluster.now)
        noticed = [pod for pod in pods if pod.notice is not None]
        owners = {
            pod.uid: state.ledger.owner(pod.namespace) or (pod.charge.tenant if pod.charge else "")
            for pod in noticed
        }
        self.memory.recover(noticed, owners, cluster.now)

    # What it is told.

    def pod_changed(self, pod: QuotaPod) -> None:
        self.state.put_pod(pod)
        self.memory.seen(pod)

    def pod_gone(self, uid: str) -> None:
        self.state.remove_pod(uid)
        self.memory.gone(uid)

    def node_changed(self, name: str) -> None:
        node = self._cluster.nodes.get(name)
        if node is None:
            self.state.remove_node(name)
        else:
            self.state.put_node(node)

    def budgets_changed(self, namespace: str) -> None:
        found = self._cluster.budgets.get(namespace)
        self.state.set_pdbs(namespace, () if found is None else (found,))

    def tenants_changed(self) -> None:
        self._generation += 1
        tenants = dict(sorted(self._cluster.tenants.items()))
        self.state.set_policies(
            replace(
                self._policies,
                generation=f"g{self._generation}",
                tenants=tenants,
                tenant_by_namespace={n: t for t in tenants.values() for n in t.namespaces},
                selecting_tenants=(),
            )
        )

    def settled(self, uid: str) -> None:
        self.state.settle(uid)

    # What it does.

    def histories(self) -> Mapping[str, Mapping[str, object]]:
        """Return what it writes into the status of tenants."""
        known = self.state.histories
        return {name: known.plain_of(t) for name, t in self._cluster.tenants.items()}

    def plan_releases(self, limit: int) -> Plan:
        """Plan now, and do nothing."""
        self.state.tick(self._cluster.now)
        self.last = plan(self.state, self._cluster.now, limit)
        return self.last

    def send(self, planned: Plan) -> None:
        """Declare releases and send them; each may land at any time."""
        for release in planned.releases:
            self.state.charge_intent(release.pod.uid, release.charge, release.node)
            sent = Sent(release, release.pod.version)
            self._cluster.sent[release.pod.uid] = sent

    def plan_reclaim(self) -> Reclaimed | None:
        """Plan by the newest plan of releases what to take back, and do nothing."""
        released, state, now = self.last, self.state, self._cluster.now
        if released is None:
            return None
        state.tick(now)
        told = [pod.uid for pod in state.pods() if pod.notice is not None]
        per_seconds = state.policies.settings.budget.per_seconds
        remembered = self.memory.remembered(now, per_seconds, told)
        budgets = tuple(self._cluster.budgets.values())
        snapshot = take_picture(state, released, budgets, remembered, now)
        planned = plan_reclaim(snapshot, self._known)
        torn = released.take_back
        self.memory.planned({*(planned.victims or ()), *uids_of(torn)}, told, now)
        for (tenant, pool), reserve in reserves_of(planned, now + _KEEP_SECONDS).items():
            state.reserve_for(tenant, pool, reserve)
        commands = (*planned.commands, *give_up(snapshot, planned, torn, policy_of(state)))
        return Reclaimed(released, snapshot, planned, tuple(self._of_use(commands)))

    def _of_use(self, commands: Sequence[Command]) -> Iterator[Command]:
        waiting = {p.uid for line in self.state.queue.tenants.values() for p in line.pods}
        lacking = {*waiting, *self.state.fit.unplaced()} - self.state.ledger.intents().keys()
        for command in commands:
            uids = command.why.beneficiary.uids if isinstance(command, Evict | Delete) else ()
            if not (uids and lacking.isdisjoint(uids)):
                yield command

    def carry_out(self, command: Command) -> Answer:
        """Do what a plan says, and remember what came of it."""
        cluster, pod = self._cluster, command.pod
        match command:
            case Notify() | Forewarn():
                return cluster.annotate(pod.uid, pod.version, command.notice)
            case Withdraw():
                return cluster.annotate(pod.uid, pod.version, None)
            case _:
                return self._end(command)

    def _end(self, command: Evict | Delete | GiveUp) -> Answer:
        cluster, pod, memory = self._cluster, command.pod, self.memory
        disruption = Disruption(cluster.now, tenant_of(command), pod.node)
        memory.ended(pod, disruption, readmit_after(self.state)(command))
        if isinstance(command, Delete):
            found = cluster.pods.get(pod.uid)
            if found is not None and found.version == pod.version:
                cluster.delete(pod.uid)
                return Answer.DONE
            answer = Answer.STALE
        else:
            answer = cluster.evict(pod.uid, pod.version)
        if answer is Answer.STALE:
            memory.refused(pod, 0)
        elif answer is Answer.REFUSED:
            memory.refused(pod, cluster.now + _REFUSED_SECONDS)
            if pod.notice is not None and pod.notice.refused_at is None:
                since = replace(pod.notice, refused_at=cluster.now)
                cluster.annotate(pod.uid, pod.version, since)
        return answer
