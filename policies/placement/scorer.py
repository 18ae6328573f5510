# SPDX-License-Identifier: Apache-2.0
"""Scores nodes for pods by what is free on each, kept up to date node by node.

What it knows of typical pods is fixed: learning others means another scorer, which can be filled
beside the one that answers. Which nodes hold a pod must not be decided here.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from policies.cluster.nodes import Node
from policies.cluster.table import ChangeLog
from policies.placement.asks import Ask
from policies.placement.fgd import Fragmentation
from policies.placement.outlook import Outlook, Outlooks
from policies.placement.rooms import Devices, Room
from policies.placement.scoring import Choose, Ranking, Signals, Strategy, rank

_ASKS: Final = 256
_NO_SIGNALS: Final = Signals()


class Scorer:
    """Rooms of nodes by name, and what pods that were asked about would do to each.

    What it keeps of an ask is forgotten once `max_asks` others were asked about since.
    """

    def __init__(self, fragmentation: Fragmentation, max_asks: int = _ASKS) -> None:
        self._fragmentation = fragmentation
        self._max_asks = max_asks
        self._nodes: dict[str, tuple[Node, int]] = {}
        self._rooms: dict[str, Room] = {}
        self._log: ChangeLog[str] = ChangeLog()
        self._asks: OrderedDict[Ask, Outlooks] = OrderedDict()

    def put(self, node: Node, free: Mapping[str, int], devices: tuple[Devices, ...]) -> None:
        """Take a node as it is now: what is free of everything by name, and its devices."""
        name = node.name
        before, kinds = self._nodes.get(name, (None, 0))
        if before is not node:
            if before != node:
                kinds = self._fragmentation.kinds(node)
            self._nodes[name] = node, kinds
        room = self._fragmentation.room(kinds, free, devices)
        if self._rooms.get(name) != room:
            self._rooms[name] = room
            self._log.touch(name)

    def remove(self, name: str) -> None:
        """Forget a node."""
        if self._rooms.pop(name, None) is None:
            return
        del self._nodes[name]
        self._log.drop(name)
        for outlooks in self._asks.values():
            outlooks.drop((name,))

    def room(self, name: str) -> Room | None:
        """Return what is free on a node; None if it is not known."""
        return self._rooms.get(name)

    def fragmented_milli(self, name: str) -> float | None:
        """Return F of a node: the free milli-GPU that a typical pod could not use, on average."""
        room = self._rooms.get(name)
        if room is None or not self._fragmentation.weight:
            return None
        return self._fragmentation.milli(room) / self._fragmentation.weight

    def latest(self, most: int) -> tuple[Ask, ...]:
        """Return what was asked about last, the latest first."""
        return tuple(islice(reversed(self._asks), most))

    def outlooks(self, ask: Ask, names: Sequence[str]) -> Mapping[str, Outlook | None]:
        """Return what a pod would do to each node; None for one that is not known."""
        found = self._remembered(ask)
        found.drop(self._log.since(found.moment))
        found.moment = self._log.now
        return found.of(names, self._rooms)

    def rank(
        self,
        ask: Ask,
        names: Sequence[str],
        signals: Signals = _NO_SIGNALS,
        strategy: Strategy = Strategy.PACK,
        choose: Choose = min,
    ) -> Ranking:
        """Order nodes that could hold a pod, as `policies.placement.scoring.rank` does."""
        return rank(self.outlooks(ask, names), signals, strategy, choose)

    def _remembered(self, ask: Ask) -> Outlooks:
        found = self._asks.get(ask)
        if found is not None:
            self._asks.move_to_end(ask)
            return found
        found = self._asks[ask] = Outlooks(ask, self._fragmentation)
        if len(self._asks) > self._max_asks:
            self._asks.popitem(last=False)
        return found
