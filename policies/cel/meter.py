# SPDX-License-Identifier: Apache-2.0
"""What one evaluation on cel-python may do: that engine bounds neither steps nor memory."""

from typing import Any

from policies.cel.budget import BudgetError
from policies.cel.limits import MAX_ITERATIONS, MAX_UNITS


class Meter:
    """Counts the steps and what is made in one evaluation. Raises BudgetError beyond the limits."""

    def __init__(self) -> None:
        self._steps = MAX_ITERATIONS
        self._units = MAX_UNITS

    def step(self) -> None:
        """Count one step of a loop."""
        self._steps -= 1
        if self._steps < 0:
            raise BudgetError.steps()

    def charge(self, units: int) -> None:
        """Count characters and elements that are made."""
        self._units -= units
        if self._units < 0:
            raise BudgetError.units()


def tree_size(value: Any) -> int:
    """Return the characters and elements of a value, what it holds several times counted so.

    It stops counting beyond the limit, which values that hold one another would never reach.
    """
    size, waiting = 0, [value]
    while waiting and size <= MAX_UNITS:
        item = waiting.pop()
        if isinstance(item, str | bytes):
            size += len(item)
        elif isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        size += 1
    return size
