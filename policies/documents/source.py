# SPDX-License-Identifier: Apache-2.0
"""Bytes to documents: YAML or JSON, read strictly, every fault a problem with its place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from policies.documents.composer import Composer, LimitError, Limits
from policies.documents.document import Document, Path, path_text
from policies.documents.problems import Problem, Severity, quoted
from policies.documents.scalars import ScalarError, value_of

_SYNTAX_ERRORS: Final = 10
"""So many in one file; then the rest is not looked at."""
_FAULTS: Final = 100
"""So many duplicate keys and the like in one file are listed."""
_NOT_YAML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_DOCUMENT_START: Final = re.compile(r"---(\s|$)")
_WORDS: Final = {
    "found character that cannot start any token": "unexpected character",
    "mapping values are not allowed in this context": (
        'a ":" here would begin a second field; quote the text, or begin a new line'
    ),
}


@dataclass(frozen=True, slots=True)
class SourceText:
    """One file as it was read. `name` is what problems call it.

    Without `has_lines` it is no file that people wrote, and problems name no line of it.
    """

    name: str
    text: bytes
    has_lines: bool = True


@dataclass(frozen=True, slots=True)
class Parsed:
    """The documents of a file, empty ones left out, and what is wrong with the file.

    `complete` is False where a fault of syntax hides documents that may be in it.
    """

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...] = ()
    complete: bool = True


@dataclass(slots=True)
class _Reading:
    """One file while it is read."""

    name: str
    lines: tuple[str, ...]
    limits: Limits
    has_lines: bool = True
    values: int = 0
    complete: bool = True
    problems: list[Problem] = field(default_factory=list)

    def fault(self, message: str, mark: yaml.Mark | None, path: Path = ()) -> None:
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if not self.has_lines:
            line = column = 0
        self.problems.append(
            Problem(Severity.ERROR, message, self.name, line, column, path=path_text(path))
        )


def parse_documents(source: SourceText, limits: Limits | None = None) -> Parsed:
    """Read a file. Never raises for any bytes; a fault in one document does not hide the next."""
    limits = limits or Limits()
    text = _decode(source, limits)
    if isinstance(text, Problem):
        return Parsed((), (text,), complete=False)
    lines = tuple(_LINE_BREAK.split(text))
    reading = _Reading(source.name, lines, limits, source.has_lines)
    documents = tuple(_documents(reading, text))
    return Parsed(documents, tuple(reading.problems[:_FAULTS]), reading.complete)


def _decode(source: SourceText, limits: Limits) -> str | Problem:
    if len(source.text) > limits.size_bytes:
        mib = limits.size_bytes // (1024 * 1024)
        return Problem(Severity.ERROR, f"bigger than {mib} MiB; split it", source.name, 1, 1)
    try:
        text = source.text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = source.text[: error.start].decode("utf-8-sig", errors="replace")
        message = f"not UTF-8: byte 0x{source.text[error.start]:02x} is no part of a character"
        return Problem(Severity.ERROR, message, source.name, *_end_of(good))
    if (found := _NOT_YAML.search(text)) is not None:
        message = f"control character U+{ord(found[0]):04X} may not stand in a document"
        return Problem(Severity.ERROR, message, source.name, *_end_of(text[: found.start()]))
    return text


def _end_of(text: str) -> tuple[int, int]:
    rows = _LINE_BREAK.split(text)
    return len(rows), len(rows[-1]) + 1


def _documents(reading: _Reading, text: str) -> Iterator[Document]:
    """Compose document after document; after a fault go on at the next `---`."""
    start = 0
    for _ in range(_SYNTAX_ERRORS):
        composer = Composer(text, reading.limits)
        try:
            while composer.check_node():
                root = composer.get_node()
                if root is not None:
                    yield from _document(reading, root)
        except LimitError as error:
            reading.complete = False
            reading.fault(str(error), None)
            return
        except yaml.YAMLError as error:
            reading.complete = False
            resume = _report(reading, error, start)
        else:
            return
        finally:
            composer.dispose()
        if resume is None:
            return
        start = resume
        # Empty lines in front keep the line numbers right.
        text = "\n" * resume + "\n".join(reading.lines[resume:])
    reading.fault("too many faults of syntax; the rest of the file was not read", None)


def _report(reading: _Reading, error: yaml.YAMLError, start: int) -> int | None:
    """Record a fault of syntax; return the line (from 0) on which the next document starts.

    `start` is the line on which reading began; the next document is below it.
    """
    mark: yaml.Mark | None = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    message = _WORDS.get(problem, problem)
    line = mark.line if mark else len(reading.lines)
    text = reading.lines[line] if line < len(reading.lines) else ""
    if mark and text[: mark.column + 1].isspace() and "\t" in text[: mark.column + 1]:
        message = "a tab cannot indent; use spaces"
    reading.fault(message, mark)
    # What one document leaves open is often only noticed at the `---` of the next.
    below = max(line if mark and mark.column == 0 else line + 1, start + 1)
    starts = range(below, len(reading.lines))
    return next((n for n in starts if _DOCUMENT_START.match(reading.lines[n])), None)


def _document(reading: _Reading, root: yaml.Node) -> Iterator[Document]:
    value = _Values(reading).value(root, ())
    if value is not None:
        yield Document(reading.name, root, value, reading.lines, reading.has_lines)


class _Values:
    """Turns nodes into values, with aliases expanded and counted."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._open: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> object:
        self._reading.values += 1
        if self._reading.values > self._reading.limits.values:
            raise LimitError(f"aliases expand to more than {self._reading.limits.values} values")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self._reading.fault("an alias within its own anchor has no end", node.start_mark, path)
            return None
        if len(path) >= self._reading.limits.depth:
            raise LimitError(f"nested more than {self._reading.limits.depth} levels deep")
        self._open.add(id(node))
        value = self._collection(node, path)
        self._open.discard(id(node))
        return value

    def _collection(self, node: yaml.Node, path: Path) -> object:
        if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.endswith((":set", ":omap")):
            self._reading.fault(f"tag {quoted(node.tag)} is not supported", node.start_mark, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        try:
            return value_of(node.tag, node.value)
        except ScalarError as error:
            self._reading.fault(str(error), node.start_mark, path)
            return None

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        values: dict[str, object] = {}
        first: dict[str, yaml.Mark] = {}
        for key, item in node.value:
            name = self._key(key, path)
            if name is None:
                continue
            if name in values:
                line = first[name].line + 1
                message = f"field {quoted(name)} is written twice, first in line {line}"
                self._reading.fault(message, key.start_mark, (*path, name))
                continue
            first[name] = key.start_mark
            values[name] = self.value(item, (*path, name))
        return values

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        """Return a key's text, as JSON has only text for keys; None if it is no usable key."""
        if not isinstance(node, yaml.ScalarNode):
            self._reading.fault("a field's name must be text", node.start_mark, path)
            return None
        if node.value == "<<" and not node.style:
            message = "merge keys (<<) are not supported; write the fields out"
            self._reading.fault(message, node.start_mark, path)
            return None
        return str(node.value)
