# SPDX-License-Identifier: Apache-2.0
"""A field of a document with its path, read by type, that can say where it stands.

Compilers read documents through it. What the schema has found at fault reads as missing, so that a
compiler goes on and finds the rest; its result is then not used.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from policies.documents.document import Document, Path, path_text
from policies.documents.problems import Problem, Severity


@dataclass(frozen=True, slots=True)
class Subject:
    """A document as problems name it, and the paths in it whose values the schema refuses."""

    document: Document
    label: str
    broken: frozenset[Path] = frozenset()

    @property
    def root(self) -> "Field":
        """Return the whole document as a field."""
        return Field(self, (), self.document.value)


@dataclass(frozen=True, slots=True)
class Field:
    """One value. None stands for a missing field, as the schema allows no null."""

    subject: Subject
    path: Path
    value: object

    def at(self, *keys: str) -> "Field":
        """Return the field below this one by these names; it may be missing."""
        path, value, broken = self.path, self.value, self.subject.broken
        for key in keys:
            path = (*path, key)
            value = value.get(key) if isinstance(value, dict) else None
            if broken and path in broken:
                value = None
        return Field(self.subject, path, value)

    def item(self, index: int) -> "Field":
        """Return an item of a list; it may be missing."""
        items = self.value if isinstance(self.value, list) else []
        return self._child(index, items[index] if 0 <= index < len(items) else None)

    def items(self) -> "Iterator[Field]":
        """Yield the items of a list, those at fault left out."""
        if isinstance(self.value, list):
            for index, item in enumerate(self.value):
                child = self._child(index, item)
                if child.exists:
                    yield child

    def entries(self) -> "Iterator[tuple[str, Field]]":
        """Yield the entries of a map, those at fault left out."""
        if isinstance(self.value, dict):
            for key, item in self.value.items():
                child = self._child(key, item)
                if child.exists:
                    yield key, child

    @property
    def exists(self) -> bool:
        """Tell whether the field has a value."""
        return self.value is not None

    @property
    def is_sound(self) -> bool:
        """Tell whether the schema refuses nothing in the field, so that what is missing is so."""
        depth = len(self.path)
        return not any(path[:depth] == self.path for path in self.subject.broken)

    def text(self, default: str = "") -> str:
        """Return a text."""
        return self.value if isinstance(self.value, str) else default

    def optional_text(self) -> str | None:
        """Return a text, or None if there is none."""
        return self.value if isinstance(self.value, str) else None

    def integer(self, default: int = 0) -> int:
        """Return a whole number."""
        number = self.optional_integer()
        return default if number is None else number

    def optional_integer(self) -> int | None:
        """Return a whole number, or None if there is none."""
        value = self.value
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self) -> int | Decimal | None:
        """Return a number, exactly, or None if there is none."""
        return self.value if isinstance(self.value, Decimal) else self.optional_integer()

    def boolean(self, *, default: bool = False) -> bool:
        """Return true or false."""
        return self.value if isinstance(self.value, bool) else default

    def texts(self) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(item.text() for item in self.items())

    def optional_set(self) -> frozenset[str] | None:
        """Return a list of texts whose order does not matter, or None if there is none."""
        return frozenset(self.texts()) if self.exists else None

    def text_map(self) -> dict[str, str]:
        """Return a map of texts."""
        return {key: item.text() for key, item in self.entries()}

    def problem(
        self,
        message: str,
        suggestion: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        """Return a problem at this field's value, or at its nearest parent if it is missing."""
        position = self.subject.document.position(self.path)
        return Problem(
            severity,
            message,
            self.subject.document.file,
            position.line,
            position.column,
            self.subject.label,
            path_text(self.path),
            suggestion,
        )

    def key_problem(
        self,
        message: str,
        suggestion: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        """Return a problem at this field's name rather than its value."""
        position = self.subject.document.key_position(self.path)
        problem = self.problem(message, suggestion, severity)
        return replace(problem, line=position.line, column=position.column)

    def text_problem(self, message: str, line: int, column: int) -> Problem:
        """Return a problem at a line and column (from 1) within this field's text."""
        position = self.subject.document.position_in_text(self.path, line, column)
        return replace(self.problem(message), line=position.line, column=position.column)

    def _child(self, step: str | int, value: object) -> "Field":
        path, broken = (*self.path, step), self.subject.broken
        return Field(self.subject, path, None if broken and path in broken else value)
