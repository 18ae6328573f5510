# SPDX-License-Identifier: Apache-2.0
"""Which nodes must not get pods of a kind, remembered, and looked at again where one changed.

A node is looked at once for all that ask for as many devices of it, and then judged by each kind.
Why a node is refused must not be decided here.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.cluster.table import ChangeLog
from policies.placement.asks import DeviceAsk
from policies.placement.filtering import Limits, Refusal, Standing, judge, standing_of
from policies.placement.occupancy import Occupancy
from policies.placement.pods import Wish

_KINDS: Final = 256
_ASKS: Final = 64


@dataclass(slots=True)
class Sieve:
    """The nodes that must not get pods of one kind, with why, as of a moment of the log.

    `refusals` are of all of them; `failed` and `unresolvable` have the reasons as they are told,
    and `hot` those of the unresolvable ones that are refused for load.
    """

    refusals: dict[str, Refusal] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    hot: set[str] = field(default_factory=set)
    moment: int = 0

    def take(self, name: str, refusal: Refusal | None) -> None:
        """Take the verdict about a node in place of the last one."""
        before = self.refusals.get(name)
        if before is refusal:
            return
        if before is not None:
            del self.refusals[name]
            self.failed.pop(name, None)
            self.unresolvable.pop(name, None)
            self.hot.discard(name)
        if refusal is None:
            return
        self.refusals[name] = refusal
        kept = self.unresolvable if refusal.is_unresolvable else self.failed
        kept[name] = refusal.reason
        if refusal.is_for_load:
            self.hot.add(name)


@dataclass(slots=True)
class _Standings:
    """How nodes stand to one ask, as of a moment of the log; those that nobody asked are not in."""

    found: dict[str, Standing] = field(default_factory=dict)
    moment: int = 0


class Sieves:
    """One sieve for each kind of pod that was asked about lately, over nodes that others change.

    Whoever changes a node in `nodes` has to `touch` it, and who takes one out to `remove` it.
    """

    def __init__(self, nodes: Mapping[str, Occupancy], limits: Limits) -> None:
        self._nodes = nodes
        self._limits = limits
        self._log: ChangeLog[str] = ChangeLog()
        self._sieves: OrderedDict[Hashable, Sieve] = OrderedDict()
        self._standings: OrderedDict[DeviceAsk, _Standings] = OrderedDict()

    def touch(self, name: str) -> None:
        """Note that a node has changed, or came."""
        self._log.touch(name)

    def remove(self, name: str) -> None:
        """Forget a node."""
        self._log.drop(name)
        for sieve in self._sieves.values():
            sieve.take(name, None)
        for standings in self._standings.values():
            standings.found.pop(name, None)

    def of(self, wish: Wish) -> Sieve:
        """Return the nodes that must not get such a pod. One that is not known may."""
        key = wish.sifted
        sieve = self._sieves.get(key)
        if sieve is None:
            sieve = self._sieves[key] = Sieve()
            names: Iterable[str] = self._nodes
            _limit(self._sieves, _KINDS)
        else:
            self._sieves.move_to_end(key)
            names = self._log.since(sieve.moment)
        # Ranks are made for asks without memory: how a node stands does not depend on it either.
        known = [self._current(ask) for ask in wish.ranked.devices]
        for name in names:
            here = self._nodes[name]
            standings = [
                found.get(name) or self._stand(ask, name, found)
                for ask, found in zip(wish.ranked.devices, known, strict=True)
            ]
            sieve.take(name, judge(wish, standings, here, self._limits))
        sieve.moment = self._log.now
        return sieve

    def _current(self, ask: DeviceAsk) -> dict[str, Standing]:
        """Return how nodes stand to an ask, without those that have changed since."""
        kept = self._standings.get(ask)
        if kept is None:
            kept = self._standings[ask] = _Standings()
            _limit(self._standings, _ASKS)
        else:
            self._standings.move_to_end(ask)
            for name in self._log.since(kept.moment):
                kept.found.pop(name, None)
        kept.moment = self._log.now
        return kept.found

    def _stand(self, ask: DeviceAsk, name: str, found: dict[str, Standing]) -> Standing:
        standing = found[name] = standing_of(ask, self._nodes[name], self._limits)
        return standing


def _limit(kept: OrderedDict, most: int) -> None:  # type: ignore[type-arg]
    """Forget what nobody has asked about for longest."""
    if len(kept) > most:
        kept.popitem(last=False)
