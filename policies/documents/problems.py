# SPDX-License-Identifier: Apache-2.0
"""What is wrong with documents, where, and what to write instead; as text lines or JSON."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """An Error keeps a set from being served; a Warning or Note does not."""

    ERROR = "Error"
    WARNING = "Warning"
    NOTE = "Note"


_RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
# Documents may hold line breaks and terminal escapes in any name; a problem stays one line.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_QUOTED_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. Line and column count from 1 in `file`; 0 where there is no place.

    `document` is `Kind/name`, `path` the field (`spec.match.when[0].expression`).
    """

    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    document: str = ""
    path: str = ""
    suggestion: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else ""
        place = place or (f"{self.file}: " if self.file else "")
        subject = "".join(f"{part}: " for part in (self.document, self.path) if part)
        hint = f"; {self.suggestion}" if self.suggestion else ""
        return printable(f"{place}{self.severity.lower()}: {subject}{self.message}{hint}")

    def to_json(self) -> dict[str, object]:
        """Return it with every field, for tools."""
        return {
            "severity": str(self.severity),
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "document": self.document,
            "path": self.path,
            "message": self.message,
            "suggestion": self.suggestion,
        }


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, by file and place, whatever order they were found in."""
    return tuple(sorted(dict.fromkeys(problems), key=_key))


def has_errors(problems: Iterable[Problem]) -> bool:
    """Tell whether any of them keeps the set from being served."""
    return any(problem.severity is Severity.ERROR for problem in problems)


def printable(text: str) -> str:
    """Return the text with control and direction characters as visible escapes."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def quoted(text: str) -> str:
    """Return a value from a document in double quotes, shortened so that a message stays short."""
    shown = text if len(text) <= _QUOTED_LENGTH else f"{text[: _QUOTED_LENGTH - 3]}..."
    return f'"{shown}"'


def _key(problem: Problem) -> tuple[str, int, int, int, str, str, str]:
    return (
        problem.file,
        problem.line,
        problem.column,
        _RANK[problem.severity],
        problem.document,
        problem.path,
        problem.message,
    )
