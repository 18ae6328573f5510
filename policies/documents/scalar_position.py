# SPDX-License-Identifier: Apache-2.0
"""The place in a file of a place within a scalar's value, for errors inside CEL expressions.

Folding, indentation and line joining only ever change white space, so the n-th visible character
of the value is the n-th visible character of the source; only quoting and escapes need care.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

_SPACE: Final = frozenset(" \t\r\n\x85\u2028\u2029")
_SPACE_ESCAPES: Final = frozenset(" \t\r\nnrtNLP")
"""What may follow a backslash in double quotes and then stands for white space or nothing."""
_HEX_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}
_BLOCK: Final = ("|", ">")
_PROPERTIES: Final = re.compile(r"[ \t]*(?:[&!][^ \t]*[ \t]*)*(?:#.*)?")

_Place = tuple[int, int]
"""Line and column, both from 0."""


def position_within(
    node: yaml.ScalarNode, lines: Sequence[str], line: int, column: int
) -> tuple[int, int]:
    """Return line and column (from 1) in the file of a line and column (from 1) in the value."""
    offset = _offset(node.value, line, column)
    at_end = offset >= len(node.value) or node.value[offset] in _SPACE
    before = sum(1 for character in node.value[:offset] if character not in _SPACE)
    # White space may have moved or gone: point just behind the visible character before it.
    index, shift = (before - 1, 1) if at_end and before else (before, 0)
    for number, (row, col) in enumerate(_visible(node, lines)):
        if number == index:
            return row + 1, col + 1 + shift
    return node.start_mark.line + 1, node.start_mark.column + 1


def _offset(value: str, line: int, column: int) -> int:
    rows = value.split("\n")
    row = min(max(line, 1), len(rows)) - 1
    return sum(len(text) + 1 for text in rows[:row]) + min(max(column, 1) - 1, len(rows[row]))


def _visible(node: yaml.ScalarNode, lines: Sequence[str]) -> Iterator[_Place]:
    """Yield the place of every character that stands for a visible character of the value."""
    source = _source(node, lines)
    style = node.style
    if style == '"':
        return _double_quoted(source)
    if style == "'":
        return _single_quoted(source)
    return (place for place, character in source if character not in _SPACE)


def _source(node: yaml.ScalarNode, lines: Sequence[str]) -> Iterator[tuple[_Place, str]]:
    """Yield the characters between the scalar's marks, a line break after each line.

    The header of a block scalar (`>-`, `|2`) and the quotes are left out.
    """
    start, end = _content_start(node, lines), node.end_mark
    quotes = 1 if node.style in ("'", '"') else 0
    for row in range(start[0] + (node.style in _BLOCK), min(end.line + 1, len(lines))):
        first = start[1] + quotes if row == start[0] else 0
        last = end.column - quotes if row == end.line else len(lines[row])
        for col in range(first, min(last, len(lines[row]))):
            yield (row, col), lines[row][col]
        yield (row, len(lines[row])), "\n"


def _content_start(node: yaml.ScalarNode, lines: Sequence[str]) -> _Place:
    """Return where the scalar begins behind its anchor and tag, which its mark includes."""
    row, col = node.start_mark.line, node.start_mark.column
    while row < len(lines):
        properties = _PROPERTIES.match(lines[row], col)
        col = properties.end() if properties else col
        if col < len(lines[row]):
            return row, col
        row, col = row + 1, 0
    return node.start_mark.line, node.start_mark.column


def _single_quoted(source: Iterator[tuple[_Place, str]]) -> Iterator[_Place]:
    for place, character in source:
        if character == "'":
            next(source, None)  # a quote is written twice
        if character not in _SPACE:
            yield place


def _double_quoted(source: Iterator[tuple[_Place, str]]) -> Iterator[_Place]:
    for place, character in source:
        if character != "\\":
            if character not in _SPACE:
                yield place
            continue
        _, escape = next(source, (place, "\n"))
        digits = "".join(next(source, (place, ""))[1] for _ in range(_HEX_ESCAPES.get(escape, 0)))
        stands_for_space = chr(int(digits, 16)) in _SPACE if digits else escape in _SPACE_ESCAPES
        if not stands_for_space:
            yield place
