# SPDX-License-Identifier: Apache-2.0
"""How much larger than its parts a value can get that an expression builds.

Lists and maps hold references, so `[a, a]` costs nothing where it is built and twice `a` where it
is compared or leaves the engine; chained, that doubles each time and no loop is needed. What a
runtime charge cannot see is therefore counted here, from the tree, before anything runs.
"""

from collections.abc import Mapping
from typing import Final

from policies.cel.ast import Node, children
from policies.cel.guard import called

_NOMINAL_STEPS: Final = 50
"""Steps that a loop is taken to make: a pod of 50 containers is a large one."""

_FRESH: Final = 1e-9
"""What is written out, or computed anew, is bounded by the text and the number of steps."""

_PARTS_OF_FIRST: Final = frozenset({"_[_]", "_[?_]", "_?._"})
_SCALAR_RESULTS: Final = frozenset(
    {
        *("_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"),
        *("@not_strictly_false", "_-_", "_*_", "_/_", "_%_", "-_", "size", "has"),
        *("startsWith", "endsWith", "contains", "matches", "indexOf", "lastIndexOf", "includes"),
        *("hasValue", "sets.contains", "sets.intersects", "sets.equivalent", "isSorted"),
        *("int", "uint", "double", "bool", "type", "timestamp", "duration", "quantity"),
    }
)


def copies(node: Node, known: Mapping[str, float] | None = None) -> float:
    """Return how many copies of the largest part the value can hold, whole tree counted.

    `known` are the counts of the variables in scope; one that is not known counts 1.
    """
    known = known or {}
    match node.WhichOneof("one"):
        case "ident_expr":
            return known.get(node.ident_expr.name, 1)
        case "select_expr":
            return _FRESH if node.select_expr.test_only else copies(node.select_expr.operand, known)
        case "call_expr":
            return _of_call(node, known)
        case "comprehension_expr":
            return _of_loop(node, known)
        case "list_expr" | "struct_expr":
            return sum(copies(child, known) for child in children(node))
    return _FRESH


def _of_call(node: Node, known: Mapping[str, float]) -> float:
    name, arguments = called(node)
    if name in _SCALAR_RESULTS:
        return _FRESH
    counts = [copies(argument, known) for argument in arguments]
    if name == "_?:_":
        return max(counts[1:])
    if name in _PARTS_OF_FIRST:
        return counts[0]
    return sum(counts)


def _of_loop(node: Node, known: Mapping[str, float]) -> float:
    """Count a loop's result: each step adds its element's share and all that it brings along.

    A binding is a loop over nothing, whose result alone matters.
    """
    loop = node.comprehension_expr
    gathered = copies(loop.accu_init, known)
    if loop.iter_range.WhichOneof("one") == "list_expr" and not loop.iter_range.list_expr.elements:
        return copies(loop.result, {**known, loop.accu_var: _named(gathered)})
    ranged = copies(loop.iter_range, known)
    added = _step(loop, known, _named(ranged), gathered)
    brought = _step(loop, known, 0, gathered)
    total = gathered + added + (_NOMINAL_STEPS - 1) * brought
    return copies(loop.result, {**known, loop.accu_var: total})


def _step(loop: Node, known: Mapping[str, float], element: float, gathered: float) -> float:
    inner = {loop.iter_var: element, loop.iter_var2: element, loop.accu_var: gathered}
    return max(0, copies(loop.loop_step, {**known, **inner}) - gathered)


def _named(count: float) -> float:
    """Return the count of a value that has a name, by which it can be taken more than once."""
    return max(1, count) if count else 0
