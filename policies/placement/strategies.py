# SPDX-License-Identifier: Apache-2.0
"""By which strategy each node is ranked: as its pool says, else the settings, else the process.

Pools of nodes are found when nodes or documents change, not when somebody asks. How nodes are
ranked must not be here.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from policies.cluster.nodes import Node
from policies.model.placement import SpreadSettings
from policies.model.policyset import PolicySet
from policies.model.pool import Pool
from policies.placement.scoring import Strategy
from policies.placement.spreading import Spreader
from policies.quota.pools import pool_of

_STRATEGIES: Final = {False: Strategy.PACK, True: Strategy.SPREAD}


class Strategies:
    """The strategies of all nodes.

    Nodes in no pool go together with those of pools that say nothing, and so do their loads.
    """

    def __init__(self, settings: SpreadSettings) -> None:
        self._settings = settings
        self._rest = Spreader(settings)
        self._policies: PolicySet | None = None
        self._own: dict[str, Spreader] = {}
        """Those of the pools that say how their nodes are ranked."""
        self._labels: dict[str, Mapping[str, str]] = {}
        self._loads: dict[str, int] = {}
        self._of: dict[str, Spreader] = {}
        """Of each node that is not with the rest."""
        self._choices: tuple[bool, ...] = ()
        """What all of them have chosen, the rest first; empty where nodes have moved since."""
        self._odd: frozenset[str] = frozenset()
        """The nodes that are ranked by the other strategy than the rest is, by these choices."""

    def set_policies(self, policies: PolicySet | None) -> None:
        """Take the documents as they are now, None where there are none that can be served."""
        before, self._policies = self._policies, policies
        if _said(policies) == _said(before):
            return
        others, pools = _said(policies)
        self._rest = _kept(self._rest, others or self._settings)
        self._own = {
            name: _kept(self._own.get(name), pool.placement)
            for name, pool in pools.items()
            if pool.placement is not None
        }
        self._of.clear()
        for name in self._labels:
            self._join(name)

    def put_node(self, node: Node) -> None:
        """Take a node as it is now."""
        known = self._labels.get(node.name)
        if known is not None and known == node.labels:
            return
        self._leave(node.name)
        self._labels[node.name] = node.labels
        self._join(node.name)

    def put_load(self, name: str, load: int | None) -> None:
        """Take a node's load in thousandths, None where it is not known."""
        if load is None:
            self._loads.pop(name, None)
        else:
            self._loads[name] = load
        if name in self._labels:
            self._of.get(name, self._rest).put_load(name, load)

    def remove(self, name: str) -> None:
        """Forget a node."""
        self._leave(name)
        self._labels.pop(name, None)
        self._loads.pop(name, None)

    def of(
        self, names: Sequence[str], *, is_exclusive: bool
    ) -> Sequence[tuple[Strategy, Sequence[str]]]:
        """Return nodes by strategy, those that are packed first; none of a strategy without nodes.

        One that is not known is with the rest. Exclusive pods are always packed, since they heat
        nobody's card.
        """
        if is_exclusive:
            return ((Strategy.PACK, names),)
        odd, others = self._odd_now(), self._rest.spreads()
        if not odd:
            return ((_STRATEGIES[others], names),)
        by_strategy = {
            _STRATEGIES[others]: [name for name in names if name not in odd],
            _STRATEGIES[not others]: [name for name in names if name in odd],
        }
        return tuple((each, by_strategy[each]) for each in Strategy if by_strategy[each])

    def _odd_now(self) -> frozenset[str]:
        if not self._of:
            return frozenset()
        others = self._rest.spreads()
        choices = (others, *(spreader.spreads() for spreader in self._own.values()))
        if choices != self._choices:
            self._choices = choices
            odd = {each for each in self._own.values() if each.spreads() is not others}
            self._odd = frozenset(name for name, each in self._of.items() if each in odd)
        return self._odd

    def _join(self, name: str) -> None:
        """Put a node where its labels say, with its load."""
        own = self._own_of(self._labels[name])
        if own is not None:
            self._of[name] = own
        (own or self._rest).put_load(name, self._loads.get(name))
        self._choices = ()

    def _own_of(self, labels: Mapping[str, str]) -> Spreader | None:
        if self._policies is None or not self._own:
            return None
        return self._own.get(pool_of(self._policies, labels))

    def _leave(self, name: str) -> None:
        self._of.pop(name, self._rest).put_load(name, None)
        self._choices = ()


def _said(policies: PolicySet | None) -> tuple[SpreadSettings | None, Mapping[str, Pool]]:
    """Return what documents say of nodes in no pool, and the pools."""
    return (None, {}) if policies is None else (policies.settings.placement, policies.pools)


def _kept(known: Spreader | None, settings: SpreadSettings) -> Spreader:
    """Return who chooses, with no nodes yet: whoever did, as long as it is set up alike."""
    if known is None or known.settings != settings:
        return Spreader(settings)
    known.clear()
    return known
