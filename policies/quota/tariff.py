# SPDX-License-Identifier: Apache-2.0
"""Today's prices: what pods cost by the current policies and on the nodes that are there.

Remembers by shape, and for bound pods by node. Who has been charged what must not be here.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from policies.model.policyset import PolicySet
from policies.model.profile import Profile
from policies.model.tenant import DEFAULT_POOL
from policies.quota.amount import Amount
from policies.quota.charging import Unknown, amount_of
from policies.quota.pods import QuotaPod, Shape
from policies.quota.pools import pool_of
from policies.rewrite.offers import is_pinned_to, labelled_mib

_ANYWHERE: Final = ""
_MOST_SHAPES: Final = 8192
"""Shapes that are remembered, so that those of past pods do not pile up."""


class PricedNode(Protocol):
    """The part of a node that prices depend on; `allocatable` holds counts of devices."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """Return its labels."""
        ...

    @property
    def allocatable(self) -> Mapping[str, int]:
        """Return what it offers by resource name."""
        ...


class Tariff:
    """What shapes and pods cost. Feed it every node, and every policy set."""

    def __init__(self, policies: PolicySet) -> None:
        self._policies = policies
        self._nodes: dict[str, PricedNode] = {}
        self._prices: dict[Shape, dict[str, Amount | Unknown]] = {}
        self._unit_mib: dict[str, int | None] = {}
        self._pools: dict[str, str] = {}

    @property
    def generation(self) -> str:
        """Return the generation of the policies that prices are by."""
        return self._policies.generation

    def set_policies(self, policies: PolicySet) -> None:
        """Price by these from now on."""
        self._policies = policies
        self._forget()

    def put_node(self, node: PricedNode) -> bool:
        """Take a node as it is now; tell whether that can change the price of any pod."""
        old = self._nodes.get(node.name)
        self._nodes[node.name] = node
        if old is not None and old.labels == node.labels and _offers(old) == _offers(node):
            return False
        self._forget()
        return True

    def remove_node(self, name: str) -> bool:
        """Forget a node; tell whether that can change the price of any pod."""
        if self._nodes.pop(name, None) is None:
            return False
        self._forget()
        return True

    def price_of(self, shape: Shape) -> Amount | Unknown:
        """Return what a pod of the shape costs wherever it goes."""
        return self._price(shape, _ANYWHERE)

    def price(self, pod: QuotaPod) -> Amount | Unknown:
        """Return what a pod costs on its node, or wherever it goes while that is not known."""
        return self._price(pod.shape, pod.node if pod.node in self._nodes else _ANYWHERE)

    def pool(self, pod: QuotaPod) -> str:
        """Return the pool of a pod's node; the default one while it is on no node that is known."""
        node = self._nodes.get(pod.node)
        if node is None:
            return DEFAULT_POOL
        found = self._pools.get(pod.node)
        if found is None:
            found = self._pools[pod.node] = pool_of(self._policies, node.labels)
        return found

    def _price(self, shape: Shape, node: str) -> Amount | Unknown:
        known = self._prices.get(shape)
        if known is None:
            if len(self._prices) >= _MOST_SHAPES:
                self._prices.clear()
            known = self._prices[shape] = {}
        price = known.get(node)
        if price is None:
            price = known[node] = amount_of(
                shape, self._policies, self._nodes.get(node), self._largest_mib
            )
        return price

    def _largest_mib(self, form: Profile) -> int | None:
        """Return the most memory that one unit of a form has on any node that offers it."""
        if form.name not in self._unit_mib:
            found = [
                mib
                for node in self._nodes.values()
                if node.allocatable.get(form.resource, 0) > 0
                and (mib := labelled_mib(form, node.labels)) is not None
                and is_pinned_to(node.labels, form)
            ]
            self._unit_mib[form.name] = max(found, default=None)
        return self._unit_mib[form.name]

    def _forget(self) -> None:
        self._prices.clear()
        self._unit_mib.clear()
        self._pools.clear()


def _offers(node: PricedNode) -> set[str]:
    """Return the names of the devices that a node has any of."""
    return {name for name, count in node.allocatable.items() if count > 0 and "/" in name}
