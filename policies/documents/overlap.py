# SPDX-License-Identifier: Apache-2.0
"""What can be told of two policies' matches without a pod: that both, or only one, can apply."""

from collections.abc import Iterator

from policies.model.labels import LabelSelector, Operator
from policies.model.policy import Match


def are_disjoint(one: Match, other: Match) -> bool:
    """Tell whether certainly no pod is matched by both; conditions in CEL are not looked into."""
    if any(a is not None and b is not None and a.isdisjoint(b) for a, b in _sets(one, other)):
        return True
    mine, theirs = _demanded(one.labels), _demanded(other.labels)
    return any(mine[key].isdisjoint(theirs[key]) for key in mine.keys() & theirs.keys())


def covers(wide: Match, narrow: Match) -> bool:
    """Tell whether certainly every pod that `narrow` matches is matched by `wide`."""
    if wide.when:
        return False
    if any(w is not None and (n is None or not n <= w) for w, n in _sets(wide, narrow)):
        return False
    if wide.labels is None:
        return True
    demanded = narrow.labels.expressions if narrow.labels else ()
    return set(wide.labels.expressions) <= set(demanded)


def _sets(
    one: Match, other: Match
) -> Iterator[tuple[frozenset[str] | None, frozenset[str] | None]]:
    yield one.tenants, other.tenants
    yield one.namespaces, other.namespaces
    yield one.owner_kinds, other.owner_kinds


def _demanded(selector: LabelSelector | None) -> dict[str, frozenset[str]]:
    """Return the values that a selector allows for each label that it needs."""
    expressions = selector.expressions if selector else ()
    return {e.key: frozenset(e.values) for e in expressions if e.operator is Operator.IN}
