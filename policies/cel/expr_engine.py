# SPDX-License-Identifier: Apache-2.0
"""CEL on cel-expr-python, the CEL project's own runtime: the engine that is used by default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policies.cel.budget import Budget, BudgetError, OverBudget
from policies.cel.compose import Part
from policies.cel.expr_compiler import Compiled, Compiler
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
from policies.cel.memo import Memo
from policies.cel.reads import Reads
from policies.cel.rehearsal import CONTAINERS, large_review
from policies.cel.schema import load_schema

_TOO_MANY_STEPS: Final = "Iteration budget exceeded"
_REHEARSALS_PER_SCOPE: Final = 400


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """One expression, with the variables that it uses compiled into it."""

    source: str
    uses: frozenset[str]
    part: Part
    _program: Any
    _result: ResultType
    _budget: Budget | None
    _names: tuple[str, ...]
    _memo: Memo = field(default_factory=Memo, compare=False, repr=False)

    def evaluate(self, scope: Scope) -> object:
        """Return bool, str or plain data. Raises EvaluationError."""
        if not isinstance(scope, ReviewScope):
            raise TypeError("the scope is another engine's")
        key = scope.key(self._names)
        value: object = self._memo.get(key)
        if value is None:
            value = to_result(self.run(scope), self._result)
            self._memo.add(key, value)
        return value

    def run(self, scope: ReviewScope) -> Any:
        """Return the engine's own value, which may be an error. Raises EvaluationError."""
        activation = scope.activation(self.uses)
        if self._budget is not None:
            self._budget.reset()
        try:
            return self._program.eval(activation)
        except Exception as error:  # the engine raises whatever its C++ throws
            raise _evaluation_error(error) from error


class ExprEnvironment:
    """Compiles expressions and makes scopes; safe to share between threads."""

    def __init__(self) -> None:
        keep_none_alive()
        schema = load_schema()
        self._budget = Budget()
        self._compiler = Compiler(schema, self._budget)
        self._inputs = Inputs(schema, parse_timestamp)
        # A rehearsal's scope is older than the next expression, so it holds everything.
        self._whole_inputs = Inputs(schema, parse_timestamp, reads_all=True)
        self._large_review = large_review(schema)
        self._rehearsals = 0

    def compile(
        self, source: str, result: ResultType, variables: Sequence[tuple[str, Expression]] = ()
    ) -> CompiledExpression:
        """Compile and check; `variables` are those declared before. Raises ExpressionError."""
        compiled: Compiled = self._compiler.compile(source, result, _parts(variables))
        self._inputs.expect(compiled.reads)
        budget = self._budget if compiled.charges else None
        expression = CompiledExpression(
            source,
            compiled.uses,
            compiled.part,
            compiled.program,
            result,
            budget,
            tuple(sorted(compiled.uses)),
        )
        self._rehearse(expression)
        return expression

    def _rehearse(self, expression: CompiledExpression) -> None:
        """Run an expression on a large pod; its budget must suffice. Raises ExpressionError."""
        if self._rehearsals % _REHEARSALS_PER_SCOPE == 0:  # a scope keeps what was made in it
            self._stage = self._scope(self._large_review, self._whole_inputs)
        self._rehearsals += 1
        try:
            expression.run(self._stage)
        except BudgetError as error:
            message = f"{error} for a pod of {CONTAINERS} containers"
            raise ExpressionError([ExpressionProblem(message, 1, 1)]) from error
        except EvaluationError:  # what the made-up values lack, a pod may have
            return

    def reads(self, name: str) -> Reads:
        """Return what any expression compiled so far can read of a variable."""
        return self._inputs.reads(name)

    def scope(self, values: Mapping[str, object]) -> ReviewScope:
        """Make the scope of one review; nothing is converted before an expression uses it."""
        return self._scope(values, self._inputs)

    def _scope(self, values: Mapping[str, object], inputs: Inputs) -> ReviewScope:
        return ReviewScope(self._compiler.evaluating, inputs, values)


def _parts(variables: Sequence[tuple[str, Expression]]) -> dict[str, Part]:
    parts = {}
    for name, expression in variables:
        if not isinstance(expression, CompiledExpression):
            raise TypeError("the variable was compiled by another engine")
        parts[name] = expression.part
    return parts


def _evaluation_error(error: Exception) -> EvaluationError:
    text = str(error)
    if _TOO_MANY_STEPS in text:
        return BudgetError.steps()
    if OverBudget.__name__ in text:
        return BudgetError.units()
    return EvaluationError(error_text(text) or type(error).__name__)
