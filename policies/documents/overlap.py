# SPDX-License-Identifier: Apache-2.0
"""What can be told of two policies' matches without a pod: that both, or only one, can apply."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from policies.model.labels import LabelSelector, Operator
from policies.model.policy import Match

T = TypeVar("T")


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


class MatchIndex(Generic[T]):
    """Things with a match, found again by tenant or namespace, so that not all are compared."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._by_tenant: dict[str | None, list[int]] = {}
        self._by_namespace: dict[str | None, list[int]] = {}

    def add(self, match: Match, item: T) -> None:
        """Keep an item."""
        number = len(self._items)
        self._items.append(item)
        for index, values in (
            (self._by_tenant, match.tenants),
            (self._by_namespace, match.namespaces),
        ):
            for value in (None,) if values is None else values:
                index.setdefault(value, []).append(number)

    def near(self, match: Match) -> Iterator[T]:
        """Yield, in the order in which they came, all items whose matches may overlap this one."""
        by_tenant = self._numbers(self._by_tenant, match.tenants)
        by_namespace = self._numbers(self._by_namespace, match.namespaces)
        for number in min(by_tenant, by_namespace, key=len):
            yield self._items[number]

    def _numbers(
        self, index: Mapping[str | None, list[int]], values: frozenset[str] | None
    ) -> Sequence[int]:
        if values is None:
            return range(len(self._items))
        found = {number for value in (None, *values) for number in index.get(value, ())}
        return sorted(found)


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
