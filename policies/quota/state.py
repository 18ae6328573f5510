# SPDX-License-Identifier: Apache-2.0
"""Everything that quota is decided from, kept up to date event by event.

One place that feeds the ledger, the index of nodes, the queue and the idle histories, so that they
cannot tell different things. What may be released is not decided here.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from policies.cluster.fit import FitIndex
from policies.cluster.nodes import Node
from policies.cluster.shape import FitShape
from policies.model.facts import NamespaceFacts
from policies.model.policyset import PolicySet
from policies.model.tenant import Tenant
from policies.quota.charge import ChargeRecord
from policies.quota.fleet import Fleet
from policies.quota.gangs import GangKey
from policies.quota.histories import Histories
from policies.quota.holdbacks import HoldBacks
from policies.quota.idle import IdleHistory
from policies.quota.ledger import NO_TENANT, Ledger
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.planning.demand import Demand
from policies.quota.planning.known import KnownTenants
from policies.quota.planning.options import Options
from policies.quota.planning.turns import Turns
from policies.quota.pods import Phase, QuotaPod, Source
from policies.quota.queue import Queue
from policies.quota.reclaimable import reclaimable
from policies.quota.reserves import Reserve, Reserves
from policies.quota.tariff import Tariff
from policies.vendors import Catalog


class QuotaState:
    """The picture. Feed it in any order; nothing can be planned before it has policies."""

    def __init__(self, catalog: Catalog) -> None:
        self._policies: PolicySet | None = None
        self._tariff: Tariff | None = None
        self._ledger: Ledger | None = None
        self._options: Options | None = None
        self.fit = FitIndex()
        self.queue = Queue()
        self._pods: dict[str, QuotaPod] = {}
        self._by_namespace: dict[str, dict[str, None]] = {}
        """Pods that take GPUs or wait."""
        self._intents: dict[str, ChargeRecord] = {}
        self._places: dict[str, str] = {}
        """On which nodes plans have found room, for intents."""
        self._namespaces: dict[str, NamespaceFacts] = {}
        self._fleet = Fleet(catalog)
        self._pdbs: dict[str, tuple[PodDisruptionBudget, ...]] = {}
        self.histories = Histories()
        self._reserves = Reserves()
        self.turns = Turns()
        self._hold_backs = HoldBacks()
        self._aside: set[str] = set()
        self._requests: WeakKeyDictionary[object, Mapping[str, int]] = WeakKeyDictionary()
        self._changed: set[str] = set()
        self._demand = Demand()
        self.known = KnownTenants()

    # What has happened.

    def set_policies(self, policies: PolicySet) -> None:
        """Decide by these from now on: owners, prices and pools may be others."""
        first = self._policies is None
        self._policies, self._options = policies, None
        if self._tariff is None or self._ledger is None:
            self._tariff = Tariff(policies)
            self._ledger = Ledger(self._owner, self._tariff)
        self._fleet.set_policies(policies)
        if first:
            for node in self.nodes.values():
                self._tariff.put_node(node)
            for uid, charge in self._intents.items():
                self._ledger.charge_intent(uid, charge)
            for pod in self._pods.values():
                self._ledger.put(pod)
        else:
            self._tariff.set_policies(policies)
            self._ledger.resettle()
        self._queue_again(self._pods)

    def put_namespace(self, facts: NamespaceFacts) -> None:
        """Take a namespace as it is now."""
        old = self._namespaces.get(facts.name)
        self._namespaces[facts.name] = facts
        if old is None or old.labels != facts.labels:
            self._resettle(facts.name)

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        if self._namespaces.pop(name, None) is not None:
            self._resettle(name)

    def put_node(self, node: Node) -> None:
        """Take a node as it is now."""
        old = self.nodes.get(node.name)
        if old == node:
            return
        self.fit.put_node(node)
        self._fleet.put(node)
        if old is None or old.labels != node.labels:
            self._options = None
        if self._tariff is not None and self._tariff.put_node(node):
            self._prices_changed(node.name)

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        if name not in self.nodes:
            return
        self.fit.remove_node(name)
        self._fleet.remove(name)
        self._options = None
        if self._tariff is not None and self._tariff.remove_node(name):
            self._prices_changed(name)

    def put_pod(self, pod: QuotaPod) -> None:
        """Take a pod as it is now. An intent to release it counts until it is settled."""
        self._pods[pod.uid] = pod
        if self._ledger is not None:
            self._ledger.put(pod)
        if pod.holds_quota:
            self._by_namespace.setdefault(pod.namespace, {})[pod.uid] = None
        self._put_on_nodes(pod)
        self._put_in_queue(pod)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod that is gone, and the intent to release it."""
        self._intents.pop(uid, None)
        self._places.pop(uid, None)
        self._aside.discard(uid)
        if self._ledger is not None:
            self._ledger.remove(uid)
        self.fit.release(uid)
        self.queue.remove(uid)
        pod = self._pods.pop(uid, None)
        if pod is not None and (found := self._by_namespace.get(pod.namespace)) is not None:
            found.pop(uid, None)
            if not found:
                del self._by_namespace[pod.namespace]

    def charge_intent(self, uid: str, charge: ChargeRecord, node: str = "") -> None:
        """Count a release that is about to be sent, until it is settled or the pod is seen so.

        It takes room on `node`, where its plan found some, if it still can; else on any.
        """
        self._places[uid] = node
        if uid not in self._intents:
            self._reserves.spend(charge)
        self._intents[uid] = charge
        if self._ledger is not None:
            self._ledger.charge_intent(uid, charge)
        pod = self._pods.get(uid)
        if pod is not None:
            self._put_on_nodes(pod)
            self._put_in_queue(pod)

    def settle(self, uid: str) -> None:
        """Forget an intent: what became of it shows in the pod as it was put."""
        if self._intents.pop(uid, None) is None:
            return
        self._places.pop(uid, None)
        if self._ledger is not None:
            self._ledger.settle(uid)
        pod = self._pods.get(uid)
        if pod is not None:
            self._put_on_nodes(pod)
            self._put_in_queue(pod)

    def set_aside(self, uid: str, *, aside: bool = True) -> None:
        """Plan for a waiting pod no more, or again; it goes on being counted as one that waits."""
        (self._aside.add if aside else self._aside.discard)(uid)
        if (pod := self._pods.get(uid)) is not None:
            self._put_in_queue(pod)

    def set_pdbs(self, namespace: str, pdbs: Iterable[PodDisruptionBudget]) -> None:
        """Take the disruption budgets of a namespace as they are now."""
        old, new = self._pdbs.get(namespace, ()), tuple(pdbs)
        if new:
            self._pdbs[namespace] = new
        else:
            self._pdbs.pop(namespace, None)
        # Their counts change with every pod that becomes ready, and decide nothing here.
        if _protection(old) != _protection(new):
            self._queue_again(self._by_namespace.get(namespace, ()))

    def set_pod_group(self, namespace: str, name: str, size: int | None) -> None:
        """Take the size that a PodGroup states; None if there is no such PodGroup any more."""
        self.queue.declare(GangKey(namespace, name, is_pod_group=True), size)

    def reserve_for(self, tenant: str, pool: str, reserve: Reserve) -> None:
        """Keep what is taken back in a pool for the tenant that it is taken back for.

        Until its time, or until so much was released for it. A later call replaces this one.
        """
        self._reserves.put(tenant, pool, reserve)

    def renew_reserve(self, tenant: str, pool: str, until: int) -> None:
        """Keep for so long what `reserve_for` keeps, if it is kept still."""
        self._reserves.renew(tenant, pool, until)

    def hold_back(self, source: Source, until: int) -> None:
        """Let no pod of a source borrow until then (Unix seconds), since such was taken back.

        0 lets them again.
        """
        if self._hold_backs.put(source, until):
            pods = tuple(self.pods_of(source[0]))
            self._queue_again(pod.uid for pod in pods if pod.source == source)

    def inherit_history(self, tenant: str, pool: str, plain: object) -> None:
        """Go on with the idle history that a past leader wrote down."""
        self.histories.inherit(tenant, pool, plain)

    def tick(self, now: int) -> None:
        """Take the time: lost nodes, idle quota, reserves and who may borrow depend on it."""
        policies, ledger = self._policies, self._ledger
        if policies is None or ledger is None:
            return
        ledger.expire(now, self._fleet.is_lost)
        for source in self._hold_backs.over(now):
            self.hold_back(source, 0)
        self.note_changes()
        self.histories.observe(now, policies.tenants.values(), self._wanted)
        self._reserves.expire(now)

    # What is known.

    @property
    def is_ready(self) -> bool:
        """Tell whether there are policies to decide by."""
        return self._policies is not None

    @property
    def policies(self) -> PolicySet:
        """Return the policies. Raises LookupError before there are any."""
        if self._policies is None:
            raise LookupError("no policies have been set")
        return self._policies

    @property
    def ledger(self) -> Ledger:
        """Return who uses how much. Raises LookupError before there are policies."""
        if self._ledger is None:
            raise LookupError("no policies have been set")
        return self._ledger

    @property
    def options(self) -> Options:
        """Return the pools that pods may go into, by today's policies and nodes."""
        if self._options is None:
            if self._tariff is None:
                raise LookupError("no policies have been set")
            labels = [node.labels for node in self.nodes.values()]
            self._options = Options(self.policies, self._tariff, labels)
        return self._options

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Return the nodes by name."""
        return self._fleet.nodes

    @property
    def reserves(self) -> Mapping[tuple[str, str], Reserve]:
        """Return what is kept for tenants, by tenant and pool."""
        return self._reserves.all

    def pods(self) -> Iterator[QuotaPod]:
        """Yield every pod."""
        yield from self._pods.values()

    def pod(self, uid: str) -> QuotaPod | None:
        """Return a pod as it was put last."""
        return self._pods.get(uid)

    @property
    def inhabited(self) -> Collection[str]:
        """Return the namespaces that have pods which take GPUs or wait."""
        return self._by_namespace.keys()

    def pods_of(self, namespace: str) -> Iterator[QuotaPod]:
        """Yield the pods of a namespace that take GPUs or wait."""
        for uid in self._by_namespace.get(namespace, ()):
            yield self._pods[uid]

    def owners(self, namespace: str) -> tuple[Tenant, ...]:
        """Return the tenants that claim a namespace; only a single one owns it."""
        facts = self._namespaces.get(namespace)
        return self.policies.owners(namespace, facts.labels if facts is not None else {})

    def capacities(self) -> Mapping[str, int]:
        """Return the milli-GPU of the nodes of each pool that has any."""
        return self._fleet.capacities

    def demand(self, tenant: Tenant) -> Mapping[str, int]:
        """Return what a tenant uses and waits for by pool, in milli-GPU."""
        return self._demand.of(tenant, self.queue, self.options, self.ledger)

    def history(self, tenant: Tenant, pool: str) -> IdleHistory:
        """Return what a tenant used and asked for in a pool."""
        return self.histories.of(tenant, pool)

    def take_changed(self) -> frozenset[str]:
        """Return the tenants whose usage or line has changed since this was last asked."""
        self.note_changes()
        changed, self._changed = frozenset(self._changed), set()
        return changed

    def note_changes(self) -> None:
        """Forget what was remembered of tenants whose usage or line has changed."""
        changed = self.ledger.take_changed()
        self._changed |= changed
        self._demand.forget(changed)
        self.known.forget(changed)

    # How.

    def _owner(self, namespace: str) -> str | None:
        found = self.owners(namespace)
        return found[0].name if len(found) == 1 else None

    def _wanted(self, tenant: Tenant, pool: str) -> int:
        used = self.ledger.used(tenant.name, pool).milli
        return max(used, self.demand(tenant).get(pool, 0))

    def _prices_changed(self, node: str) -> None:
        self._options = None
        self.ledger.reprice(node)

    def _resettle(self, namespace: str) -> None:
        if self._ledger is not None:
            self._ledger.resettle(namespace)
            self._queue_again(self._by_namespace.get(namespace, ()))

    def _queue_again(self, uids: Iterable[str]) -> None:
        for uid in tuple(uids):
            self._put_in_queue(self._pods[uid])

    def _put_in_queue(self, pod: QuotaPod) -> None:
        has_place = pod.is_waiting or pod.gang is not None
        if self._ledger is None or not has_place or pod.uid in self._aside:
            self.queue.remove(pod.uid)
            return
        owner = self._ledger.owner(pod.namespace) or NO_TENANT
        intent = self._intents.get(pod.uid)
        if intent is not None and pod.phase is Phase.WAITING:
            pod = replace(pod, phase=Phase.LIVE, charge=intent)
        back, until = self._is_reclaimable(pod, owner), self._hold_backs.until(pod)
        self.queue.put(pod, owner, reclaimable=back, held_until=until)

    def _is_reclaimable(self, pod: QuotaPod, owner: str) -> bool:
        tenant = self.policies.tenants.get(owner)
        policy = self.policies.reclaim_policy_of(tenant.cohort if tenant is not None else None)
        return reclaimable(pod, policy, self._pdbs.get(pod.namespace, ()))

    def _put_on_nodes(self, pod: QuotaPod) -> None:
        intent = self._intents.get(pod.uid)
        if pod.phase is Phase.LIVE and pod.node:
            self.fit.bind(pod.uid, pod.node, self._requests_of(pod))
        elif pod.phase is Phase.LIVE:
            self.fit.place(pod.uid, pod.shape.fit)
        elif pod.phase is Phase.WAITING and intent is not None:
            self.fit.place(pod.uid, self._pinned(pod, intent), self._places.get(pod.uid, ""))
        else:
            self.fit.release(pod.uid)

    def _pinned(self, pod: QuotaPod, charge: ChargeRecord) -> FitShape:
        if self._policies is not None:
            for option in self.options.of(pod.shape):
                if option.pool == charge.pool:
                    return option.fit
        return pod.shape.fit

    def _requests_of(self, pod: QuotaPod) -> Mapping[str, int]:
        found = self._requests.get(pod.shape)
        if found is None:
            found = self._requests[pod.shape] = dict(pod.shape.fit.requests)
        return found


def _protection(pdbs: Iterable[PodDisruptionBudget]) -> tuple[object, ...]:
    """Return all that disruption budgets say of whether a pod could ever be taken back."""
    return tuple((pdb.selector, pdb.can_never_allow) for pdb in pdbs)
