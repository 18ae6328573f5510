# SPDX-License-Identifier: Apache-2.0
"""Charges for what an expression makes, put into its syntax tree.

The default engine bounds loop steps and nothing else: three chained `replace` on 2,000 characters
end the process. So each call that can make much, or compare much, is rewritten to charge for it
first; what is charged to is `budget.py`. Calls that only read are bounded by their input.
Kubernetes does the same with its runtime cost (apiserver `pkg/cel/library/cost.go`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from policies.cel.ast import Node, Tree, children, walk

CHARGE: Final = "@charge"
"""The function that charges; authors cannot write its name."""

_CALL: Final = "call"
_ADD: Final = "_+_"
_INTERNAL: Final = "@"
_COMPARISONS_PER_UNIT: Final = 16
_UNITS_PER_PATTERN: Final = 4

# What a template may use: `call` is the call itself, `a0`, `a1`... its receiver and arguments,
# `t0`, `t1`... names for them, and `charge(units)`, which is true or ends the evaluation.
_AFTER: Final = "cel.bind(t0, call, charge(size(t0)) ? t0 : t0)"
_AFTER_ANY: Final = (
    "cel.bind(t0, call, charge(type(t0) == string || type(t0) == bytes || type(t0) == list"
    " ? size(t0) : 1) ? t0 : t0)"
)
_PAIRS: Final = f"charge(size(t0) * size(t1) / {_COMPARISONS_PER_UNIT})"
_BIND_TWO: Final = "cel.bind(t0, a0, cel.bind(t1, a1, "
_BIND_THREE: Final = "cel.bind(t0, a0, cel.bind(t1, a1, cel.bind(t2, a2, "
_REPLACED: Final = (
    "charge(size(t0) + (size(t1) == 0 ? (size(t0) + 1) * size(t2)"
    " : size(t0) / size(t1) * size(t2)))"
)
# What makes a text or a list no longer than a few times its receiver is charged for afterwards.
_MAKERS: Final = (
    *(("format", 2), ("strings.quote", 1), ("lowerAscii", 1), ("upperAscii", 1), ("trim", 1)),
    *(("substring", 2), ("substring", 3), ("reverse", 1), ("slice", 3), ("sort", 1)),
    *(("string", 1), ("bytes", 1), ("flatten", 2)),
)
# Nothing split by nothing is no part at all in Kubernetes, and one here.
_SPLITS: Final = "charge(size(t0) + 1) && size(t0) + size(t1) > 0"
# A pattern that is written out is compiled once, at load, if it stays where it is.
_FIXED_PATTERN: Final = (
    f"cel.bind(t0, a0, charge(size(t0) / {_COMPARISONS_PER_UNIT}) ? t0.matches(a1) : false)"
)
_TEMPLATES: Final[Mapping[tuple[str, int], str]] = {
    ("replace", 3): f"{_BIND_THREE}{_REPLACED} ? t0.replace(t1, t2) : t0)))",
    ("replace", 4): f"{_BIND_THREE}{_REPLACED} ? t0.replace(t1, t2, a3) : t0)))",
    ("join", 1): "cel.bind(t0, a0, charge(t0.map(t1, size(t1)).sum()) ? t0.join() : '')",
    ("join", 2): f"{_BIND_TWO}charge(t0.map(t2, size(t2) + size(t1)).sum()) ? t0.join(t1) : ''))",
    ("split", 2): f"{_BIND_TWO}{_SPLITS} ? t0.split(t1) : []))",
    ("split", 3): f"{_BIND_TWO}{_SPLITS} ? t0.split(t1, a2) : []))",
    ("lists.range", 1): "cel.bind(t0, a0, charge(t0) ? lists.range(t0) : [])",
    ("flatten", 1): (
        "cel.bind(t0, a0, charge(t0.map(t1, type(t1) == list ? size(t1) : 1).sum())"
        " ? t0.flatten() : [])"
    ),
    ("distinct", 1): (
        f"cel.bind(t0, a0, charge(size(t0) * size(t0) / {_COMPARISONS_PER_UNIT})"
        " ? t0.distinct() : [])"
    ),
    ("matches", 2): (
        f"{_BIND_TWO}charge(size(t0) / {_COMPARISONS_PER_UNIT} + size(t1) * {_UNITS_PER_PATTERN})"
        " ? t0.matches(t1) : false))"
    ),
    ("sets.contains", 2): f"{_BIND_TWO}{_PAIRS} ? sets.contains(t0, t1) : false))",
    ("sets.intersects", 2): f"{_BIND_TWO}{_PAIRS} ? sets.intersects(t0, t1) : false))",
    ("sets.equivalent", 2): f"{_BIND_TWO}{_PAIRS} ? sets.equivalent(t0, t1) : false))",
    **dict.fromkeys(_MAKERS, _AFTER),
}
_NAMESPACES: Final = frozenset({"strings", "lists", "sets"})


class Guard:
    """Rewrites trees; the templates are read once, with the engine's own parser."""

    def __init__(self, parse: Callable[[str], Node]) -> None:
        self._templates = {key: parse(text) for key, text in _TEMPLATES.items()}
        self._fixed_pattern = parse(_FIXED_PATTERN)
        self._after = parse(_AFTER)
        self._after_any = parse(_AFTER_ANY)

    def rewrite(self, tree: Tree, checked: Tree) -> bool:
        """Put charges into a tree, in place; tell whether there are any.

        `checked` is what the checker made of the same text, for its types.
        """
        found = self._rewrite(tree.root, checked, in_sum=False)
        if found:
            for number, node in enumerate(walk(tree.root), 1):
                node.id = number
        return found

    def _rewrite(self, node: Node, checked: Tree, *, in_sum: bool) -> bool:
        template = self._template(node, checked)
        is_sum = node.call_expr.function == _ADD and template is not None
        found = [self._rewrite(child, checked, in_sum=is_sum) for child in children(node)]
        if template is None or (is_sum and in_sum):  # a sum of sums is charged once, as a whole
            return any(found) or template is not None
        node.CopyFrom(_filled(template, node))
        return True

    def _template(self, node: Node, checked: Tree) -> Node | None:
        if node.WhichOneof("one") != "call_expr":
            return None
        name, arguments = called(node)
        if name == "matches" and arguments[-1].HasField("const_expr"):
            return self._fixed_pattern
        if name != _ADD:
            return self._templates.get((name, len(arguments)))
        if _is_internal(arguments[0]):  # how a loop gathers its results; the engine bounds it
            return None
        kind = checked.types.get(node.id)
        growth = "dyn" if kind is None else _growth(kind)
        return {"sized": self._after, "dyn": self._after_any}.get(growth)


def called(node: Node) -> tuple[str, list[Node]]:
    """Return the name of the function that a call means, and its receiver and arguments."""
    call = node.call_expr
    arguments = list(call.args)
    if not call.HasField("target"):
        return call.function, arguments
    owner = call.target.ident_expr.name
    if owner in _NAMESPACES:
        return f"{owner}.{call.function}", arguments
    return call.function, [call.target, *arguments]


def _growth(kind: Node) -> str:
    """Tell what adding values of a type can do: `sized` grows, `dyn` may, anything else not."""
    match kind.WhichOneof("one"):
        case "primitive":
            return "sized" if kind.primitive in _SIZED_PRIMITIVES else "fixed"
        case "list_type":
            return "sized"
        case "well_known":
            return "fixed"
    return "dyn"


_SIZED_PRIMITIVES: Final = frozenset({5, 6})  # STRING and BYTES of cel.expr.Type.PrimitiveType


def _filled(template: Node, call: Node) -> Node:
    """Return a template with the call and its arguments in it, and its names made internal."""
    filled = type(template)()
    filled.CopyFrom(template)
    _, arguments = called(call)
    holes = {_CALL: call, **{f"a{number}": node for number, node in enumerate(arguments)}}
    names = {f"t{number}": f"{_INTERNAL}t{number}" for number in range(3)}
    for node in list(walk(filled)):
        match node.WhichOneof("one"):
            case "ident_expr" if node.ident_expr.name in names:
                node.ident_expr.name = names[node.ident_expr.name]
            case "ident_expr" if node.ident_expr.name in holes:
                node.CopyFrom(holes[node.ident_expr.name])
            case "call_expr" if node.call_expr.function == "charge":
                node.call_expr.function = CHARGE
            case "comprehension_expr":
                loop = node.comprehension_expr
                loop.iter_var = names.get(loop.iter_var, loop.iter_var)
                loop.accu_var = names.get(loop.accu_var, loop.accu_var)
    return filled


def _is_internal(node: Node) -> bool:
    return bool(node.ident_expr.name.startswith(_INTERNAL))


def guarded_functions() -> Iterator[str]:
    """Yield the name of each function whose calls are charged for."""
    yield from sorted({name for name, _ in _TEMPLATES})
