# SPDX-License-Identifier: Apache-2.0
"""Into which pools a pod may go, what it costs there, and what it then asks of a node.

Whether a tenant has quota there, or a node room, must not be here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from policies.cluster.affinity import NodeTerm
from policies.cluster.constraints import Constraints
from policies.cluster.shape import FitShape
from policies.model.labels import Expression
from policies.model.policyset import PolicySet
from policies.model.tenant import DEFAULT_POOL
from policies.quota.amount import Amount
from policies.quota.charging import cost
from policies.quota.pods import Shape
from policies.quota.pools import Pins, pins_of
from policies.quota.tariff import Tariff


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """A pool that pods of a shape may go into. `without_nodes`: even where no node fits."""

    pool: str
    amount: Amount
    fit: FitShape
    pins: Pins
    without_nodes: bool = False


class Options:
    """Remembers the options of every shape, for one policy set and one set of nodes' labels."""

    def __init__(
        self, policies: PolicySet, tariff: Tariff, labels: Sequence[Mapping[str, str]]
    ) -> None:
        self._tariff = tariff
        self._known: WeakKeyDictionary[Shape, tuple[Option, ...]] = WeakKeyDictionary()
        self._pins = {
            pool: pins_of(policies, pool, labels) for pool in (DEFAULT_POOL, *policies.pools)
        }
        self._open = {
            DEFAULT_POOL: policies.settings.queue.release_without_nodes,
            **{name: pool.release_without_nodes for name, pool in policies.pools.items()},
        }

    @property
    def pools(self) -> tuple[str, ...]:
        """Return every pool, the default one first, then in name order."""
        return tuple(self._pins)

    def is_open(self, pool: str) -> bool:
        """Tell whether pods of a pool are released though no node fits."""
        return self._open.get(pool, False)

    def of(self, shape: Shape) -> tuple[Option, ...]:
        """Return the pools that the shape's own selectors do not rule out."""
        found = self._known.get(shape)
        if found is None:
            amount = cost(self._tariff.price_of(shape))
            found = self._known[shape] = tuple(self._listed(shape, amount))
        return found

    def _listed(self, shape: Shape, amount: Amount) -> Iterable[Option]:
        for pool, pins in self._pins.items():
            constraints = pinned(shape.constraints, pins)
            if constraints is not None:
                fit = replace(shape.fit, constraints=constraints)
                yield Option(pool, amount, fit, pins, self._open[pool])


def pinned(constraints: Constraints, pins: Pins) -> Constraints | None:
    """Return the constraints of a pod once it is pinned, None if those contradict each other.

    As Kubernetes demands of a gated pod, it only narrows.
    """
    selector = dict(constraints.node_selector)
    if any(selector.get(key, value) != value for key, value in pins.node_selector.items()):
        return None
    selector |= pins.node_selector
    terms = constraints.terms
    if terms is not None:
        terms = tuple(term for term in terms if not _contradicts(term, pins.node_selector))
        if not terms:
            return None
    if pins.expressions:
        terms = tuple(_narrowed(term, pins.expressions) for term in terms or (NodeTerm(),))
    return replace(constraints, node_selector=tuple(sorted(selector.items())), terms=terms)


def _contradicts(term: NodeTerm, labels: Mapping[str, str]) -> bool:
    return any(
        isinstance(expression, Expression)
        and expression.key in labels
        and not expression.matches(labels)
        for expression in term.expressions
    )


def _narrowed(term: NodeTerm, expressions: tuple[Expression, ...]) -> NodeTerm:
    return replace(term, expressions=(*term.expressions, *expressions))
