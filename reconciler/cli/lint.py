# SPDX-License-Identifier: Apache-2.0
"""`sluice lint`: every problem of a directory of documents, as text or JSON."""

import json
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console

from policies.documents.problems import Problem, Severity

_STYLE = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def print_problems(problems: Sequence[Problem], console: Console) -> None:
    """Print a line for each problem."""
    for problem in problems:
        console.print(str(problem), style=_STYLE[problem.severity], markup=False, soft_wrap=True)


def print_problems_json(
    problems: Sequence[Problem], generation: str | None, stream: TextIO
) -> None:
    """Print one JSON object; `generation` is null where the set cannot be served."""
    plain = {"generation": generation, "problems": [problem.to_json() for problem in problems]}
    json.dump(plain, stream, indent=2)
    stream.write("\n")


def summary(problems: Sequence[Problem]) -> str:
    """Return the closing line: `2 errors, 1 warning, 0 notes`."""
    counts = [(s, sum(p.severity is s for p in problems)) for s in Severity]
    return ", ".join(f"{n} {s.lower()}{'' if n == 1 else 's'}" for s, n in counts)
