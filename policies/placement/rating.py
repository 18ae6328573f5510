# SPDX-License-Identifier: Apache-2.0
"""Ranks nodes by what is typical of the pods that come, and learns that from those that came.

Learning is done beside the scorer that answers, a step at a time, so that no answer waits for it.
Which nodes hold a pod must not be decided here.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from policies.placement.asks import Ask
from policies.placement.fgd import Fragmentation
from policies.placement.occupancy import Occupancy
from policies.placement.popularity import Popularity
from policies.placement.scorer import Scorer
from policies.placement.scoring import Ranking, Signals, Strategy

_FORESEEN_ASKS: Final = 64
_STEP_NODES: Final = 32


class Rating:
    """A scorer of nodes that others change: whoever changes one in `nodes` has to `touch` it."""

    def __init__(self, nodes: Mapping[str, Occupancy]) -> None:
        self._nodes = nodes
        self._popularity = Popularity()
        self._learnt_at = 0
        self._scorer = Scorer(Fragmentation(()))
        self._changed: set[str] = set()
        self._missed: set[str] = set()
        """What has changed since learning began last."""

    def touch(self, name: str) -> None:
        """Note that a node has changed, or came."""
        self._changed.add(name)
        self._missed.add(name)

    def remove(self, name: str) -> None:
        """Forget a node."""
        self._changed.discard(name)
        self._missed.add(name)
        self._scorer.remove(name)

    def see(self, ask: Ask, here: Occupancy) -> None:
        """Take a pod that was bound to a node for one of those that come."""
        self._popularity.see(ask, here.cards_milli(ask))

    def rank(self, ask: Ask, names: Sequence[str], signals: Signals, strategy: Strategy) -> Ranking:
        """Order nodes that could hold a pod, the best first."""
        self._catch_up()
        return self._scorer.rank(ask, names, signals, strategy)

    @property
    def scorer(self) -> Scorer:
        """Return the scorer, true to the nodes as they are now."""
        self._catch_up()
        return self._scorer

    @property
    def is_learning_due(self) -> bool:
        """Whether so many pods have been bound since that others may be typical by now."""
        return self._popularity.is_due(self._learnt_at)

    def learn(self) -> Iterator[None]:
        """Measure nodes by what is typical now, one at each step; it counts from the end on."""
        self._learnt_at = self._popularity.seen
        self._missed.clear()
        scorer = Scorer(Fragmentation(self._popularity.typical()))
        for name in tuple(self._nodes):
            self._put(name, scorer)
            yield
        # What will be asked next is known from what was asked last.
        for ask in self._scorer.latest(_FORESEEN_ASKS):
            names = iter(tuple(self._nodes))
            while step := tuple(islice(names, _STEP_NODES)):
                scorer.outlooks(ask, step)
                yield
        for name in self._missed - self._nodes.keys():
            scorer.remove(name)
        self._scorer = scorer
        self._changed = set(self._missed)

    def _catch_up(self) -> None:
        for name in self._changed:
            self._put(name, self._scorer)
        self._changed.clear()

    def _put(self, name: str, scorer: Scorer) -> None:
        here = self._nodes.get(name)
        if here is not None:
            scorer.put(here.node, here.free, here.cards.devices)
