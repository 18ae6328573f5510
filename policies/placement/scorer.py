# SPDX-License-Identifier: Apache-2.0
"""Scores nodes for pods by what is free on each, kept up to date node by node.

What it knows of typical pods is fixed: learning others means another scorer, which can be filled
beside the one that answers. Which nodes hold a pod must not be decided here.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from policies.cluster.nodes import Node
from policies.placement.asks import Ask
from policies.placement.fgd import Fragmentation
from policies.placement.outlook import Outlook, Outlooks, Place
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
        self._places: dict[str, Place] = {}
        self._vacant: list[int] = []
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
        place = self._places.get(name)
        if place is None:
            slot = self._vacant.pop() if self._vacant else len(self._places)
            self._places[name] = Place(slot, room)
        elif place.room != room:
            place.room = room

    def remove(self, name: str) -> None:
        """Forget a node."""
        place = self._places.pop(name, None)
        if place is not None:
            del self._nodes[name]
            self._vacant.append(place.slot)

    def room(self, name: str) -> Room | None:
        """Return what is free on a node; None if it is not known."""
        place = self._places.get(name)
        return place.room if place is not None else None

    def fragmented_milli(self, name: str) -> float | None:
        """Return F of a node: the free milli-GPU that a typical pod could not use, on average."""
        place = self._places.get(name)
        if place is None or not self._fragmentation.weight:
            return None
        return self._fragmentation.milli(place.room) / self._fragmentation.weight

    def outlooks(self, ask: Ask, names: Sequence[str]) -> Mapping[str, Outlook | None]:
        """Return what a pod would do to each node; None for one that is not known."""
        get = self._places.get
        found = self._remembered(ask).of([get(name) for name in names])
        return dict(zip(names, found, strict=True))

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
