# SPDX-License-Identifier: Apache-2.0
"""What can be known of an expression from its syntax tree alone, before it is checked or run."""

from collections.abc import Iterator, Mapping
from typing import Final

from policies.cel.ast import Node, Tree, children
from policies.cel.variables import ROOTS, VARIABLES_NAME

_PARSING_FUNCTIONS: Final = frozenset({"duration", "timestamp", "quantity", "matches"})
_OPTIONAL_FUNCTIONS: Final = frozenset(
    {
        *("_?._", "_[?_]", "_[_]", "_==_", "_!=_", "or", "hasValue", "value"),
    }
)


def identifiers(tree: Tree, name: str) -> Iterator[int]:
    """Yield the offset of each place where the name stands as a variable."""
    for kind, node in tree.nodes:
        if kind == "ident_expr" and node.ident_expr.name == name:
            yield tree.offsets.get(node.id, 0)


def roots(tree: Tree) -> frozenset[str]:
    """Return which of the review's variables the expression reads."""
    return ROOTS & {node.ident_expr.name for kind, node in tree.nodes if kind == "ident_expr"}


def loop_variables(tree: Tree) -> Iterator[tuple[str, int]]:
    """Yield each name that a loop or a binding introduces, with its offset."""
    for kind, node in tree.nodes:
        if kind == "comprehension_expr":
            loop = node.comprehension_expr
            offset = tree.offsets.get(node.id, 0)
            yield from ((name, offset) for name in (loop.iter_var, loop.iter_var2, loop.accu_var))


def presence_tests(tree: Tree) -> Iterator[int]:
    """Yield the offset of each `has(variables.x)`, which no variable needs."""
    for kind, node in tree.nodes:
        if (
            kind == "select_expr"
            and node.select_expr.test_only
            and is_identifier(node.select_expr.operand, VARIABLES_NAME)
        ):
            yield tree.offsets.get(node.id, 0)


def literal_calls(tree: Tree) -> Iterator[tuple[Node, int]]:
    """Yield each call whose text argument is written out and must be well formed, and its offset.

    Kubernetes checks durations, timestamps and patterns like that at load; quantities are added.
    """
    for kind, node in tree.nodes:
        if kind != "call_expr":
            continue
        call = node.call_expr
        if call.function in _PARSING_FUNCTIONS and len(call.args) == 1:
            argument = call.args[0]
            if argument.const_expr.WhichOneof("one") == "string_value":
                yield node, tree.offsets.get(argument.id, 0)


def calls(tree: Tree, functions: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield what each call of these functions stands for, with its offset."""
    for kind, node in tree.nodes:
        meaning = functions.get(node.call_expr.function) if kind == "call_expr" else None
        if meaning is not None:
            yield meaning, tree.offsets.get(node.id, 0)


def is_identifier(node: Node, name: str) -> bool:
    """Tell whether the node is this name."""
    return bool(node.WhichOneof("one") == "ident_expr" and node.ident_expr.name == name)


def optional_misuses(tree: Tree) -> Iterator[int]:
    """Yield the offset of each optional value that goes where the engine cannot have one.

    Only its own functions know optional values; handed to a function of ours, or put into a list,
    one would end the process. The tree must be a checked one.
    """
    optional = {key for key, kind in tree.types.items() if _is_optional(kind)}
    for kind, node in tree.nodes if optional else ():
        for part in _plain_places(kind, node, known_optional=node.id in optional):
            if part.id in optional:
                yield tree.offsets.get(part.id, 0)


def _plain_places(kind: str | None, node: Node, *, known_optional: bool) -> Iterator[Node]:
    """Yield the parts of a node that must not be optional values."""
    match kind:
        case "call_expr" if node.call_expr.function == "_?_:_":
            yield from () if known_optional else node.call_expr.args
        case "call_expr" if node.call_expr.function == "orValue":
            yield from node.call_expr.args
        case "call_expr" if node.call_expr.function not in _OPTIONAL_FUNCTIONS:
            yield from children(node)
        case "list_expr":
            optional = set(node.list_expr.optional_indices)
            yield from (
                element
                for index, element in enumerate(node.list_expr.elements)
                if index not in optional
            )
        case "struct_expr":
            yield from (
                entry.value for entry in node.struct_expr.entries if not entry.optional_entry
            )


def _is_optional(kind: Node) -> bool:
    return bool(
        kind.WhichOneof("one") == "abstract_type" and kind.abstract_type.name == "optional_type"
    )
