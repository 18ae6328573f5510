# SPDX-License-Identifier: Apache-2.0
"""What a pod costs: parts of GPUs, usable memory and counts, by the policies of the day.

What was charged when a pod was released stands in its charge record and is not computed again
here. Who is charged, and whether there is room, must not be here.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from policies.model.policyset import PolicySet
from policies.model.profile import Charge, Profile, SharingMode
from policies.pod.asked import effective_counts
from policies.quota.amount import NOTHING, Amount, share, total
from policies.quota.forms import form_of
from policies.quota.pods import Ask, Shape
from policies.rewrite.offers import labelled_mib, most_known_mib
from policies.vendors.nvidia import model_of

UnitMib = Callable[[Profile], int | None]
"""Tells the most usable memory that one unit of a form has on any node seen."""

_WHOLE: Final = Charge(1, 1)
_NONE: Final = Charge(0, 1)


class Labelled(Protocol):
    """The part of a node that prices depend on."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Return its labels."""
        ...


@dataclass(frozen=True, slots=True)
class Unknown:
    """That a cost cannot be told, why, and what it is at most."""

    reason: str
    at_most: Amount


class _Prices:
    """What one unit costs, by form: a profile's name, or a resource's where no profile is known."""

    def __init__(self, policies: PolicySet, node: Labelled | None, unit_mib: UnitMib) -> None:
        self._policies = policies
        self._labels = None if node is None else node.labels
        self._unit_mib = unit_mib
        self.charges: dict[str, Charge] = {}
        self.mib: dict[str, int] = {}
        self.unknown: dict[str, None] = {}
        """Resource names that are priced at most: as whole GPUs if they can be any."""

    def form(self, resource: str, claimed: str, shape: Shape) -> str:
        """Price the form that a container has by a name, and return what it is called."""
        profile = form_of(resource, claimed, shape, self._policies, self._labels)
        name = resource if profile is None else profile.name
        if name not in self.mib:
            self.charges[name], self.mib[name] = self._price(resource, profile)
        if profile is None:
            self.unknown[resource] = None
        return name

    def _price(self, resource: str, profile: Profile | None) -> tuple[Charge, int]:
        largest = max(self._policies.catalog.board_mib.values())
        if profile is None:
            return (_WHOLE, largest) if self._is_gpu(resource) else (_NONE, 0)
        mib = self._told_mib(profile)
        if mib is None:
            mib = most_known_mib(profile, self._policies.catalog)
        return profile.charge, largest // (profile.replicas or 1) if mib is None else mib

    def _told_mib(self, profile: Profile) -> int | None:
        """Return what the pod's node has for one unit, or any node seen."""
        catalog, labels = self._policies.catalog, self._labels
        if labels is None:
            return self._unit_mib(profile)
        told = labelled_mib(profile, labels)
        if told is not None or profile.mode is SharingMode.MIG:
            return told
        product = labels.get(catalog.vendor(profile.vendor).product_label, "")
        board = catalog.board_mib.get(model_of(product))
        return None if board is None else board // (profile.replicas or 1)

    def _is_gpu(self, resource: str) -> bool:
        """Tell whether a name of no known form can stand for GPUs: by its vendor, or a profile."""
        gpu = self._policies.catalog.classify(resource)
        if gpu is not None and gpu.vendor is not None:
            return True
        return any(p.resource == resource for p in self._policies.profiles.values())


def amount_of(
    shape: Shape,
    policies: PolicySet,
    node: Labelled | None = None,
    unit_mib: UnitMib = lambda _form: None,
) -> Amount | Unknown:
    """Return what a pod of the shape costs on this node, or wherever it goes.

    Memory is what the node has; without one, the most that nodes seen (`unit_mib`) or else boards
    of the form have, since a ceiling must hold wherever the pod goes.
    """
    if not shape.gpus:
        return NOTHING
    prices = _Prices(policies, node, unit_mib)
    units = effective_counts([(ask.kind, _by_form(ask, shape, prices)) for ask in shape.asks])
    shares = total(share(prices.charges[name], count) for name, count in units.items())
    mib = sum(prices.mib[name] * count for name, count in units.items())
    amount = Amount(shares.parts, mib, shape.gpus)
    if not prices.unknown:
        return amount
    where = "" if node is None else " on its node"
    names = ", ".join(prices.unknown)
    return Unknown(f"no profile and no label of a node tells what {names} is{where}", amount)


def cost(amount: Amount | Unknown) -> Amount:
    """Return the amount, or what it is at most."""
    return amount.at_most if isinstance(amount, Unknown) else amount


def _by_form(ask: Ask, shape: Shape, prices: _Prices) -> Mapping[str, int]:
    """Return a container's counts by form; it may ask for one form by several names."""
    counts: Counter[str] = Counter()
    for resource, count in ask.counts.items():
        counts[prices.form(resource, ask.profile, shape)] += count
    return counts
