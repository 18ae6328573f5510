# SPDX-License-Identifier: Apache-2.0
"""The leader's picture of the cluster: pods, nodes, namespaces and policies, kept current.

One picture for all controllers, begun after the Lease was taken, so that it holds everything that
a past leader has done. What is decided from it is the controllers' matter.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from policies.cluster.nodes import Node, read_node
from policies.model.facts import NamespaceFacts
from policies.model.policyset import PolicySet
from policies.quota.pods import QuotaPod
from policies.quota.state import QuotaState
from policies.vendors import Catalog
from reconciler.kube.facts import STALE_AFTER_SECONDS, namespace_facts
from reconciler.kube.reflector import Reflector, Runtime, Source
from reconciler.kube.resources import NAMESPACES, NODES, PODS, Selection
from reconciler.kube.store import Change, Key
from reconciler.quota.view import PodViews

_RUNTIME: Final = Runtime()


class HistoryError(RuntimeError):
    """The API server has gone back in time, as one does that is restored from a backup.

    What was written, absorbed and declared since is compared by versions that now mean others.
    """


@dataclass(frozen=True, slots=True)
class Move:
    """A namespace with GPU pods whose owner has changed; empty for none.

    `claimants` are the tenants that claim it, where that is why it has none.
    """

    namespace: str
    old: str
    new: str
    claimants: tuple[str, ...] = ()


class LiveCluster:
    """Feeds a QuotaState from watches, and wakes who asked for it when something has changed.

    What the API server answers to a write is taken up at once (`absorb`), ahead of the watch.
    """

    def __init__(
        self,
        source: Source,
        policies: Callable[[], PolicySet | None],
        catalog: Catalog,
        runtime: Runtime = _RUNTIME,
    ) -> None:
        self.state = QuotaState(catalog)
        self._policies = policies
        self._policy_set: PolicySet | None = None
        self._runtime = runtime
        self._views = PodViews(catalog)
        self._pods = Reflector(source, Selection(PODS), self._views.view, runtime=runtime)
        self._nodes = Reflector(source, Selection(NODES), read_node, runtime=runtime)
        self._namespaces = Reflector(
            source, Selection(NAMESPACES), namespace_facts, runtime=runtime
        )
        self._ahead: dict[str, int] = {}
        """Versions by UID that a write's answer has shown and the watch has not yet."""
        self._pod_watchers: tuple[Callable[[QuotaPod | None, QuotaPod | None], None], ...] = ()
        self._wakers: tuple[Callable[[], None], ...] = ()
        self._move_watchers: tuple[Callable[[Move], None], ...] = ()
        self._others: tuple[Callable[[], float], ...] = ()
        """How long watches beside these have been out of touch, in seconds."""
        self._pods.on_rewind(_give_up)
        self._pods.subscribe(self._pod_changed)
        self._nodes.subscribe(self._node_changed)
        self._namespaces.subscribe(self._namespace_changed)

    async def run(self) -> None:
        """Follow the cluster until cancelled; raises HistoryError, and faults of our own."""
        async with asyncio.TaskGroup() as tasks:
            # Namespaces and nodes first: with them a pod's tenant is known when it comes.
            tasks.create_task(self._namespaces.run(), name="namespaces of the leader")
            tasks.create_task(self._nodes.run(), name="nodes of the leader")
            await self._namespaces.synced.wait()
            await self._nodes.synced.wait()
            # And policies: what counts of a pod is told as it comes, and not of all at once.
            await self._until_policies()
            tasks.create_task(self._pods.run(), name="pods of the leader")

    async def wait_synced(self) -> None:
        """Return once everything has been listed and there are policies."""
        for reflector in (self._namespaces, self._nodes, self._pods):
            await reflector.synced.wait()

    async def _until_policies(self) -> None:
        while not self.refresh_policies():
            await self._runtime.sleep(0.1)

    def refresh_policies(self) -> bool:
        """Take up the policy set that is served now; tell whether there is one."""
        current = self._policies()
        if current is not None and current is not self._policy_set:
            inhabited = self._owners(self.state.inhabited) if self._policy_set else {}
            self._policy_set = current
            self.state.set_policies(current)
            self._tell_moves(inhabited)
        return self._policy_set is not None

    @property
    def policies(self) -> PolicySet:
        """The policy set that the picture is of; there is one once it is synced."""
        if self._policy_set is None:
            raise LookupError("no policy set has been loaded yet")
        return self._policy_set

    @property
    def is_fresh(self) -> bool:
        """Tell whether every watch is in touch: nothing is decided on an old or torn picture."""
        now = self._runtime.clock()
        reflectors = (self._pods, self._nodes, self._namespaces)
        if not all(reflector.is_whole for reflector in reflectors):
            return False
        ages = [r.seconds_since_contact(now) for r in reflectors]
        return all(age <= STALE_AFTER_SECONDS for age in (*ages, *(age() for age in self._others)))

    def depends_on(self, seconds_since_contact: Callable[[], float]) -> None:
        """Count a watch that feeds the state from elsewhere among those that must be in touch."""
        self._others = (*self._others, seconds_since_contact)

    def pod(self, key: Key) -> QuotaPod | None:
        """Return a pod as its watch shows it."""
        return self._pods.get(key)

    def on_pod(self, watcher: Callable[[QuotaPod | None, QuotaPod | None], None]) -> None:
        """Have a watcher told of every pod before the state takes it up: the old, then the new."""
        self._pod_watchers = (*self._pod_watchers, watcher)

    def on_change(self, waker: Callable[[], None]) -> None:
        """Have a function called, without arguments, whenever anything has changed."""
        self._wakers = (*self._wakers, waker)

    def on_move(self, watcher: Callable[[Move], None]) -> None:
        """Have a watcher told of every namespace that has changed owners while it had GPU pods."""
        self._move_watchers = (*self._move_watchers, watcher)

    def absorb(self, raw: Mapping[str, object]) -> None:
        """Take up a pod that a write was answered with, unless it is known to be gone or newer."""
        pod = self._views.view(raw)
        if pod is None or not (pod.version.isascii() and pod.version.isdecimal()):
            return
        known = self._pods.get(Key(pod.namespace, pod.name))
        if known is None or known.uid != pod.uid or int(known.version) >= int(pod.version):
            return
        if int(pod.version) > self._ahead.get(pod.uid, 0):
            self._ahead[pod.uid] = int(pod.version)
            self._put(known, pod)

    def _pod_changed(self, change: Change[QuotaPod]) -> None:
        old, new = change.old, change.new
        if new is None:
            if old is not None:
                self._ahead.pop(old.uid, None)
                self._tell(old, None)
                self.state.remove_pod(old.uid)
                self._wake()
            return
        if int(new.version) < self._ahead.get(new.uid, 0):
            return  # a write's answer has shown a newer one already
        self._ahead.pop(new.uid, None)
        self._put(old, new)

    def _put(self, old: QuotaPod | None, new: QuotaPod) -> None:
        self._tell(old, new)
        self.state.put_pod(new)
        self._wake()

    def _tell(self, old: QuotaPod | None, new: QuotaPod | None) -> None:
        for watcher in self._pod_watchers:
            watcher(old, new)

    def _node_changed(self, change: Change[Node]) -> None:
        if change.new is None:
            self.state.remove_node(change.key.name)
        else:
            self.state.put_node(change.new)
        self._wake()

    def _namespace_changed(self, change: Change[NamespaceFacts]) -> None:
        name = change.key.name
        if change.new is None:
            self.state.remove_namespace(name)
        else:
            # One that was not known has not moved, though its pods may have been seen before it.
            is_inhabited = change.old is not None and name in self.state.inhabited
            before = self._owners((name,)) if self._policy_set and is_inhabited else {}
            self.state.put_namespace(change.new)
            self._tell_moves(before)
        self._wake()

    def _owners(self, namespaces: Iterable[str]) -> Mapping[str, str]:
        return {name: self.state.ledger.owner(name) or "" for name in namespaces}

    def _tell_moves(self, before: Mapping[str, str]) -> None:
        for name, old in before.items():
            new = self.state.ledger.owner(name) or ""
            if new != old:
                claimants = () if new else tuple(t.name for t in self.state.owners(name))
                for watcher in self._move_watchers:
                    watcher(Move(name, old, new, claimants))

    def _wake(self) -> None:
        for waker in self._wakers:
            waker()


def _give_up() -> None:
    raise HistoryError("the API server is at an earlier version than it was: all begins anew")
