# SPDX-License-Identifier: Apache-2.0
"""Compiled CEL by its text: one text stands in many documents, and in the next load again.

Compiling is most of the time of a load, and an expression is a function of its text.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from policies.cel import Environment, Expression, ResultType
from policies.cel.variables import VARIABLES_NAME

Key: TypeAlias = tuple[str, ResultType, tuple[tuple[str, str], ...]]
"""The text, what it must yield, and name and text of the variables that it may use, in order."""

Expressions: TypeAlias = Mapping[Key, Expression]


class ExpressionCache:
    """Compiles each text once; `known` is what an earlier load with the environment has used."""

    def __init__(self, environment: Environment, known: Expressions | None = None) -> None:
        self._environment = environment
        self._known = known or {}
        self._used: dict[Key, Expression] = {}

    @property
    def used(self) -> Expressions:
        """Return what was asked for, and nothing else, for the next load to know."""
        return MappingProxyType(self._used)

    def compile(
        self, source: str, result: ResultType, variables: Sequence[tuple[str, Expression]]
    ) -> Expression:
        """Return the compiled expression. Raises ExpressionError."""
        # Without the word none can be used; so policies with other variables share it.
        named = variables if VARIABLES_NAME in source else ()
        key = (source, result, tuple((name, variable.source) for name, variable in named))
        found = self._used.get(key) or self._known.get(key)
        if found is None:
            found = self._environment.compile(source, result, named)
        self._used[key] = found
        return found
