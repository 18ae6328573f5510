# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' list library for CEL.

Source: kubernetes/apiserver `pkg/cel/library/lists.go`. Nothing here knows an engine.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, TypeAlias

from policies.cel.quantities import FunctionError

_INT64: Final = 1 << 63
_GROUPS: Final = ((bool,), (int, float), (str,), (bytes, bytearray), (datetime,), (timedelta,))
"""Values that have an order among one another; the first group that fits is a value's."""
Comparable: TypeAlias = Any
"""bool, int, float, str, bytes, datetime or timedelta; lists hold one kind of them."""


def is_sorted(values: Sequence[Comparable]) -> bool:
    """Tell whether no element is less than the one before it."""
    check_comparable(values)
    return all(one <= other for one, other in pairwise(values))


def total(values: Sequence[Comparable]) -> Comparable:
    """Add numbers or durations; nothing adds up to 0. Raises FunctionError beyond int64."""
    check_comparable(values)
    if not values:
        return 0
    if not isinstance(values[0], int | float | timedelta) or isinstance(values[0], bool):
        raise FunctionError("no such overload")
    result = sum(values[1:], start=values[0])
    if type(result) is int and not -_INT64 <= result < _INT64:
        raise FunctionError("integer overflow")
    return result


def minimum(values: Sequence[Comparable]) -> Comparable:
    """Return the least element. Raises FunctionError if there is none."""
    return min(check_comparable(_check_filled(values, "min")))


def maximum(values: Sequence[Comparable]) -> Comparable:
    """Return the greatest element. Raises FunctionError if there is none."""
    return max(check_comparable(_check_filled(values, "max")))


def index_of(values: Sequence[object], wanted: object) -> int:
    """Return the first position of an element that is equal by CEL's rules, or -1."""
    return _find(enumerate(values), wanted)


def last_index_of(values: Sequence[object], wanted: object) -> int:
    """Return the last position of an element that is equal by CEL's rules, or -1."""
    return _find(reversed(list(enumerate(values))), wanted)


def includes(value: object, wanted: object) -> bool:
    """Tell whether a list holds the element, or whether anything else is it."""
    if isinstance(value, list):
        return index_of(value, wanted) >= 0
    return cel_equal(value, wanted)


def cel_equal(left: object, right: object) -> bool:
    """Compare as CEL does: numbers by value whatever their type, but true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(cel_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            cel_equal(value, right[key]) for key, value in left.items()
        )
    return bool(left == right)


def _find(positions: Iterable[tuple[int, object]], wanted: object) -> int:
    return next((index for index, value in positions if cel_equal(value, wanted)), -1)


def _check_filled(values: Sequence[Comparable], function: str) -> Sequence[Comparable]:
    if not values:
        raise FunctionError(f"{function} called on empty list")
    return values


def check_comparable(values: Sequence[Comparable]) -> Sequence[Comparable]:
    """Refuse elements that have no order, or none with one another. Raises FunctionError."""
    groups = {_group(value) for value in values}
    if len(groups) > 1 or None in groups:
        raise FunctionError("no such overload")
    return values


def _group(value: object) -> tuple[type, ...] | None:
    return next((group for group in _GROUPS if isinstance(value, group)), None)
