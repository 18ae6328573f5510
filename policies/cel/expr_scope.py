# SPDX-License-Identifier: Apache-2.0
"""The variables of one review, as cel-expr-python takes them.

The engine converts a variable when an expression first reads it and keeps it for the review. So
one activation is made with an empty dict for each variable, which is filled just before the first
expression that uses it: what no expression reads costs nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from policies.cel.expression import EvaluationError, Expression
from policies.cel.inputs import Inputs


class ReviewScope:
    """One activation for all expressions of a review."""

    __slots__ = ("_activation", "_environment", "_inputs", "_ready", "_slots", "_values")

    def __init__(self, environment: Any, inputs: Inputs, values: Mapping[str, object]) -> None:
        self._environment = environment
        self._inputs = inputs
        self._values = values
        self._ready: frozenset[str] = frozenset()
        self._slots: dict[str, dict[str, object] | None] = {}
        self._activation: Any = None

    def with_variables(self, variables: Sequence[tuple[str, Expression]]) -> "ReviewScope":
        """Return this scope: variables are compiled into the expressions that use them."""
        del variables
        return self

    def activation(self, uses: frozenset[str]) -> Any:
        """Return the activation, in which these variables can be read. Raises EvaluationError."""
        if self._activation is None:
            self._slots = {name: {} for name in self._values}
            self._activation = self._environment.Activation(self._slots)
        if not uses <= self._ready:
            for name in uses - self._ready:
                self._fill(name)
            self._ready |= uses
        return self._activation

    def _fill(self, name: str) -> None:
        """Put a variable's value into its place in the activation."""
        if name not in self._values:
            raise EvaluationError(f"`{name}` has no value here")
        value = self._inputs.prepare(name, self._values[name])
        slot = self._slots[name]
        if value is not None and slot is not None:
            slot.update(value)
            return
        self._slots = {**self._slots, name: None if value is None else dict(value)}
        self._activation = self._environment.Activation(self._slots)
