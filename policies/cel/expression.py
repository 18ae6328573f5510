# SPDX-License-Identifier: Apache-2.0
"""What the rest of the core sees of CEL: compile, make a scope, evaluate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from policies.cel.reads import Reads


class ResultType(StrEnum):
    """What an expression must yield; anything else is a load error where it can be known."""

    BOOL = "bool"
    STRING = "string"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class ExpressionProblem:
    """A fault found at compile time; line and column count from 1 within the expression."""

    message: str
    line: int
    column: int


class ExpressionError(Exception):
    """An expression that does not compile."""

    def __init__(self, problems: Sequence[ExpressionProblem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


class EvaluationError(Exception):
    """An expression that compiled but has no value for this pod: a missing key, over budget."""


class Scope(Protocol):
    """The variables of one review, converted once and shared by all its expressions."""


class Expression(Protocol):
    """A compiled expression; safe to share between threads."""

    @property
    def source(self) -> str:
        """The text it was compiled from."""
        ...

    @property
    def uses(self) -> frozenset[str]:
        """The variables that its value depends on, such as `object` and `gpu`."""
        ...

    def evaluate(self, scope: Scope) -> object:
        """Return bool, str or plain JSON data. Raises EvaluationError; never returns an error."""
        ...


class Environment(Protocol):
    """Libraries and variables, fixed; compiles and makes scopes."""

    def compile(
        self, source: str, result: ResultType, variables: Sequence[tuple[str, Expression]] = ()
    ) -> Expression:
        """Compile and check against the Pod schema; `variables` are those declared before it.

        Raises ExpressionError with every problem found.
        """
        ...

    def reads(self, name: str) -> Reads:
        """Return what any expression compiled so far can read of a variable."""
        ...

    def scope(self, values: Mapping[str, object]) -> Scope:
        """Hold object, oldObject, request, namespaceObject, gpu and tenant of one review.

        A value may also be a function that returns it. Each is converted, once, if an expression
        uses it; one that cannot be read raises EvaluationError there.
        """
        ...
