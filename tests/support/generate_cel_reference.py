# SPDX-License-Identifier: Apache-2.0
"""Write docs/reference/cel.md from the tables of variables, functions, libraries and limits.

Run it after a change of those: `python -m tests.support.generate_cel_reference`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from policies.cel import limits
from policies.cel.functions import FUNCTIONS, Function, Overload
from policies.cel.libraries import LIBRARIES
from policies.cel.rehearsal import CONTAINERS
from policies.cel.schema import LIST_MARK, MAP_MARK
from policies.cel.unsupported import UNSUPPORTED
from policies.cel.variables import FIELD_NOTES, MESSAGES, POD, VARIABLES

TARGET: Final = Path(__file__).parents[2] / "docs" / "reference" / "cel.md"
_INTRODUCTION: Final = """\
# CEL in policies

<!-- Generated: python -m tests.support.generate_cel_reference -->

Conditions, variables, validations and their messages are expressions of the
[Common Expression Language](https://cel.dev), with the variables and libraries of Kubernetes'
admission policies, so an expression can move between Sluice and a ValidatingAdmissionPolicy.

Expressions are checked when policies are loaded: a field that a Pod does not have, a wrong type, an
unknown function or a malformed pattern, duration, timestamp or quantity is an error with its line
and column, and so is an expression that would run over its budget on a pod of {containers}
containers. An expression that has no value for a pod (a label that is not there, an index beyond a
list) is an error of that review, never true or false: guard it with `has()` or
`object.metadata.?labels[?"team"].orValue("")`.
"""
_LIMITS: Final = (
    ("Length of an expression", f"{limits.MAX_SOURCE_LENGTH:,} characters"),
    ("Nesting, each variable in use being one level", f"{limits.MAX_DEPTH} levels"),
    ("`optMap` and `optFlatMap` in one expression", f"{limits.MAX_OPTIONAL_MAPS}"),
    ("Steps of all loops in one evaluation", f"{limits.MAX_ITERATIONS:,}"),
    ("Characters and elements made in one evaluation", f"{limits.MAX_UNITS:,}"),
    ("Comparisons, and characters searched, that count as one of these", "16"),
    ("JSON of each variable", f"{limits.MAX_INPUT_BYTES:,} bytes"),
)
_DIFFERENCES: Final = """\
- A quantity has a value wherever it has one: `quantity('1.5Gi').asInteger()` is 1610612736, which
  Kubernetes refuses for the way it stores fractions.
- `q.sign()` may also be written so; Kubernetes only has `sign(q)`.
- `type(quantity('1'))` is `map`, and the sum of no durations is 0, as of no numbers.
- A list may mix types without `dyn()`.
- A loop may not name its variable like a variable of the review (`object`, `gpu`, ...), and
  `variables` is only used as `variables.<name>`.
- An optional value may not be put into a list, a map or `dyn()`: use `orValue()`, or the optional
  entries `[?o]` and `{?k: o}`.
- A pod is known as the API client of this release knows it: newer fields are load errors."""
_CEL_PYTHON: Final = """\
Where cel-expr-python has no wheel, cel-python takes its place. It checks names but no types at
load, has no optional values, two-variable loops, `format` and `sortBy` (each a load error that says
so), and takes about a hundred times as long.
"""


def render() -> str:
    """Return the page."""
    lines = [_INTRODUCTION.format(containers=CONTAINERS), "## Variables", ""]
    lines += _table(
        ("variable", "type", "what it is"),
        ((f"`{each.name}`", _type(each.type), each.description) for each in VARIABLES),
    )
    for variable in VARIABLES:
        if variable.type in MESSAGES:
            fields = _fields(variable.name, variable.type)
            lines += ["", f"### {variable.name}", "", *_table(("field", "type", ""), fields)]
    lines += ["", "## Functions", "", "Beside those below, of CEL's own libraries:", ""]
    libraries = ((each.name, ", ".join(f"`{call}`" for call in each.calls)) for each in LIBRARIES)
    lines += _table(("library", "calls"), libraries)
    for library in dict.fromkeys(function.library for function in FUNCTIONS):
        members = (function for function in FUNCTIONS if function.library == library)
        rows = (_function(function) for function in members)
        lines += ["", f"### {library}", "", *_table(("call", "result", "what it is"), rows)]
    lines += ["", "## Not supported yet", "", *_table(("library", "names"), _unsupported())]
    lines += ["", "## Limits", "", *_table(("what", "at most"), _LIMITS)]
    lines += ["", "## Where Sluice differs from Kubernetes", "", _DIFFERENCES]
    return "\n".join([*lines, "", "## The other engine", "", _CEL_PYTHON])


def _fields(path: str, message: str) -> Iterator[tuple[str, str, str]]:
    """Yield every field below a variable, with its path."""
    for name, kind in MESSAGES[message].items():
        inner = f"{path}.{name}"
        yield f"`{inner}`", _type(kind), FIELD_NOTES.get(inner, "")
        element = kind.removeprefix(LIST_MARK)
        if element in MESSAGES:
            yield from _fields(f"{inner}[]" if kind.startswith(LIST_MARK) else inner, element)


def _function(function: Function) -> tuple[str, str, str]:
    calls = dict.fromkeys(_call(function.name, overload) for overload in function.overloads)
    results = dict.fromkeys(overload.result for overload in function.overloads)
    result = "an element" if len(results) > 1 else next(iter(results))
    return ", ".join(f"`{call}`" for call in calls), result, function.description


def _call(name: str, overload: Overload) -> str:
    words = ["list" if kind.startswith("list(") else kind for kind in overload.parameters]
    if overload.member:
        return f"{words[0]}.{name}({', '.join(words[1:])})"
    return f"{name}({', '.join(words)})"


def _unsupported() -> Iterator[tuple[str, str]]:
    for library, names in UNSUPPORTED.items():
        yield library, ", ".join(f"`{name}`" for name in names)


def _type(kind: str) -> str:
    if kind.startswith(LIST_MARK):
        return f"list({_type(kind.removeprefix(LIST_MARK))})"
    if kind.startswith(MAP_MARK):
        return f"map(string, {_type(kind.removeprefix(MAP_MARK))})"
    return "Pod" if kind == POD else kind


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(render(), encoding="utf-8")
