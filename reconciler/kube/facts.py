# SPDX-License-Identifier: Apache-2.0
"""Facts of the cluster for decisions, from two watches: namespaces and nodes.

A review reads the picture that is there and never waits for the API. A new picture is made only
when something that decisions use has changed; a node's heartbeats are not. Decisions are not
taken here.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from policies.model.facts import ClusterFacts, Facts, NamespaceFacts, NodeFacts
from policies.model.quantity import QuantityError, parse_quantity
from reconciler.kube import raw
from reconciler.kube.reflector import Counters, Reflector, Source
from reconciler.kube.resources import NAMESPACES, NODES, Selection
from reconciler.kube.store import Change, View

STALE_AFTER_SECONDS: Final = 30.0
"""More than the silence that a reflector bears, so that quiet watches do not count as stale."""

IsGpu = Callable[[str], bool]
"""Tells whether an allocatable name is a GPU resource of some vendor."""


@dataclass(frozen=True, slots=True)
class FactsSettings:
    """When facts count as stale, and the monotonic clock that tells."""

    stale_after_seconds: float = STALE_AFTER_SECONDS
    clock: Callable[[], float] = time.monotonic


_SETTINGS: Final = FactsSettings()


class ClusterWatch:
    """The newest ClusterFacts, while `run` runs."""

    def __init__(
        self,
        namespaces: Reflector[NamespaceFacts],
        nodes: Reflector[NodeFacts],
        settings: FactsSettings = _SETTINGS,
    ) -> None:
        self._namespaces = namespaces
        self._nodes = nodes
        self._settings = settings
        self._cluster: ClusterFacts | None = None
        namespaces.subscribe(self._forget)
        nodes.subscribe(self._forget)

    async def run(self) -> None:
        """Keep both watches going until cancelled; raises what either of them raises."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._namespaces.run(), name="watch namespaces")
            tasks.create_task(self._nodes.run(), name="watch nodes")

    @property
    def is_synced(self) -> bool:
        """Whether both have been listed: until then nothing is known."""
        return self._namespaces.synced.is_set() and self._nodes.synced.is_set()

    @property
    def counters(self) -> Mapping[str, Counters]:
        """What happened to each watch, by the plural of its resource."""
        return {"namespaces": self._namespaces.counters, "nodes": self._nodes.counters}

    async def wait_synced(self) -> None:
        """Return once both have been listed."""
        await self._namespaces.synced.wait()
        await self._nodes.synced.wait()

    def seconds_since_contact(self) -> float:
        """Return how old the older of the two pictures may be."""
        now = self._settings.clock()
        return max(
            self._namespaces.seconds_since_contact(now), self._nodes.seconds_since_contact(now)
        )

    def cluster(self) -> ClusterFacts:
        """Return the picture; the same object as long as nothing relevant has changed."""
        if self._cluster is not None:
            return self._cluster
        picture = self._picture()
        if self.is_synced:
            # Not kept before: that a list turned out to be empty is no change that we would see.
            self._cluster = picture
        return picture

    def facts(self, now: datetime) -> Facts:
        """Return the picture with the time, and its age once it is out of touch for too long."""
        age = self.seconds_since_contact()
        is_live = self.is_synced and age <= self._settings.stale_after_seconds
        return Facts(self.cluster(), now, None if is_live else int(age))

    def _picture(self) -> ClusterFacts:
        namespaces = {facts.name: facts for facts in self._namespaces.values()}
        nodes = sorted(self._nodes.values(), key=lambda node: node.name)
        return ClusterFacts(namespaces, tuple(nodes) if self._nodes.synced.is_set() else None)

    def _forget(self, _change: Change[NamespaceFacts] | Change[NodeFacts]) -> None:
        # Built again only when asked for: a list brings thousands of changes at once.
        self._cluster = None


def watch_cluster(
    source: Source, is_gpu: IsGpu, settings: FactsSettings = _SETTINGS
) -> ClusterWatch:
    """Return a ClusterWatch over all namespaces and nodes that `source` serves."""
    return ClusterWatch(
        Reflector(source, Selection(NAMESPACES), namespace_facts),
        Reflector(source, Selection(NODES), node_view(is_gpu)),
        settings,
    )


def namespace_facts(item: Mapping[str, object]) -> NamespaceFacts:
    """Return the view of a raw Namespace."""
    metadata = raw.mapping(item, "metadata")
    return NamespaceFacts(
        raw.text(metadata, "name"),
        raw.strings(metadata, "labels"),
        raw.strings(metadata, "annotations"),
    )


def node_view(is_gpu: IsGpu) -> View[NodeFacts]:
    """Return the view of raw Nodes that keeps labels and the GPU resources among allocatable."""

    def view(item: Mapping[str, object]) -> NodeFacts:
        metadata = raw.mapping(item, "metadata")
        allocatable = raw.mapping(item, "status", "allocatable")
        return NodeFacts(
            raw.text(metadata, "name"),
            raw.strings(metadata, "labels"),
            {name: _whole(value) for name, value in allocatable.items() if is_gpu(name)},
        )

    return view


def _whole(value: object) -> int:
    """Return a count of devices; what cannot be one is none, as the scheduler would have it."""
    try:
        return max(0, int(parse_quantity(value)))
    except QuantityError:
        return 0
