# SPDX-License-Identifier: Apache-2.0
"""One text out of an expression and the variables that it uses.

`variables.x` is bound at the head of the text by `cel.bind`, which evaluates it on first use and
at most once, as Kubernetes does; no value has to leave the engine. Each use is replaced by a name
of the same length, so that the columns of the author's text stay what they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policies.cel.variables import VARIABLES_NAME

_USE: Final = re.compile(rf"{VARIABLES_NAME}\.([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Part:
    """The text of a variable or of the expression, its uses replaced, and what it uses."""

    text: str
    uses: frozenset[str]


def bound_name(variable: str) -> str:
    """Return the name that stands for `variables.<name>`, which is as long."""
    return f"{VARIABLES_NAME}_{variable}"


def replace_uses(source: str, offsets: Sequence[int]) -> tuple[Part, tuple[int, ...]]:
    """Replace `variables.x` at these code points; also return the offsets where none stands."""
    pieces, strays, uses, end = [], [], set(), 0
    for offset in sorted(offsets):
        match = _USE.match(source, offset)
        if match is None:
            strays.append(offset)
            continue
        pieces += [source[end:offset], bound_name(match[1])]
        uses.add(match[1])
        end = match.end()
    return Part("".join([*pieces, source[end:]]), frozenset(uses)), tuple(strays)


def compose(part: Part, variables: Mapping[str, Part]) -> tuple[str, int]:
    """Return the whole text, and how many lines stand before the part's own first line.

    `variables` are in the order in which they may use one another.
    """
    needed = set(part.uses)
    for name in reversed(list(variables)):
        if name in needed:
            needed |= variables[name].uses
    used = [name for name in variables if name in needed]
    head = "".join(f"cel.bind({bound_name(name)}, (\n{variables[name].text}\n),\n" for name in used)
    return f"{head}{part.text}\n{')' * len(used)}" if used else part.text, head.count("\n")
