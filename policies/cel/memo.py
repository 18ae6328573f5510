# SPDX-License-Identifier: Apache-2.0
"""Remembers what an expression yielded for the same inputs, since an expression is a function.

Pods of one workload differ in what few expressions read, and a controller makes many at a time:
their conditions are evaluated once. Inputs are compared as the bytes of what can be read of them,
so nothing that could make a difference is left out.
"""

from typing import Final

_MOST: Final = 128
"""So many inputs are remembered for each expression; then all are forgotten."""
_LONGEST_BYTES: Final = 4096
"""Larger inputs and texts are not kept: they would fill the memory, and are seldom seen twice."""
_SCALARS: Final = (bool, str, int)

Key = tuple[bytes, ...]
"""The variables that an expression uses, in the order of their names, as JSON."""


class Memo:
    """What one expression has yielded; safe to share between threads."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[Key, bool | str | int] = {}

    def get(self, key: Key) -> bool | str | int | None:
        """Return the value for these inputs, or None if it is not remembered."""
        return self._found.get(key)

    def add(self, key: Key, value: object) -> None:
        """Remember a value; only such as cannot be changed, and that are not null."""
        if not isinstance(value, _SCALARS) or sum(map(len, key)) > _LONGEST_BYTES:
            return
        if isinstance(value, str) and len(value) > _LONGEST_BYTES:
            return
        if len(self._found) >= _MOST:
            self._found = {}
        self._found[key] = value
