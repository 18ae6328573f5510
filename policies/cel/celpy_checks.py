# SPDX-License-Identifier: Apache-2.0
"""What can be checked of an expression for cel-python: its syntax and its names."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import lark
from celpy.celparser import CELParseError

from policies.cel.celpy_functions import NAMES, NAMESPACES
from policies.cel.expression import ExpressionError, ExpressionProblem
from policies.cel.limits import MAX_SOURCE_LENGTH
from policies.cel.problems import missing, suggestion
from policies.cel.variables import ROOTS, VARIABLES_NAME

_Tree = lark.Tree[lark.Token]
_MACROS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
_NOT_HERE: Final = "not supported by cel-python, the engine in use"
_MACROS_THERE: Final = frozenset({"existsOne", "optFlatMap", "optMap", "sortBy", "transformList"})
_ONLY_THERE: Final = frozenset(
    {
        *("first", "format", "hasValue", "last", "none", "of", "ofNonZeroValue", "optional"),
        *("or", "orValue", "value", *_MACROS_THERE),
    }
)
_CONSTANTS: Final = frozenset({"bool", "bytes", "double", "int", "list", "map", "string", "uint"})


@dataclass(frozen=True, slots=True)
class Names:
    """What an expression reads: variables of the review, and of the policy."""

    roots: frozenset[str]
    variables: frozenset[str]


def unreadable(source: str) -> Iterator[ExpressionProblem]:
    """Find what makes a text not worth parsing."""
    if len(source) > MAX_SOURCE_LENGTH:
        yield ExpressionProblem(f"longer than {MAX_SOURCE_LENGTH} characters", 1, 1)


def parse_problem(source: str, error: CELParseError) -> ExpressionProblem:
    """Return a syntax error with its place; optional syntax is not known to the parser."""
    line, column = max(error.line or 1, 1), max(error.column or 1, 1)
    if ".?" in source or "[?" in source or "{?" in source:
        return ExpressionProblem(f"syntax error; optional values are {_NOT_HERE}", line, column)
    return ExpressionProblem("syntax error", line, column)


def check(tree: _Tree, declared: Collection[str]) -> Names:
    """Check every name in a tree. Raises ExpressionError with all that are unknown."""
    variables = dict(_variables(tree))
    loops = {str(name) for name, _ in _loops(tree)}
    idents = {str(token): token for token in _tokens(tree, "ident")}
    known = {*ROOTS, *NAMESPACES, *_CONSTANTS, VARIABLES_NAME, *loops}
    problems = [
        *_unknown(idents, known, "there is no"),
        *_unknown(variables, declared, "there is no variable"),
        *_calls(tree),
        *(
            _problem(name, f"a loop may not name its variable `{name}`")
            for name, _ in _loops(tree)
            if str(name) in {*ROOTS, VARIABLES_NAME}
        ),
    ]
    if problems:
        raise ExpressionError(problems)
    return Names(ROOTS & idents.keys(), frozenset(variables))


def selected_field(tree: _Tree) -> tuple[_Tree, str]:
    """Return the `a.b` and `c` of `has(a.b.c)`. Raises LookupError if the argument selects none."""
    node: _Tree | lark.Token = tree
    while isinstance(node, lark.Tree) and len(node.children) == 1:
        node = node.children[0]
    if isinstance(node, lark.Tree) and node.data == "member_dot":
        owner, key = node.children
        if isinstance(owner, lark.Tree):
            return owner, str(key)
    raise LookupError("has() takes a field, such as has(object.spec.nodeName)")


def _unknown(
    names: dict[str, lark.Token], known: Collection[str], words: str
) -> Iterator[ExpressionProblem]:
    for name, token in names.items():
        if name in known:
            continue
        close = suggestion(name, list(known))
        reason = f"`{name}` is {_NOT_HERE}" if name in _ONLY_THERE else missing(name)
        yield _problem(token, reason or f"{words} `{name}`{close}")


def _calls(tree: _Tree) -> Iterator[ExpressionProblem]:
    """Find calls of functions that this engine lacks."""
    for token in (*_tokens(tree, "ident_arg"), *_tokens(tree, "member_dot_arg")):
        name = str(token)
        if name in _ONLY_THERE:
            yield _problem(token, f"`{name}` is {_NOT_HERE}")
        elif name == "has":
            yield from _misused_has(tree, token)
        elif name not in NAMES | _MACROS | {"dyn"}:
            yield _problem(token, missing(name) or f"there is no `{name}`")
    for token, arguments in _loops(tree, whole=True):
        if arguments != 2:  # noqa: PLR2004 - a loop's variable and its body
            yield _problem(token, f"`{token}` with {arguments} arguments is {_NOT_HERE}")


def _misused_has(tree: _Tree, token: lark.Token) -> Iterator[ExpressionProblem]:
    for node in tree.find_data("ident_arg"):
        if node.children[0] is token:
            arguments = [child for child in node.children[1:] if isinstance(child, lark.Tree)]
            try:
                selected_field(arguments[0] if arguments else lark.Tree("exprlist", []))
            except LookupError as error:
                yield _problem(token, str(error))


def _tokens(tree: _Tree, rule: str) -> Iterator[lark.Token]:
    """Yield the name in each node of a rule."""
    for node in tree.find_data(rule):
        yield from (child for child in node.children if isinstance(child, lark.Token))


def _loops(tree: _Tree, *, whole: bool = False) -> Iterator[tuple[lark.Token, int]]:
    """Yield each loop's variables, or with `whole` its macro, with its count of arguments."""
    for node in tree.find_data("member_dot_arg"):
        macro, arguments = node.children[1], node.children[2:]
        parts = arguments[0].children if arguments and isinstance(arguments[0], lark.Tree) else []
        if whole and isinstance(macro, lark.Token) and str(macro) in _MACROS:
            yield macro, len(parts)
        elif not whole and str(macro) in _MACROS | _MACROS_THERE:
            for part in parts[:-1]:
                if isinstance(part, lark.Tree):
                    yield from ((name, len(parts)) for name in _tokens(part, "ident"))


def _variables(tree: _Tree) -> Iterator[tuple[str, lark.Token]]:
    """Yield each name in `variables.<name>`."""
    for node in tree.find_data("member_dot"):
        owner, name = node.children
        if isinstance(name, lark.Token) and isinstance(owner, lark.Tree):
            owners = [str(token) for token in _tokens(owner, "ident")]
            if owners == [VARIABLES_NAME] and not list(owner.find_data("member_dot")):
                yield str(name), name


def _problem(token: lark.Token, message: str) -> ExpressionProblem:
    return ExpressionProblem(message, token.line or 1, token.column or 1)
