# SPDX-License-Identifier: Apache-2.0
"""The engine's error reports, put into words for the author of a policy.

Source of the format: cel-cpp `common/source.h`, DisplayErrorLocation and FormatError.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from policies.cel.expression import ExpressionProblem
from policies.cel.schema import PACKAGE, Schema
from policies.cel.unsupported import library_of

_REPORT: Final = re.compile(
    r"ERROR: <input>:(\d+):(\d+): (.*?)(?=\n \| |\nERROR: <input>|\Z)", re.DOTALL
)
_FIELD: Final = re.compile(rf"undefined field '(.+)' not found in struct '{PACKAGE}\.(\w+)'")
_UNDECLARED: Final = re.compile(r"undeclared reference to '(.+)' \(in container ''\)")
_FOLLOW_UP: Final = "*error*"


class Reporter:
    """Turns one engine report into problems; knows the schema, for suggestions."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def problems(
        self, report: str, text: str, names: Sequence[str], skipped_lines: int = 0
    ) -> tuple[ExpressionProblem, ...]:
        """Read a report on a text whose first lines are not the author's.

        `names` are the variables that there are, for suggestions.
        """
        lines = text.split("\n")
        found = []
        for line, column, message in _entries(report):
            if _FOLLOW_UP in message:
                continue
            words, name = self._reword(message, names)
            place = _column_of(name, lines[line - 1], column) if name else column
            found.append(ExpressionProblem(words, line - skipped_lines, place))
        return tuple(found) or (ExpressionProblem(_first_line(report), 1, 1),)

    def _reword(self, message: str, names: Sequence[str]) -> tuple[str, str | None]:
        """Return the message as people should read it, and the name that it is about."""
        if match := _FIELD.search(message):
            return self._unknown_field(match[1], match[2]), match[1]
        if match := _UNDECLARED.search(message):
            name = match[1].partition(".")[0]
            return unknown_name(name, names), name
        return _plain_names(message), None

    def _unknown_field(self, field: str, message: str) -> str:
        fields: Mapping[str, str] = self._schema.messages.get(message, {})
        return f"{message.removeprefix('V1')} has no field `{field}`{suggestion(field, fields)}"


def type_text(name: str) -> str:
    """Write a type of the engine's as CEL does: `LIST<k8s.V1Container>` is `list(Container)`."""
    lowered = re.sub(r"\b[A-Z_]{3,}\b", lambda match: match[0].lower(), _plain_names(name))
    return lowered.replace("<", "(").replace(">", ")")


def _plain_names(text: str) -> str:
    return text.replace(f"{PACKAGE}.V1", "").replace(f"{PACKAGE}.", "")


def unknown_name(name: str, names: Sequence[str]) -> str:
    """Say that there is no such variable or function, or that Kubernetes alone has it."""
    return missing(name) or f"there is no `{name}`{suggestion(name, names)}"


def missing(name: str) -> str:
    """Say which of Kubernetes' libraries has a name that Sluice lacks; nothing if none has."""
    library = library_of(name)
    if library is None:
        return ""
    return f"`{name}` of Kubernetes' {library} library is not supported by Sluice yet"


def suggestion(name: str, known: Sequence[str] | Mapping[str, str]) -> str:
    """Return `: did you mean ...?` where a known name is close, else nothing."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f": did you mean `{close[0]}`?" if close else ""


def _column_of(name: str, line: str, column: int) -> int:
    """Move from the dot or bracket that the engine points at to the name that is at fault."""
    found = line.find(name, column - 1)
    if found < 0 or line[: column - 1].endswith(name):
        found = line.rfind(name, 0, column)
    return found + 1 if found >= 0 else column


def _entries(report: str) -> Iterator[tuple[int, int, str]]:
    for line, column, message in _REPORT.findall(report):
        yield int(line), int(column), " ".join(message.split())


def _first_line(report: str) -> str:
    """Return a report without positions as one line, without the status name around it."""
    text = " ".join(report.split())
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", text)
