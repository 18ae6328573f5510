# SPDX-License-Identifier: Apache-2.0
"""What one evaluation may make: characters, list elements, comparisons, together."""

import threading

from policies.cel.expression import EvaluationError
from policies.cel.limits import MAX_ITERATIONS, MAX_UNITS


class BudgetError(EvaluationError):
    """An evaluation that would take more than it may."""

    @classmethod
    def steps(cls) -> "BudgetError":
        """Return the error of too many steps of loops."""
        return cls(f"loops more than {MAX_ITERATIONS} times")

    @classmethod
    def units(cls) -> "BudgetError":
        """Return the error of too much made."""
        return cls(f"makes or compares more than {MAX_UNITS} characters and elements")


class OverBudget:
    """What the engine cannot convert, so that it ends the evaluation at once.

    An error would not do: `||` and `&&` may pass over errors, and the loop would go on.
    """


class Budget(threading.local):
    """The units that the evaluation on this thread has left."""

    remaining: int = 0

    def reset(self) -> None:
        """Begin an evaluation."""
        self.remaining = MAX_UNITS

    def charge(self, units: int) -> bool | OverBudget:
        """Take units off; the value is true, or ends the evaluation. Raises on a negative size."""
        if units < 0:
            raise ValueError(f"size must not be negative: {units}")
        self.remaining -= units
        return True if self.remaining >= 0 else OverBudget()
