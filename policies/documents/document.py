# SPDX-License-Identifier: Apache-2.0
"""One YAML document: its value, and where each part of it stands in the file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from policies.documents.scalar_position import position_within

Path = tuple[str | int, ...]
"""Keys and list indexes from the root of a document."""

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PATH_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; line and column count from 1, and are 0 where there are no lines."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. `value` is JSON data with int and Decimal numbers, not to be changed.

    `lines` are the lines of the whole file; without `has_lines` they mean nothing to people.
    """

    file: str
    root: yaml.Node
    value: object
    lines: tuple[str, ...]
    has_lines: bool = True

    def position(self, path: Path) -> Position:
        """Return where the value at the path begins; of a missing one, its nearest parent."""
        return self._start(_walk(self.root, path)[-1])

    def key_position(self, path: Path) -> Position:
        """Return where the key of the field at the path begins, else what `position` gives."""
        nodes = _walk(self.root, path)
        if path and len(nodes) == len(path) + 1:
            key = _entry(nodes[-2], path[-1])[0]
            return self._start(nodes[-1] if key is None else key)
        return self._start(nodes[-1])

    def position_in_text(self, path: Path, line: int, column: int) -> Position:
        """Return the place in the file of a line and column (from 1) within a text value."""
        node = _walk(self.root, path)[-1]
        if not isinstance(node, yaml.ScalarNode) or not self.has_lines:
            return self._start(node)
        return Position(*position_within(node, self.lines, line, column))

    def _start(self, node: yaml.Node) -> Position:
        if not self.has_lines:
            return Position(0, 0)
        return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def path_text(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `spec.match.when[0].expression`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def parse_path(text: str) -> Path:
    """Return the path that a text such as `products[0]` or `mig.profile` names."""
    return tuple(int(index) if index else key for index, key in _PATH_STEP.findall(text))


def _walk(root: yaml.Node, path: Path) -> list[yaml.Node]:
    """Return the nodes from the root along the path, as far as they exist."""
    nodes = [root]
    for step in path:
        child = _entry(nodes[-1], step)[1]
        if child is None:
            break
        nodes.append(child)
    return nodes


def _entry(node: yaml.Node, step: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    """Return the key and value nodes of a mapping entry, or no key and the item of a list."""
    if isinstance(node, yaml.MappingNode):
        return next(((k, v) for k, v in node.value if k.value == step), (None, None))
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    return None, None
