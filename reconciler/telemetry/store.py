# SPDX-License-Identifier: Apache-2.0
"""What is known of cards, for all who ask within a process; answers are from memory only."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from policies.telemetry.freshness import Freshness
from policies.telemetry.quantities import Quantity
from policies.telemetry.samples import Sample
from policies.telemetry.smoothing import Smoothing
from policies.telemetry.state import Outcome, TelemetryState
from policies.telemetry.views import NodeTelemetry

Subscriber = Callable[[frozenset[str]], None]
"""Gets the names of nodes of which something new is known, or nothing any more."""

_PRUNE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Kept:
    board_mib: int | None
    at: float
    view: NodeTelemetry

    def holds(self, board_mib: int | None, now: float) -> bool:
        """Tell whether it is still true; not before its own time, when a clock was set back."""
        return self.board_mib == board_mib and self.at <= now <= self.view.fresh_until


class TelemetryStore:
    """The newest telemetry by node. Views are kept until they change or a value goes stale.

    `board_mib_of` tells the memory of a node's cards, for exporters that tell no total.
    """

    def __init__(
        self,
        freshness_of: Callable[[str], Freshness],
        smoothing: Mapping[Quantity, Smoothing] | None = None,
        whole_nodes: Freshness | None = None,
        clock: Callable[[], float] = time.time,
        board_mib_of: Callable[[str], int | None] = lambda _node: None,
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        """What became of all samples so far, for metrics."""
        self._state = TelemetryState(freshness_of, smoothing, whole_nodes)
        self._clock = clock
        self._board_mib_of = board_mib_of
        self._views: dict[str, _Kept] = {}
        self._changed: set[str] = set()
        self._subscribers: tuple[Subscriber, ...] = ()
        self._pruned = 0.0

    def put(self, samples: Iterable[Sample]) -> None:
        """Take up samples. Who asks sees them at once; subscribers are told by `publish`."""
        now, put = self._clock(), self._state.put
        counts = dict.fromkeys(Outcome, 0)
        for sample in samples:
            outcome = put(sample, now)
            counts[outcome] += 1
            if outcome is Outcome.TAKEN:
                node = sample.subject.node
                self._changed.add(node)
                self._views.pop(node, None)
        self.outcomes.update(counts)
        if abs(now - self._pruned) >= _PRUNE_SECONDS:
            self._pruned = now
            self._state.prune(now)

    def publish(self) -> frozenset[str]:
        """Tell subscribers what has changed since the last time; return it."""
        changed, self._changed = frozenset(self._changed), set()
        return self._tell(changed)

    def expire(self) -> frozenset[str]:
        """Tell subscribers of nodes whose views hold no longer, since values have gone stale."""
        now = self._clock()
        stale = (name for name, kept in self._views.items() if kept.view.fresh_until < now)
        return self._tell(frozenset(stale))

    def forget(self, node: str) -> None:
        """Drop a node that is gone."""
        self._state.forget(node)
        self._tell(frozenset({node}))

    def node(self, name: str) -> NodeTelemetry:
        """Return what is known of a node now."""
        now, board_mib = self._clock(), self._board_mib_of(name)
        kept = self._views.get(name)
        if kept is not None and kept.holds(board_mib, now):
            return kept.view
        view = self._state.node(name, now, board_mib)
        self._views[name] = _Kept(board_mib, now, view)
        return view

    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes that samples have told of."""
        return self._state.nodes()

    def freshness(self) -> tuple[int, int]:
        """Return of how many nodes something is known now, and of how many no more."""
        now, names = self._clock(), self._state.nodes()
        fresh = sum(self._state.is_fresh(name, now) for name in names)
        return fresh, len(names) - fresh

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have `subscriber` called after every change. It must not block and not raise."""
        self._subscribers = (*self._subscribers, subscriber)

    def _tell(self, changed: frozenset[str]) -> frozenset[str]:
        for name in changed:
            self._views.pop(name, None)
        if changed:
            for subscriber in self._subscribers:
                subscriber(changed)
        return changed
