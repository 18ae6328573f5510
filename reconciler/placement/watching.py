# SPDX-License-Identifier: Apache-2.0
"""Feeds the model from watches of nodes and pods, and says whether it is true to the cluster."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from policies.cluster.nodes import Node, read_node
from policies.placement.model import Model, Release
from policies.placement.pods import PlacedPod, PodReader
from reconciler.kube.facts import STALE_AFTER_SECONDS
from reconciler.kube.reflector import Reflector, Runtime, Source
from reconciler.kube.resources import NODES, PODS, Selection
from reconciler.kube.store import Change

_RUNTIME: Final = Runtime()
_NODES: Final = Selection(NODES)
_LEARN_SECONDS: Final = 5.0
_LEARN_STEP: Final = 4
"""Nodes that are measured anew between two questions: a millisecond or two."""


class ModelWatch:
    """Keeps a model current while `run` runs."""

    def __init__(
        self,
        source: Source,
        model: Model,
        reader: PodReader,
        runtime: Runtime = _RUNTIME,
        nodes: Selection = _NODES,
    ) -> None:
        self._model = model
        self._runtime = runtime
        self._nodes: Reflector[Node] = Reflector(source, nodes, read_node, runtime=runtime)
        self._pods: Reflector[PlacedPod] = Reflector(
            source, Selection(PODS), _reading(reader), runtime=runtime
        )
        self._events = 0
        self._node_watchers: tuple[Callable[[Node | None, str], None], ...] = ()
        self._left_watchers: tuple[Callable[[str], None], ...] = ()
        self._release_watchers: tuple[Callable[[Release], None], ...] = ()
        self._nodes.subscribe(self._node_changed)
        self._pods.subscribe(self._pod_changed)

    async def run(self) -> None:
        """Follow the cluster until cancelled; raises only what is a fault of our own."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._nodes.run(), name="nodes of placement")
            await self._nodes.synced.wait()
            tasks.create_task(self._pods.run(), name="pods of placement")
            await self._pods.synced.wait()
            await self._learn()

    async def wait_synced(self) -> None:
        """Return once nodes and pods have been listed."""
        await self._nodes.synced.wait()
        await self._pods.synced.wait()

    @property
    def is_synced(self) -> bool:
        """Whether nodes and pods have been listed."""
        return self._nodes.synced.is_set() and self._pods.synced.is_set()

    def age_seconds(self) -> float:
        """Return how long the older of the two watches has been out of touch."""
        now = self._runtime.clock()
        return max(w.seconds_since_contact(now) for w in (self._nodes, self._pods))

    def is_live(self) -> bool:
        """Tell whether the model may be answered by."""
        return self.is_synced and self.age_seconds() <= STALE_AFTER_SECONDS

    def on_node(self, watcher: Callable[[Node | None, str], None]) -> None:
        """Have a watcher told of each node that changes, None and its name when it is gone."""
        self._node_watchers = (*self._node_watchers, watcher)

    def on_left(self, watcher: Callable[[str], None]) -> None:
        """Have a watcher told the node that a pod is seen gone from, by its end or deletion."""
        self._left_watchers = (*self._left_watchers, watcher)

    def on_released(self, watcher: Callable[[Release], None]) -> None:
        """Have a watcher told the node that a pod did not come to: it is elsewhere, or gone."""
        self._release_watchers = (*self._release_watchers, watcher)

    def _node_changed(self, change: Change[Node]) -> None:
        if change.new is None:
            self._model.remove_node(change.key.name)
        else:
            self._model.put_node(change.new)
        for watcher in self._node_watchers:
            watcher(change.new, change.key.name)

    def _pod_changed(self, change: Change[PlacedPod]) -> None:
        old, new = change.old, change.new
        was_on = None if old is None else self._model.node_of(old.uid)
        assumed = None if old is None else self._model.assumption(old.uid)
        if old is not None and (new is None or new.uid != old.uid):
            self._model.remove_pod(old.uid)
        if new is not None:
            # A list tells all that is there at once, in no order.
            events = self._pods.counters.events
            self._model.put_pod(new, is_in_order=events != self._events)
            self._events = events
        if old is not None and was_on is not None and self._model.node_of(old.uid) != was_on:
            self._tell_gone(was_on, assumed)

    def _tell_gone(self, node: str, assumed: Release | None) -> None:
        if assumed is None:
            for watcher in self._left_watchers:
                watcher(node)
        else:
            for told in self._release_watchers:
                told(assumed)

    async def _learn(self) -> None:
        """Take up which pods are typical, when that may have changed, a few nodes at a time."""
        while True:
            if self._model.is_learning_due:
                for number, _ in enumerate(self._model.learn()):
                    if number % _LEARN_STEP == 0:
                        await asyncio.sleep(0)
            await self._runtime.sleep(_LEARN_SECONDS)


def _reading(reader: PodReader) -> Callable[[Mapping[str, object]], PlacedPod | None]:
    def view(raw: Mapping[str, object]) -> PlacedPod | None:
        pod = reader.read(raw)
        return pod if pod.uid else None

    return view
