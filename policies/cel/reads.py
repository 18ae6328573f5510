# SPDX-License-Identifier: Apache-2.0
"""Which parts of a variable an expression can read, so that nothing else is converted for it.

Converting a whole pod for the engine costs more than all expressions of a review together, and
most of a pod is read by none. Found from the syntax tree, always erring towards more: whatever is
passed on, compared or returned as a whole is read as a whole.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from policies.cel.ast import Node, children, is_empty_list

ELEMENTS: Final = "\0"
"""Stands for every element of a list, or every value of a map; no JSON key of Kubernetes."""

Reads: TypeAlias = "dict[str, Reads] | None"
"""Fields to what is read below them; None where all of it is."""

_Path: TypeAlias = tuple[str, ...]
_INDEXING: Final = frozenset({"_[_]", "_[?_]", "_?._"})


def reads_of(root: Node, names: Iterable[str]) -> Mapping[str, Reads]:
    """Return what is read of each variable of these names; an empty dict if nothing is."""
    places = {name: (name,) for name in names}
    found = _Found()
    found.visit(root, places)
    return {name: found.reads.get(name, {}) for name in places}


def merged(one: Reads, other: Reads) -> Reads:
    """Return what either reads."""
    if one is None or other is None:
        return None
    result = dict(one)
    for key, below in other.items():
        result[key] = merged(result[key], below) if key in result else below
    return result


def pruned(value: Any, reads: Reads) -> Any:
    """Return the value without what is not read; lists keep their length, fields their order."""
    if reads is None:
        return value
    if isinstance(value, dict):
        if ELEMENTS not in reads:
            return {key: pruned(item, reads[key]) for key, item in value.items() if key in reads}
        if len(reads) > 1:
            return value
        return {key: pruned(item, reads[ELEMENTS]) for key, item in value.items()}
    if isinstance(value, list) and ELEMENTS in reads:
        return [pruned(item, reads[ELEMENTS]) for item in value]
    return value


class _Found:
    """Gathers what is read while a tree is visited.

    `places` says where a name stands: a variable and steps below it; a name that is not in it is
    something else.
    """

    def __init__(self) -> None:
        self.reads: dict[str, Reads] = {}

    def visit(self, node: Node, places: Mapping[str, _Path]) -> None:
        path = self._path(node, places)
        if path is not None:
            self._add(path, None)
        elif node.WhichOneof("one") == "comprehension_expr":
            self._loop(node.comprehension_expr, places)
        else:
            for part in children(node):
                self.visit(part, places)

    def _binding(self, loop: Node, places: Mapping[str, _Path]) -> None:
        """Visit a name for a value, which is a loop over nothing: it may stand for a place."""
        inner = {key: value for key, value in places.items() if key != loop.accu_var}
        path = self._path(loop.accu_init, places)
        if path is None:
            self.visit(loop.accu_init, places)
        else:
            inner[loop.accu_var] = path
        self.visit(loop.result, inner)

    def _loop(self, loop: Node, places: Mapping[str, _Path]) -> None:
        if is_empty_list(loop.iter_range):
            self._binding(loop, places)
            return
        path = self._path(loop.iter_range, places)
        inner = {k: v for k, v in places.items() if k not in (loop.iter_var, loop.accu_var)}
        if path is None:
            self.visit(loop.iter_range, places)
            inner.pop(loop.iter_var2, None)
        else:
            self._add((*path, ELEMENTS), {})
            # With two variables the first is an index or a key, which the pruned value keeps.
            inner[loop.iter_var2 or loop.iter_var] = (*path, ELEMENTS)
        self.visit(loop.accu_init, places)
        for part in (loop.loop_condition, loop.loop_step):
            self.visit(part, inner)
        outer = {key: value for key, value in places.items() if key != loop.accu_var}
        self.visit(loop.result, outer)

    def _path(self, node: Node, places: Mapping[str, _Path]) -> _Path | None:
        """Return where a chain of fields leads, or None if the node is none of the variable."""
        steps: list[str] = []
        while True:
            match node.WhichOneof("one"):
                case "ident_expr":
                    place = places.get(node.ident_expr.name)
                    return None if place is None else (*place, *reversed(steps))
                case "select_expr":
                    steps.append(node.select_expr.field)
                    node = node.select_expr.operand
                case "call_expr" if node.call_expr.function in _INDEXING:
                    step = _step(node.call_expr.args[1])
                    if step is None:
                        return None
                    steps.append(step)
                    node = node.call_expr.args[0]
                case _:
                    return None

    def _add(self, path: _Path, below: Reads) -> None:
        name, *steps = path
        for step in reversed(steps):
            below = {step: below}
        self.reads[name] = merged(self.reads.get(name, {}), below)


def _step(index: Node) -> str | None:
    """Return the field that a constant index names; a position may be any element."""
    kind = index.const_expr.WhichOneof("one")
    if kind == "string_value":
        return str(index.const_expr.string_value)
    return ELEMENTS if kind == "int64_value" else None
