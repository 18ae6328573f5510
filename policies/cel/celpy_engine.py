# SPDX-License-Identifier: Apache-2.0
"""CEL on cel-python, for platforms where cel-expr-python has no wheel, and as an oracle in tests.

It is a hundred times slower, checks no types at load, and lacks optional values, two-variable
loops, `format` and `sortBy`; what it lacks is a load error that says so.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import celpy
import lark
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import Activation, CELEvalError, Evaluator

from policies.cel.celpy_checks import check, parse_problem, selected_field, unreadable
from policies.cel.celpy_functions import NAMESPACES, Namespace, functions, to_plain
from policies.cel.expression import (
    EvaluationError,
    Expression,
    ExpressionError,
    ResultType,
    Scope,
)
from policies.cel.inputs import Inputs
from policies.cel.meter import Meter, tree_size
from policies.cel.reads import Reads
from policies.cel.schema import load_schema
from policies.cel.variables import VARIABLES_NAME

_LITERALS: Final = frozenset({"list_lit", "map_lit"})
_TYPES: Final[Mapping[ResultType, type]] = {
    ResultType.BOOL: celtypes.BoolType,
    ResultType.STRING: celtypes.StringType,
}


@dataclass(frozen=True, slots=True)
class CelpyExpression:
    """One expression; its variables are expressions of their own, evaluated once in a scope."""

    source: str
    uses: frozenset[str]
    variables: Mapping[str, "CelpyExpression"]
    _environment: Any
    _tree: lark.Tree[lark.Token]
    _result: ResultType

    def evaluate(self, scope: Scope) -> object:
        """Return bool, str or plain data. Raises EvaluationError."""
        if not isinstance(scope, CelpyScope):
            raise TypeError("the scope is another engine's")
        value = self.value(scope)
        wanted = _TYPES.get(self._result, object)
        if not isinstance(value, wanted):
            raise EvaluationError(f"the value is {_type_name(value)}, not {self._result.value}")
        try:
            return to_plain(value)
        except TypeError as error:
            raise EvaluationError(str(error)) from error

    def value(self, scope: "CelpyScope") -> Any:
        """Return the engine's own value. Raises EvaluationError."""
        context = {name: scope.value(name) for name in self.uses}
        used = {name: scope.variable(item) for name, item in self.variables.items()}
        context[VARIABLES_NAME] = celtypes.MapType(
            {celtypes.StringType(name): value for name, value in used.items()}
        )
        meter = Meter()
        activation = Activation(
            annotations=self._environment.annotations, functions=functions(meter)
        )
        namespaces = {name: Namespace(name) for name in NAMESPACES}
        evaluator = _MeteredEvaluator(self._tree, activation, meter)
        try:
            return evaluator.evaluate({**namespaces, **context})
        except CELEvalError as error:
            raise EvaluationError(_reason(error)) from error
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise EvaluationError(str(error) or type(error).__name__) from error


@dataclass(frozen=True, slots=True)
class CelpyScope:
    """The variables of one review, each converted once if an expression uses it."""

    inputs: Inputs
    values: Mapping[str, object]
    _converted: dict[str, Any] = field(default_factory=dict)
    _evaluated: dict[int, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        """Return a variable of the review. Raises EvaluationError."""
        if name not in self.values:
            raise EvaluationError(f"`{name}` has no value here")
        if name not in self._converted:
            value = self.inputs.prepare(name, self.inputs.read(name, self.values[name]))
            self._converted[name] = json_to_cel(None if value is None else dict(value))
        return self._converted[name]

    def variable(self, expression: CelpyExpression) -> Any:
        """Return the value of one of the policy's variables. Raises EvaluationError."""
        key = id(expression)
        if key not in self._evaluated:
            self._evaluated[key] = expression.value(self)
        return self._evaluated[key]


class CelpyEnvironment:
    """Compiles expressions and makes scopes; safe to share between threads."""

    def __init__(self) -> None:
        limit = sys.getrecursionlimit()
        self._environment = celpy.Environment()
        sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))  # the engine sets its own
        self._inputs = Inputs(load_schema(), celtypes.TimestampType, reads_all=True)

    def compile(
        self, source: str, result: ResultType, variables: Sequence[tuple[str, Expression]] = ()
    ) -> CelpyExpression:
        """Compile; names are checked, types are not. Raises ExpressionError."""
        declared: dict[str, CelpyExpression] = {}
        for name, expression in variables:
            if not isinstance(expression, CelpyExpression):
                raise TypeError("the variable was compiled by another engine")
            declared[name] = expression
        problems = list(unreadable(source))
        if problems:
            raise ExpressionError(problems)
        try:
            tree = self._environment.compile(source)
        except CELParseError as error:
            raise ExpressionError([parse_problem(source, error)]) from error
        names = check(tree, declared.keys())
        used = {name: declared[name] for name in names.variables}
        return CelpyExpression(source, names.roots, used, self._environment, tree, result)

    def reads(self, name: str) -> Reads:
        """Return that all may be read: this engine's trees are not looked into."""
        return self._inputs.reads(name)

    def scope(self, values: Mapping[str, object]) -> CelpyScope:
        """Make the scope of one review; nothing is converted before an expression uses it."""
        return CelpyScope(self._inputs, values)


class _MeteredEvaluator(Evaluator):
    """The engine's evaluator, which counts steps and what literals and loops make."""

    def __init__(self, ast: Any, activation: Activation, meter: Meter) -> None:
        super().__init__(ast, activation)
        self._meter = meter

    def sub_evaluator(self, ast: Any) -> "_MeteredEvaluator":
        """Return the evaluator of a loop's body."""
        return _MeteredEvaluator(ast, self.activation, self._meter)

    def build_macro_eval(self, child: Any) -> Callable[[Any], Any]:
        """Return what evaluates the body of `map` and `filter` for an element."""
        return self._counted(super().build_macro_eval(child))

    def build_ss_macro_eval(self, child: Any) -> Callable[[Any], Any]:
        """Return what evaluates the body of `all` and `exists` for an element."""
        return self._counted(super().build_ss_macro_eval(child))

    def macro_has_eval(self, exprlist: Any) -> Any:
        """Tell whether a map has a key; what the map comes from must be there, as in Kubernetes."""
        owner, key = selected_field(exprlist)
        value = self.visit(owner)
        if isinstance(value, CELEvalError):
            return value
        if not isinstance(value, dict):
            return CELEvalError("no such overload", TypeError, (), tree=owner)
        return celtypes.BoolType(key in value)

    def primary(self, tree: Any) -> Any:
        """Evaluate a primary; a list or map is charged for as a whole."""
        value = super().primary(tree)
        if tree.children[0].data in _LITERALS:
            self._meter.charge(tree_size(value))
        return value

    def _counted(self, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def evaluate(element: Any) -> Any:
            self._meter.step()
            value = body(element)
            self._meter.charge(tree_size(value))
            return value

        return evaluate


def _reason(error: CELEvalError) -> str:
    """Return the words of the error that is at the bottom of one of the engine's."""
    words = error.args[0] if error.args else ""
    inner = error.args[-1] if len(error.args) > 1 else ()
    detail = ", ".join(str(part) for part in inner) if isinstance(inner, tuple) else ""
    return f"{words}: {detail}" if detail else str(words)


def _type_name(value: object) -> str:
    return type(value).__name__.removesuffix("Type").lower()
