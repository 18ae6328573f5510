# SPDX-License-Identifier: Apache-2.0
"""The units of a plan by node and by whom they would be taken from, to be looked up for each need.

Built once for a plan, so that a need of few givers costs by what those have. Which of it is best
is not decided here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from policies.quota.reclaim.snapshot import EntitlementKey
from policies.quota.reclaim.units import Unit

Front: TypeAlias = tuple[tuple[int, ...], str]
"""Whether the best unit of a tenant on a node is without notice, its order; then the node."""


class Stock:
    """Units by entitlement and node."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._shelves: dict[EntitlementKey, dict[str, list[Unit]]] = {}
        self._fronts: dict[EntitlementKey, list[Front]] = {}
        self._freeable: dict[tuple[EntitlementKey, str], Mapping[str, int]] = {}
        for unit in units:
            self._add(unit)

    def front(self, key: EntitlementKey) -> list[Front]:
        """Return the nodes on which an entitlement has units, the one with its best first."""
        found = self._fronts.get(key)
        if found is None:
            shelves = self._shelves.get(key, {})
            found = self._fronts[key] = sorted((min(map(_rank, u)), n) for n, u in shelves.items())
        return found

    def units(self, node: str, givers: Iterable[EntitlementKey]) -> Iterator[Unit]:
        """Yield each unit on a node that takes anything from one of these."""
        seen: set[int] = set()
        for key in givers:
            for unit in self._shelf(key, node):
                if len(unit.pieces) == 1:
                    yield unit
                elif id(unit) not in seen:
                    seen.add(id(unit))
                    yield unit

    def freeable(self, node: str, givers: Iterable[EntitlementKey]) -> Mapping[str, int]:
        """Return by resource what would come free on a node if all of that went."""
        found: dict[str, int] = {}
        for key in givers:
            for name, amount in self._freeable_of(key, node).items():
                found[name] = found.get(name, 0) + amount
        return found

    def _freeable_of(self, key: EntitlementKey, node: str) -> Mapping[str, int]:
        known = self._freeable.get((key, node))
        if known is not None:
            return known
        found: dict[str, int] = {}
        # A pod of a gang may be in several units.
        pieces = {p.pod.uid: p for unit in self._shelf(key, node) for p in unit.pieces}
        for piece in pieces.values():
            if piece.node == node and piece.key == key:
                for name, amount in piece.pod.shape.fit.requests:
                    found[name] = found.get(name, 0) + amount
        self._freeable[key, node] = found
        return found

    def _add(self, unit: Unit) -> None:
        if len(unit.pieces) == 1:
            places = [(unit.pieces[0].key, unit.pieces[0].node)]
        else:
            nodes = {piece.node for piece in unit.pieces}
            places = [(key, node) for key in {p.key for p in unit.pieces} for node in nodes]
        for key, node in places:
            if node:
                shelves = self._shelves.setdefault(key, {})
                shelf = shelves.get(node)
                if shelf is None:
                    shelves[node] = [unit]
                else:
                    shelf.append(unit)

    def _shelf(self, key: EntitlementKey, node: str) -> Sequence[Unit]:
        return self._shelves.get(key, {}).get(node, ())


def _rank(unit: Unit) -> tuple[int, ...]:
    return (0 if unit.is_told else 1, *unit.order[:-1])
