# SPDX-License-Identifier: Apache-2.0
"""Which pool a node is in, and what keeps a pod on the nodes of the pool that it is charged to.

Which pool a pod is charged to must not be here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.model.keys import HOSTNAME_LABEL
from policies.model.labels import Expression, LabelSelector, Operator
from policies.model.policyset import PolicySet
from policies.model.tenant import DEFAULT_POOL

Labels = Mapping[str, str]

_NOWHERE: Final = (
    Expression(HOSTNAME_LABEL, Operator.EXISTS),
    Expression(HOSTNAME_LABEL, Operator.DOES_NOT_EXIST),
)
"""What no node meets."""


@dataclass(frozen=True, slots=True)
class Pins:
    """What a pod needs so that it runs in one pool only: selected labels, and required affinity."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()


def pool_of(policies: PolicySet, labels: Labels) -> str:
    """Return the pool of a node: the first, in name order, that selects it, else the default."""
    for pool in policies.pools.values():
        if pool.nodes.matches(labels):
            return pool.name
    return DEFAULT_POOL


def pins_of(policies: PolicySet, pool: str, node_labels: Sequence[Labels]) -> Pins:
    """Return what keeps a pod in a pool: never on a node of another, now or later.

    Affinity cannot say "not all of these", so a pool that goes first and has several requirements
    is kept off by the contrary of one of them, which may leave out nodes of this pool: the one
    that leaves most of those given. Raises KeyError for a pool that there is not.
    """
    own = LabelSelector() if pool == DEFAULT_POOL else policies.pools[pool].nodes
    earlier = [p.nodes for p in policies.pools.values() if pool == DEFAULT_POOL or p.name < pool]
    mine = [labels for labels in node_labels if pool_of(policies, labels) == pool]
    selected = {e.key: e.values[0] for e in own.expressions if _is_label(e)}
    demanded = [e for e in own.expressions if not _is_said_by(selected, e)]
    kept_off = _merged(_contraries(own, earlier, mine))
    return Pins(selected, tuple(dict.fromkeys((*demanded, *kept_off))))


def _is_label(expression: Expression) -> bool:
    return expression.operator is Operator.IN and len(expression.values) == 1


def _is_said_by(selected: Labels, expression: Expression) -> bool:
    return expression.key in selected and expression.matches(selected)


def _contraries(
    own: LabelSelector, others: Iterable[LabelSelector], nodes: list[Labels]
) -> Iterator[Expression]:
    """Yield what keeps off the nodes of each other pool that may share some with this one."""
    for other in others:
        if own.excludes(other):
            continue
        contraries = [expression.contrary() for expression in other.expressions]
        possible = [contrary for contrary in contraries if not _denies(own, contrary)]
        if not possible:  # all nodes of this pool are the other's
            yield from _NOWHERE
            return
        best = max(possible, key=lambda contrary: sum(map(contrary.matches, nodes)))
        nodes = [labels for labels in nodes if best.matches(labels)]
        yield best


def _denies(own: LabelSelector, expression: Expression) -> bool:
    return any(expression.excludes(demanded) for demanded in own.expressions)


def _merged(expressions: Iterable[Expression]) -> Iterator[Expression]:
    """Yield the same, with one list of all values that a label must not have."""
    unwanted: dict[str, dict[str, None]] = {}
    for expression in expressions:
        if expression.operator is Operator.NOT_IN:
            unwanted.setdefault(expression.key, {}).update(dict.fromkeys(expression.values))
        else:
            yield expression
    for key, values in unwanted.items():
        yield Expression(key, Operator.NOT_IN, tuple(sorted(values)))
