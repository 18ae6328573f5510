# SPDX-License-Identifier: Apache-2.0
"""What can be known of an expression from its syntax tree alone, before it is checked or run."""

from collections.abc import Iterator

from policies.cel.ast import Node, Tree, walk
from policies.cel.variables import ROOTS, VARIABLES_NAME


def identifiers(tree: Tree, name: str) -> Iterator[int]:
    """Yield the offset of each place where the name stands as a variable."""
    for node in walk(tree.root):
        if node.WhichOneof("one") == "ident_expr" and node.ident_expr.name == name:
            yield tree.offsets.get(node.id, 0)


def roots(tree: Tree) -> frozenset[str]:
    """Return which of the review's variables the expression reads."""
    names = {
        node.ident_expr.name for node in walk(tree.root) if node.WhichOneof("one") == "ident_expr"
    }
    return ROOTS & names


def loop_variables(tree: Tree) -> Iterator[tuple[str, int]]:
    """Yield each name that a loop or a binding introduces, with its offset."""
    for node in walk(tree.root):
        if node.WhichOneof("one") == "comprehension_expr":
            loop = node.comprehension_expr
            offset = tree.offsets.get(node.id, 0)
            yield from ((name, offset) for name in (loop.iter_var, loop.iter_var2, loop.accu_var))


def presence_tests(tree: Tree) -> Iterator[int]:
    """Yield the offset of each `has(variables.x)`, which no variable needs."""
    for node in walk(tree.root):
        if (
            node.WhichOneof("one") == "select_expr"
            and node.select_expr.test_only
            and is_identifier(node.select_expr.operand, VARIABLES_NAME)
        ):
            yield tree.offsets.get(node.id, 0)


def is_identifier(node: Node, name: str) -> bool:
    """Tell whether the node is this name."""
    return bool(node.WhichOneof("one") == "ident_expr" and node.ident_expr.name == name)
