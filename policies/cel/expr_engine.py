# SPDX-License-Identifier: Apache-2.0
"""CEL on cel-expr-python, the CEL project's own runtime: the engine that is used by default.

An expression is compiled twice: against the types of the variables, to find what is wrong with
it, and without types, to evaluate it on the JSON of a review.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policies.cel import analysis
from policies.cel.ast import Tree, read_tree
from policies.cel.compose import Part, bound_name, compose, replace_uses
from policies.cel.expr_environments import (
    checking_environment,
    evaluating_environment,
    reading_environment,
)
from policies.cel.expr_scope import ReviewScope
from policies.cel.expr_values import error_text, keep_none_alive, parse_timestamp, to_result
from policies.cel.expression import (
    EvaluationError,
    Expression,
    ExpressionError,
    ExpressionProblem,
    ResultType,
    Scope,
)
from policies.cel.inputs import Inputs
from policies.cel.limits import MAX_ITERATIONS, MAX_SOURCE_LENGTH
from policies.cel.problems import Reporter, suggestion, type_text
from policies.cel.schema import load_schema
from policies.cel.variables import ROOTS, VARIABLES_NAME

_BUDGET: Final = "Iteration budget exceeded"
_TYPES: Final[Mapping[ResultType, frozenset[str]]] = {
    ResultType.BOOL: frozenset({"BOOL", "DYN"}),
    ResultType.STRING: frozenset({"STRING", "DYN"}),
}


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """One expression, with the variables that it uses compiled into it."""

    source: str
    uses: frozenset[str]
    part: Part
    parts: Mapping[str, Part]
    _program: Any
    _result: ResultType

    def evaluate(self, scope: Scope) -> object:
        """Return bool, str or plain data. Raises EvaluationError."""
        if not isinstance(scope, ReviewScope):
            raise TypeError("the scope is another engine's")
        activation = scope.activation(self.uses)
        try:
            value = self._program.eval(activation)
        except Exception as error:  # the engine raises what its C++ throws
            raise EvaluationError(_raised(error)) from error
        return to_result(value, self._result)


class ExprEnvironment:
    """Compiles expressions and makes scopes; safe to share between threads."""

    def __init__(self) -> None:
        keep_none_alive()
        schema = load_schema()
        self._reporter = Reporter(schema)
        self._inputs = Inputs(schema, parse_timestamp)
        self._reading = reading_environment()
        self._checking = checking_environment(schema)
        self._evaluating = evaluating_environment()

    def compile(
        self, source: str, result: ResultType, variables: Sequence[tuple[str, Expression]] = ()
    ) -> CompiledExpression:
        """Compile and check; `variables` are those declared before. Raises ExpressionError."""
        parts = _parts(variables)
        part = self._read(source, parts)
        text, skipped_lines = compose(part, parts)
        names = (*sorted(ROOTS), *(f"{VARIABLES_NAME}.{name}" for name in parts))
        checked = self._compile(self._checking, text, names, skipped_lines)
        found = checked.return_type().name()
        if found not in _TYPES.get(result, {found}):
            problem = ExpressionProblem(f"yields {type_text(found)}, not {result.value}", 1, 1)
            raise ExpressionError([problem])
        program = self._compile(self._evaluating, text, names, skipped_lines, checked=False)
        uses = analysis.roots(read_tree(program.serialize()))
        return CompiledExpression(source, uses, part, parts, program, result)

    def scope(self, values: Mapping[str, object]) -> ReviewScope:
        """Make the scope of one review; nothing is converted before an expression uses it."""
        return ReviewScope(self._evaluating, self._inputs, values)

    def _read(self, source: str, parts: Mapping[str, Part]) -> Part:
        """Find what the text uses of `variables`. Raises ExpressionError."""
        if len(source) > MAX_SOURCE_LENGTH:
            message = f"longer than {MAX_SOURCE_LENGTH} characters"
            raise ExpressionError([ExpressionProblem(message, 1, 1)])
        read = self._compile(self._reading, source, (), checked=False)
        tree = read_tree(read.serialize())
        part, strays = replace_uses(source, tuple(set(analysis.identifiers(tree, VARIABLES_NAME))))
        problems = list(_misuses(source, tree, part, strays, parts))
        if problems:
            raise ExpressionError(problems)
        return part

    def _compile(
        self,
        environment: Any,
        text: str,
        names: Sequence[str],
        skipped_lines: int = 0,
        *,
        checked: bool = True,
    ) -> Any:
        try:
            return environment.compile(text, disable_check=not checked)
        except Exception as error:  # the engine raises RuntimeError, and what its C++ throws
            problems = self._reporter.problems(str(error), text, names, skipped_lines)
            raise ExpressionError(problems) from error


def _parts(variables: Sequence[tuple[str, Expression]]) -> dict[str, Part]:
    parts = {}
    for name, expression in variables:
        if not isinstance(expression, CompiledExpression):
            raise TypeError("the variable was compiled by another engine")
        parts[name] = expression.part
    return parts


def _misuses(
    source: str, tree: Tree, part: Part, strays: Sequence[int], parts: Mapping[str, Part]
) -> Iterator[ExpressionProblem]:
    """Find uses of variables that cannot be compiled in, each with its place."""
    for offset in strays:
        yield problem_at(source, offset, "write `variables.<name>`: the whole has no value")
    for offset in analysis.presence_tests(tree):
        start = max(source.rfind("has", 0, offset), 0)
        yield problem_at(source, start, "a variable is always there: leave has() out")
    for name in sorted(part.uses - parts.keys()):
        offset = source.index(f"{VARIABLES_NAME}.{name}")
        close = suggestion(name, list(parts))
        yield problem_at(source, offset, f"there is no variable `{name}`{close}")
    taken = {*ROOTS, VARIABLES_NAME, *map(bound_name, part.uses)}
    for name, offset in analysis.loop_variables(tree):
        if name in taken:
            start = max(source.find(name, offset), offset)
            yield problem_at(source, start, f"a loop may not name its variable `{name}`")


def problem_at(source: str, offset: int, message: str) -> ExpressionProblem:
    """Return a problem at a code point of the text."""
    before = source[:offset]
    return ExpressionProblem(message, before.count("\n") + 1, offset - before.rfind("\n"))


def _raised(error: Exception) -> str:
    if _BUDGET in str(error):
        return f"loops more than {MAX_ITERATIONS} times"
    return error_text(str(error)) or type(error).__name__
