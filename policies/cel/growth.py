# SPDX-License-Identifier: Apache-2.0
"""How much larger than its parts a value can get that an expression builds.

Lists and maps hold references, so `[a, a]` costs nothing where it is built and twice `a` where it
is compared or leaves the engine; chained, that doubles each time and no loop is needed. What a
runtime charge cannot see is therefore counted here, from the tree, before anything runs.
"""

from collections.abc import Mapping
from typing import Final

from policies.cel.ast import Node, children, is_empty_list
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


def copies(root: Node) -> float:
    """Return how many copies of its largest part a value can hold that is made on the way."""
    counter = _Counter()
    counter.count(root, {})
    return counter.largest


class _Counter:
    """Counts copies, whole trees of values counted; remembers the largest count of all."""

    def __init__(self) -> None:
        self.largest: float = 0

    def count(self, node: Node, known: Mapping[str, float]) -> float:
        """Return a value's count; `known` are those of the variables in scope, 1 if not there."""
        found = self._of(node, known)
        self.largest = max(self.largest, found)
        return found

    def _of(self, node: Node, known: Mapping[str, float]) -> float:
        match node.WhichOneof("one"):
            case "ident_expr":
                return known.get(node.ident_expr.name, 1)
            case "select_expr":
                count = self.count(node.select_expr.operand, known)
                return _FRESH if node.select_expr.test_only else count
            case "call_expr":
                return self._of_call(node, known)
            case "comprehension_expr":
                return self._of_loop(node, known)
            case "list_expr" | "struct_expr":
                return sum(self.count(child, known) for child in children(node))
        return _FRESH

    def _of_call(self, node: Node, known: Mapping[str, float]) -> float:
        name, arguments = called(node)
        counts = [self.count(argument, known) for argument in arguments]
        if name in _SCALAR_RESULTS:
            return _FRESH
        if name == "_?_:_":
            return max(counts[1:])
        if name in _PARTS_OF_FIRST:
            return counts[0]
        return sum(counts)

    def _of_loop(self, node: Node, known: Mapping[str, float]) -> float:
        """Count a loop's result: each step adds its element's share and all that it brings along.

        A binding is a loop over nothing, whose result alone matters.
        """
        loop = node.comprehension_expr
        gathered = self.count(loop.accu_init, known)
        if is_empty_list(loop.iter_range):
            return self.count(loop.result, {**known, loop.accu_var: _named(gathered)})
        ranged = self.count(loop.iter_range, known)
        added = self._step(loop, known, _named(ranged), gathered)
        brought = self._step(loop, known, 0, gathered)
        total = gathered + added + (_NOMINAL_STEPS - 1) * brought
        return self.count(loop.result, {**known, loop.accu_var: total})

    def _step(
        self, loop: Node, known: Mapping[str, float], element: float, gathered: float
    ) -> float:
        inner = {loop.iter_var: element, loop.iter_var2: element, loop.accu_var: gathered}
        return max(0, self.count(loop.loop_step, {**known, **inner}) - gathered)


def _named(count: float) -> float:
    """Return the count of a value that has a name, by which it can be taken more than once."""
    return max(1, count) if count else 0
