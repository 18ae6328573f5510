# SPDX-License-Identifier: Apache-2.0
"""The variables of one review, as cel-expr-python takes them.

The engine converts a variable when an expression first reads it and keeps it for the review. So
one activation is made with an empty dict for each variable, which is filled just before the first
expression that uses it: what no expression reads costs nothing.
"""

from collections.abc import Mapping
from threading import Thread, current_thread
from typing import Any

from policies.cel.expression import EvaluationError
from policies.cel.inputs import Input, Inputs
from policies.cel.memo import Key


class ReviewScope:
    """One activation for all expressions of a review that are evaluated on one thread.

    Activations stay on their thread since the engine finds their memory through a thread's own
    table (`py_cel_arena.cc`), without which a call of our functions fails. Threads are told apart
    as objects, for their numbers are used again.
    """

    __slots__ = ("_activated", "_environment", "_inputs", "_keys", "_read", "_values", "_version")

    def __init__(self, environment: Any, inputs: Inputs, values: Mapping[str, object]) -> None:
        self._environment = environment
        self._inputs = inputs
        self._values = values
        self._read: dict[str, Input] = {}
        self._keys: dict[tuple[str, ...], Key] = {}
        self._activated: dict[Thread, _Activated] = {}
        self._version = inputs.version

    def key(self, names: tuple[str, ...]) -> Key:
        """Return what can be read of these variables, as JSON. Raises EvaluationError."""
        self._renew()
        key = self._keys.get(names)
        if key is None:
            key = self._keys[names] = tuple([self._input(name).text for name in names])
        return key

    def activation(self, uses: frozenset[str]) -> Any:
        """Return the activation, in which these variables can be read. Raises EvaluationError."""
        self._renew()
        thread = current_thread()
        activated = self._activated.get(thread)
        if activated is None:
            activated = self._activated[thread] = _Activated(self._environment, self._values)
        if not uses <= activated.ready:
            for name in uses - activated.ready:
                activated.fill(name, self._inputs.prepare(name, self._input(name)))
            activated.ready |= uses
        return activated.activation

    def _renew(self) -> None:
        """Forget what was read if expressions were compiled since, which may read more."""
        if self._version != self._inputs.version:
            self._read, self._keys, self._activated = {}, {}, {}
            self._version = self._inputs.version

    def _input(self, name: str) -> Input:
        """Return a variable's value, read once for all threads."""
        found = self._read.get(name)
        if found is None:
            if name not in self._values:
                raise EvaluationError(f"`{name}` has no value here")
            found = self._read[name] = self._inputs.read(name, self._values[name])
        return found


class _Activated:
    """An activation and which of its variables are filled."""

    __slots__ = ("_environment", "_slots", "activation", "ready")

    def __init__(self, environment: Any, names: Mapping[str, object]) -> None:
        self._environment = environment
        self._slots: dict[str, dict[str, Any] | None] = {name: {} for name in names}
        self.activation = environment.Activation(self._slots)
        self.ready: frozenset[str] = frozenset()

    def fill(self, name: str, value: Mapping[str, Any] | None) -> None:
        """Put a value into its place; null has none, so it takes a new activation."""
        slot = self._slots[name]
        if value is not None and slot is not None:
            slot.update(value)
            return
        self._slots = {**self._slots, name: None if value is None else dict(value)}
        self.activation = self._environment.Activation(self._slots)
