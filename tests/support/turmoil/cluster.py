# SPDX-License-Identifier: Apache-2.0
"""What the API server, the scheduler, kubelets and people do, a few lines each, in simulated time.

Whoever leads is told of each change at once. What may be released or taken back is not known here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Protocol

from policies.cluster.nodes import Node, Taint
from policies.model.keys import HOSTNAME_LABEL
from policies.model.labels import LabelSelector
from policies.model.tenant import Tenant
from policies.quota.charge import read_charge
from policies.quota.notice import read_notice, write_notice
from policies.quota.pdb import PodDisruptionBudget
from policies.quota.planning.values import Release
from policies.quota.pods import Notice, Phase, QuotaPod

START: Final = 1_900_000_000
"""Unix seconds."""
UNREACHABLE: Final = Taint("node.kubernetes.io/unreachable", "", "NoExecute")


class Answer(Enum):
    """What comes of a write."""

    DONE = "done"
    STALE = "the pod is another, or gone"
    REFUSED = "a disruption budget keeps the pod"


class Watcher(Protocol):
    """Whoever leads."""

    def pod_changed(self, pod: QuotaPod) -> None: ...

    def pod_gone(self, uid: str) -> None: ...

    def node_changed(self, name: str) -> None: ...

    def budgets_changed(self, namespace: str) -> None: ...

    def tenants_changed(self) -> None: ...

    def settled(self, uid: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """A release that may still land, and for which version of its pod it was made."""

    release: Release
    version: str


class Cluster:
    """Everything that outlives a leader. Times are Unix seconds."""

    def __init__(self, tenants: Mapping[str, Tenant], nodes: Mapping[str, Node]) -> None:
        self.now = START
        self.tenants = dict(tenants)
        self._owners: dict[str, str | None] = {}
        self.nodes = dict(nodes)
        self.pods: dict[str, QuotaPod] = {}
        self.budgets: dict[str, PodDisruptionBudget] = {}
        """By namespace; each covers all of its pods."""
        self.sent: dict[str, Sent] = {}
        """What the Lease names, by uid."""
        self.watcher: Watcher | None = None
        self.made_again = 0
        self._pins: dict[str, Release] = {}
        self._dismissed: set[str] = set()
        self._versions = 0

    # What is so.

    def owner(self, namespace: str) -> str | None:
        """Return the only tenant that claims a namespace."""
        if namespace not in self._owners:
            found = [t.name for t in self.tenants.values() if namespace in t.namespaces]
            self._owners[namespace] = found[0] if len(found) == 1 else None
        return self._owners[namespace]

    def is_lost(self, node: str) -> bool:
        found = self.nodes.get(node)
        return found is None or UNREACHABLE in found.taints

    def free(self, node: str) -> Counter[str]:
        """Return what is left of a node beside everything that is bound to it."""
        free = Counter(self.nodes[node].allocatable)
        for pod in self.pods.values():
            if pod.node == node and pod.phase is Phase.LIVE:
                free.subtract(dict(pod.shape.fit.requests))
        return free

    def takes(self, pod: QuotaPod, node: str) -> bool:
        """Tell whether a scheduler may put a pod on a node as far as its labels and taints go."""
        found = self.nodes[node]
        if not found.ready or found.taints:
            return False
        return self.suits(pod, node)

    def suits(self, pod: QuotaPod, node: str) -> bool:
        """Tell whether a node is of the kind that a pod asks for."""
        labels = self.nodes[node].labels
        asked = pod.shape.fit.constraints
        terms = asked.terms
        return all(labels.get(key) == value for key, value in asked.node_selector) and (
            terms is None or any(all(e.matches(labels) for e in term.expressions) for term in terms)
        )

    def _may_run(self, pod: QuotaPod, node: str) -> bool:
        pins = self._pins[pod.uid].pins
        labels = {HOSTNAME_LABEL: node, **self.nodes[node].labels}
        free = self.free(node)
        return (
            self.takes(pod, node)
            and pins.node_selector.items() <= labels.items()
            and all(expression.matches(labels) for expression in pins.expressions)
            and all(free[name] >= count for name, count in pod.shape.fit.requests)
        )

    # What people, controllers, the scheduler and kubelets do.

    def create(self, pod: QuotaPod) -> QuotaPod:
        return self._store(pod)

    def finish(self, uid: str) -> None:
        self._store(replace(self.pods[uid], phase=Phase.ENDED))

    def dismiss(self, uid: str) -> None:
        """Have the controller of a pod want it no more, and delete it."""
        self._dismissed.add(uid)
        self.delete(uid)

    def delete(self, uid: str) -> None:
        """Delete a pod; on a node it stays for its grace."""
        pod = self.pods[uid]
        if not pod.node or pod.phase is not Phase.LIVE:
            self.remove(uid)
        elif pod.deleted_at is None:
            self._store(replace(pod, deleted_at=self.now + pod.shape.grace_seconds))

    def remove(self, uid: str) -> None:
        """Have a pod be gone. If it has a controller, that makes such a one again."""
        pod = self.pods.pop(uid)
        self._pins.pop(uid, None)
        if self.watcher is not None:
            self.watcher.pod_gone(uid)
        self._settle(uid)
        self._count_budget(pod.namespace)
        if pod.owner_uid and pod.phase is not Phase.ENDED and uid not in self._dismissed:
            self._make_again(pod)

    def _make_again(self, pod: QuotaPod) -> None:
        self.made_again += 1
        fresh: dict[str, Any] = {"node": "", "deleted_at": None, "charge": None, "notice": None}
        name = f"again-{self.made_again:04}"
        self._store(
            replace(pod, name=name, uid=name, created_at=self.now, phase=Phase.WAITING, **fresh)
        )

    def change(self, uid: str) -> None:
        """Change a pod in a way that means nothing, which voids what was made for it before."""
        self._store(self.pods[uid])

    def schedule(self, prefer: int = 0) -> None:
        """Bind every released pod that some node takes; `prefer` chooses among the nodes."""
        for pod in [p for p in self.pods.values() if p.phase is Phase.LIVE and not p.node]:
            nodes = [node for node in sorted(self.nodes) if self._may_run(pod, node)]
            if nodes:
                self._store(replace(pod, node=nodes[prefer % len(nodes)]))

    def pass_time(self, seconds: int) -> None:
        """Let time pass; what has had its grace goes, but from lost nodes."""
        self.now += seconds
        for pod in self.ending():
            if pod.deleted_at is not None and pod.deleted_at <= self.now:
                self.remove(pod.uid)

    def ending(self) -> list[QuotaPod]:
        """Return the pods that are being deleted where somebody sees to it."""
        return [
            pod
            for pod in self.pods.values()
            if pod.deleted_at is not None and not self.is_lost(pod.node)
        ]

    def put_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        if self.watcher is not None:
            self.watcher.node_changed(node.name)

    def remove_node(self, name: str) -> None:
        """Take a node away; its pods are deleted at once, as by the garbage collector of pods."""
        del self.nodes[name]
        if self.watcher is not None:
            self.watcher.node_changed(name)
        for pod in [p for p in self.pods.values() if p.node == name]:
            self.remove(pod.uid)

    def set_budget(self, namespace: str, most_unavailable: int | None) -> None:
        """Let so many pods of a namespace be unavailable at once; None for no budget."""
        if most_unavailable is None:
            self.budgets.pop(namespace, None)
        else:
            self.budgets[namespace] = PodDisruptionBudget(
                namespace, "all", LabelSelector(()), max_unavailable=most_unavailable
            )
        self._count_budget(namespace)

    def set_tenants(self, tenants: Mapping[str, Tenant]) -> None:
        self.tenants = dict(tenants)
        self._owners.clear()
        if self.watcher is not None:
            self.watcher.tenants_changed()

    # What leaders ask of the API server.

    def land(self, uid: str) -> None:
        """Have a release reach the API server, which takes it if the pod is still as it was."""
        sent = self.sent[uid]
        pod = self.pods.get(uid)
        if pod is not None and pod.version == sent.version:
            charge = read_charge(sent.release.charge.to_annotation())
            self._pins[uid] = sent.release
            self._store(replace(pod, phase=Phase.LIVE, charge=charge))
        self._settle(uid)

    def annotate(self, uid: str, version: str, notice: Notice | None) -> Answer:
        pod = self.pods.get(uid)
        if pod is None or pod.version != version:
            return Answer.STALE
        text = None if notice is None else write_notice(notice)
        self._store(replace(pod, notice=read_notice(text)))
        return Answer.DONE

    def evict(self, uid: str, version: str) -> Answer:
        """Answer as the Eviction API does (registry/core/pod/storage/eviction.go)."""
        pod = self.pods.get(uid)
        if pod is None or pod.version != version:
            return Answer.STALE
        budget = self.budgets.get(pod.namespace)
        is_kept = budget is not None and budget.disruptions_allowed < 1
        if is_kept and pod.node and pod.deleted_at is None:
            return Answer.REFUSED
        self.delete(uid)
        return Answer.DONE

    def release_refused(self, uid: str) -> None:
        """Have a release not be taken, and the leader know."""
        self._settle(uid)

    def _settle(self, uid: str) -> None:
        if self.sent.pop(uid, None) is not None and self.watcher is not None:
            self.watcher.settled(uid)

    def _store(self, pod: QuotaPod) -> QuotaPod:
        self._versions += 1
        pod = self.pods[pod.uid] = replace(pod, version=str(self._versions))
        if self.watcher is not None:
            self.watcher.pod_changed(pod)
        self._count_budget(pod.namespace)
        return pod

    def _count_budget(self, namespace: str) -> None:
        """Have the disruption controller count."""
        budget = self.budgets.get(namespace)
        if budget is not None:
            there = [p for p in self._bound(namespace) if p.phase is Phase.LIVE]
            down = sum(p.deleted_at is not None for p in there)
            most = budget.max_unavailable
            allowed = max(0, most - down) if isinstance(most, int) else 0
            self.budgets[namespace] = replace(
                budget, disruptions_allowed=allowed, expected=len(there)
            )
        if self.watcher is not None:
            self.watcher.budgets_changed(namespace)

    def _bound(self, namespace: str) -> Iterator[QuotaPod]:
        return (p for p in self.pods.values() if p.namespace == namespace and p.node)
