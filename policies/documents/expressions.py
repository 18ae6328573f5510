# SPDX-License-Identifier: Apache-2.0
"""CEL in documents: compiled with the variables before it, faults located in the file."""

import re
from typing import Final

from policies.cel import Expression, ExpressionError, ResultType
from policies.documents.expression_cache import ExpressionCache
from policies.documents.field import Field
from policies.documents.problems import Problem

RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if"),
        *("import", "in", "let", "loop", "namespace", "null", "package", "return", "true"),
        *("var", "void", "while"),
    )
)
"""Words that CEL keeps for itself. Source: google/cel-spec doc/langdef.md, Syntax."""


class ExpressionCompiler:
    """Compiles the expressions of one document and gathers their problems."""

    def __init__(self, cache: ExpressionCache) -> None:
        self._cache = cache
        self._variables: list[tuple[str, Expression]] = []
        self._failed: set[str] = set()
        self.problems: list[Problem] = []

    @property
    def variables(self) -> tuple[tuple[str, Expression], ...]:
        """Return the variables declared so far."""
        return tuple(self._variables)

    def declare(self, item: Field) -> None:
        """Compile a variable; expressions compiled after it may use it."""
        name = item.at("name")
        if name.text() in RESERVED:
            self.problems.append(name.problem(f"{name.text()} is a reserved word of CEL"))
        compiled = self.compile(item.at("expression"), ResultType.ANY)
        if compiled is None:
            self._failed.add(name.text())
        else:
            self._variables.append((name.text(), compiled))

    def compile(self, field: Field, result: ResultType) -> Expression | None:
        """Return the compiled expression, or None if it is missing or faulty."""
        if not field.text() or self._uses_failed(field.text()):
            return None
        try:
            return self._cache.compile(field.text(), result, self.variables)
        except ExpressionError as error:
            self.problems += [
                field.text_problem(problem.message, problem.line, problem.column)
                for problem in error.problems
            ]
            return None

    def _uses_failed(self, source: str) -> bool:
        """Tell whether the fault of a variable, which is told already, would only be repeated."""
        return any(
            re.search(rf"\bvariables\s*\.\s*\??{re.escape(name)}\b", source)
            for name in self._failed
        )
