# SPDX-License-Identifier: Apache-2.0
"""Text to YAML nodes with libyaml, with bounds on what a small text can blow up to.

Nodes rather than values, since nodes know their line and column.
"""

from dataclasses import dataclass

import yaml
from yaml._yaml import CParser

from policies.documents.scalars import resolve_plain

_SEQUENCE_TAG = "tag:yaml.org,2002:seq"
_MAPPING_TAG = "tag:yaml.org,2002:map"
_STRING_TAG = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one file: bytes, values with aliases counted wherever they are used, nesting."""

    size_bytes: int = 4 * 1024 * 1024
    values: int = 400_000
    depth: int = 64


class LimitError(yaml.YAMLError):
    """A text that is well-formed and too big; the message says in which way."""


class _Resolver:
    """The part of PyYAML's loader that CParser calls back: tags, and one call for each node."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._values = 0
        self._depth = 0

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        """Return the tag of a node that has none written."""
        if kind is yaml.ScalarNode:
            return resolve_plain(value) if implicit[0] else _STRING_TAG
        return _SEQUENCE_TAG if kind is yaml.SequenceNode else _MAPPING_TAG

    def descend_resolver(self, _parent: yaml.Node | None, _index: object) -> None:
        """Count a node before its content is read, so that no text nests the C stack away."""
        self._values += 1
        self._depth += 1
        if self._depth > self._limits.depth:
            raise LimitError(f"nested more than {self._limits.depth} levels deep")
        if self._values > self._limits.values:
            raise LimitError(f"more than {self._limits.values} values in one file; split it")

    def ascend_resolver(self) -> None:
        """Leave a node."""
        self._depth -= 1


class Composer(CParser, _Resolver):
    """Composes one document after another: `check_node()`, then `get_node()`."""

    def __init__(self, text: str, limits: Limits) -> None:
        CParser.__init__(self, text)
        _Resolver.__init__(self, limits)
