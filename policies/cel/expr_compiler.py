# SPDX-License-Identifier: Apache-2.0
"""How cel-expr-python compiles an expression of Sluice: read, check, bound, make ready to run.

1. The author's text is read alone, to find its variables and what cannot be known of types.
2. With the variables it uses at its head it is checked against the types of all variables.
3. The same text, without types, is given its charges (`guard.py`) and becomes the program.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from google.protobuf.message import DecodeError

from policies.cel import analysis
from policies.cel.ast import Node, Tree, read_tree, write_tree
from policies.cel.budget import Budget
from policies.cel.compose import Part, bound_name, compose, replace_uses
from policies.cel.expr_environments import (
    checking_environment,
    evaluating_environment,
    reading_environment,
)
from policies.cel.expr_values import error_text, is_error
from policies.cel.expression import ExpressionError, ExpressionProblem, ResultType
from policies.cel.growth import copies
from policies.cel.guard import Guard
from policies.cel.limits import MAX_COPIES, MAX_DEPTH, MAX_OPTIONAL_MAPS, MAX_SOURCE_LENGTH
from policies.cel.problems import Reporter, missing, suggestion, type_text
from policies.cel.reads import Reads, reads_of
from policies.cel.schema import Schema
from policies.cel.unsupported import MACRO_CALLS
from policies.cel.variables import ROOTS, VARIABLES_NAME

_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels, each variable in use being one"
_OPTIONAL_MAP: Final = re.compile(r"\bopt(?:Flat)?Map\b")
_DEPTH_REPORT: Final = re.compile(r"recursion (?:limit|depth)")
_TYPES: Final[Mapping[ResultType, frozenset[str]]] = {
    ResultType.BOOL: frozenset({"BOOL", "DYN"}),
    ResultType.STRING: frozenset({"STRING", "DYN"}),
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the engine runs, what of the review's variables it reads, and whether it charges."""

    program: Any
    uses: frozenset[str]
    reads: Mapping[str, Reads]
    charges: bool
    part: Part


class Compiler:
    """The engine's environments, made once; safe to share between threads."""

    def __init__(self, schema: Schema, budget: Budget) -> None:
        self._reporter = Reporter(schema)
        self._reading = reading_environment()
        self._checking = checking_environment(schema)
        self.evaluating = evaluating_environment(budget.charge)
        self._guard = Guard(self._parse_template)

    def compile(self, source: str, result: ResultType, parts: Mapping[str, Part]) -> Compiled:
        """Compile an expression after its variables. Raises ExpressionError."""
        part, parsed = self._read(source, parts)
        text, skipped_lines = compose(part, parts)
        names = (*sorted(ROOTS), *(f"{VARIABLES_NAME}.{name}" for name in parts))
        checked = self._run(self._checking, text, names, skipped_lines)
        found = checked.return_type().name()
        if found not in _TYPES.get(result, {found}):
            message = f"yields {type_text(found)}, not {result.value}"
            raise ExpressionError([ExpressionProblem(message, 1, 1)])
        tree = _tree(checked)
        _refuse(_unsafe(text, tree, skipped_lines))
        if part.uses:  # else the text is the author's, and so is its tree
            parsed = _tree(self.evaluating.compile(text, disable_check=True))
        program, charges = self._program(parsed, tree)
        uses = analysis.roots(tree)
        return Compiled(program, uses, reads_of(tree.root, uses), charges, part)

    def _read(self, source: str, parts: Mapping[str, Part]) -> tuple[Part, Tree]:
        """Find what the text uses of `variables`, and faults that need no types."""
        _refuse(_unreadable(source))
        tree = _tree(self._run(self._reading, source, (), checked=False))
        offsets = sorted(set(analysis.identifiers(tree, VARIABLES_NAME)))
        part, strays = replace_uses(source, offsets)
        _refuse(
            [
                *_misused_variables(source, tree, part, strays, parts),
                *_unsupported_macros(source, tree),
                *self._malformed_literals(source, tree),
            ]
        )
        return part, tree

    def _program(self, tree: Tree, checked: Tree) -> tuple[Any, bool]:
        """Return the program for a tree, which gets its charges, and whether it needs any."""
        try:
            charges = self._guard.rewrite(tree, checked)
            return self.evaluating.deserialize(write_tree(tree.root)), charges
        except (DecodeError, RuntimeError) as error:  # protobuf bounds the depth of messages
            raise ExpressionError([ExpressionProblem(_TOO_DEEP, 1, 1)]) from error

    def _malformed_literals(self, source: str, tree: Tree) -> Iterator[ExpressionProblem]:
        """Run each call that parses a literal, for its error."""
        for call, offset in analysis.literal_calls(tree):
            alone = _on_empty_text(call)
            value = self.evaluating.deserialize(write_tree(alone)).eval()
            if is_error(value):
                yield _problem_at(source, offset, error_text(value.value()))

    def _run(
        self,
        environment: Any,
        text: str,
        names: Sequence[str],
        skipped_lines: int = 0,
        *,
        checked: bool = True,
    ) -> Any:
        """Have an environment compile a text; its report becomes an ExpressionError."""
        try:
            return environment.compile(text, disable_check=not checked)
        except Exception as error:  # the engine raises whatever its C++ throws
            report = str(error)
            if _DEPTH_REPORT.search(report):
                raise ExpressionError([ExpressionProblem(_TOO_DEEP, 1, 1)]) from error
            problems = self._reporter.problems(report, text, names, skipped_lines)
            raise ExpressionError(problems) from error

    def _parse_template(self, text: str) -> Node:
        return read_tree(self.evaluating.compile(text, disable_check=True).serialize()).root


def _tree(expression: Any) -> Tree:
    """Read an expression's tree. Raises ExpressionError where protobuf refuses its depth."""
    try:
        return read_tree(expression.serialize())
    except DecodeError as error:
        raise ExpressionError([ExpressionProblem(_TOO_DEEP, 1, 1)]) from error


def _unreadable(source: str) -> Iterator[ExpressionProblem]:
    if len(source) > MAX_SOURCE_LENGTH:
        yield ExpressionProblem(f"longer than {MAX_SOURCE_LENGTH} characters", 1, 1)
    if len(_OPTIONAL_MAP.findall(source)) > MAX_OPTIONAL_MAPS:
        message = f"uses optMap or optFlatMap more than {MAX_OPTIONAL_MAPS} times"
        yield ExpressionProblem(message, 1, 1)
    for offset, character in enumerate(source):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            yield _problem_at(source, offset, "not a character of text")


def _on_empty_text(call: Node) -> Node:
    """Return a copy of a call that stands alone: its receiver, if it has one, is empty."""
    alone = type(call)()
    alone.call_expr.function = call.call_expr.function
    alone.call_expr.args.add().CopyFrom(call.call_expr.args[0])
    if call.call_expr.HasField("target"):
        alone.call_expr.target.const_expr.string_value = ""
    return alone


def _misused_variables(
    source: str, tree: Tree, part: Part, strays: Sequence[int], parts: Mapping[str, Part]
) -> Iterator[ExpressionProblem]:
    """Find uses of variables that cannot be compiled in, each with its place."""
    for offset in strays:
        yield _problem_at(source, offset, "write `variables.<name>`: the whole has no value")
    for offset in analysis.presence_tests(tree):
        start = max(source.rfind("has", 0, offset), 0)
        yield _problem_at(source, start, "a variable is always there: leave has() out")
    for name in sorted(part.uses - parts.keys()):
        offset = source.index(f"{VARIABLES_NAME}.{name}")
        close = suggestion(name, list(parts))
        yield _problem_at(source, offset, f"there is no variable `{name}`{close}")
    taken = {*ROOTS, VARIABLES_NAME, *map(bound_name, part.uses)}
    for name, offset in analysis.loop_variables(tree):
        if name in taken:
            start = max(source.find(name, offset), offset)
            yield _problem_at(source, start, f"a loop may not name its variable `{name}`")


def _unsupported_macros(source: str, tree: Tree) -> Iterator[ExpressionProblem]:
    """Find macros that are there for the engine or for variables, not for authors."""
    for offset in analysis.identifiers(tree, "cel"):
        yield _problem_at(source, offset, "there is no `cel`: use `variables`")
    for macro, offset in analysis.calls(tree, MACRO_CALLS):
        start = max(source.rfind(macro, 0, offset + 1), 0)
        name = "".join(takewhile(str.isidentifier, source[start:]))
        yield _problem_at(source, start, missing(name))


def _unsafe(text: str, tree: Tree, skipped_lines: int) -> Iterator[ExpressionProblem]:
    """Find what must not reach the runtime; the tree is the checked one of the whole text."""
    for offset in analysis.optional_misuses(tree):
        problem = _problem_at(text, offset, "an optional value cannot go here: use orValue()")
        line = max(problem.line - skipped_lines, 1)
        yield ExpressionProblem(problem.message, line, problem.column)
    if copies(tree.root) > MAX_COPIES:
        message = f"builds a value that may hold another more than {MAX_COPIES} times"
        yield ExpressionProblem(message, 1, 1)


def _refuse(problems: Iterator[ExpressionProblem] | list[ExpressionProblem]) -> None:
    found = dict.fromkeys(problems)
    if found:
        raise ExpressionError(list(found))


def _problem_at(source: str, offset: int, message: str) -> ExpressionProblem:
    """Return a problem at a code point of the text."""
    before = source[:offset]
    return ExpressionProblem(message, before.count("\n") + 1, offset - before.rfind("\n"))
