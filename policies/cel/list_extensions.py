# SPDX-License-Identifier: Apache-2.0
"""The list and set libraries of CEL's extensions, for the engine that lacks them.

Source: cel-go `ext/lists.go` and `ext/sets.go`. Nothing here knows an engine.
"""

from collections.abc import Sequence
from typing import Any

from policies.cel.lists import cel_equal, check_comparable, index_of
from policies.cel.quantities import FunctionError


def distinct(values: Sequence[object]) -> list[object]:
    """Return the values without repetitions, in order."""
    found: list[object] = []
    for value in values:
        if index_of(found, value) < 0:
            found.append(value)
    return found


def number_range(size: int) -> list[int]:
    """Return 0 and so on, so many. Raises FunctionError below 0."""
    if size < 0:
        raise FunctionError(f"size must not be negative: {size}")
    return list(range(size))


def reverse(values: Sequence[object]) -> list[object]:
    """Return the values in reverse."""
    return list(reversed(values))


def part(values: Sequence[object], start: int, end: int) -> list[object]:
    """Return the values from start to before the end. Raises FunctionError outside the list."""
    if not 0 <= start <= end <= len(values):
        raise FunctionError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return list(values[start:end])


def flatten(values: Sequence[object], depth: int = 1) -> list[object]:
    """Return the values with so many levels of inner lists resolved."""
    flat: list[object] = []
    for value in values:
        if depth > 0 and isinstance(value, list):
            flat.extend(flatten(value, depth - 1))
        else:
            flat.append(value)
    return flat


def sort(values: Sequence[Any]) -> list[Any]:
    """Return the values in order. Raises FunctionError if they have none."""
    return sorted(check_comparable(values))


def contains(values: Sequence[object], wanted: Sequence[object]) -> bool:
    """Tell whether every wanted value is there."""
    return all(index_of(values, value) >= 0 for value in wanted)


def equivalent(left: Sequence[object], right: Sequence[object]) -> bool:
    """Tell whether each holds all values of the other."""
    return contains(left, right) and contains(right, left)


def intersects(left: Sequence[object], right: Sequence[object]) -> bool:
    """Tell whether some value is in both."""
    return any(cel_equal(one, other) for one in left for other in right)
