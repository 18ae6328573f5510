# SPDX-License-Identifier: Apache-2.0
"""Policies, facts and manifests from files; whatever is wrong with them becomes a BadInputError."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

from policies.documents.document import Document
from policies.documents.facts import parse_facts
from policies.documents.load import LoadResult
from policies.documents.problems import Problem, Severity, has_errors
from policies.documents.scalars import plain
from policies.documents.source import SourceText, parse_documents
from policies.model.facts import ClusterFacts, Facts, NodeFacts
from policies.model.policyset import PolicySet
from policies.model.request import JsonObject
from reconciler.runtime.document_files import read_documents
from reconciler.runtime.loading import Compiler


class BadInputError(Exception):
    """Files that cannot be used, with every problem found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def load_directory(
    compiler: Compiler,
    root: Path,
    now: datetime | None = None,
    nodes: Sequence[NodeFacts] | None = None,
) -> LoadResult:
    """Compile a tree of documents; what cannot be read is among the problems.

    Where `now` is given, so are exemptions that have ended; where `nodes` are, what they cannot
    bear out.
    """
    reading = read_documents(root)
    result = compiler.load(reading.sources, now, nodes)
    if not has_errors(reading.problems):
        return result
    return LoadResult(None, result.tests, (*reading.problems, *result.problems))


def policies_from(compiler: Compiler, root: Path) -> PolicySet:
    """Return the policy set of a directory. Raises BadInputError."""
    result = load_directory(compiler, root)
    if result.policy_set is None:
        errors = [p for p in result.problems if p.severity is Severity.ERROR]
        raise BadInputError(errors)
    return result.policy_set


def facts_from(compiler: Compiler, path: Path | None, now: datetime) -> Facts:
    """Return the facts of a file, or nothing known where there is none. Raises BadInputError.

    The file's own `now` wins over the clock's.
    """
    if path is None:
        return Facts(ClusterFacts({}), now)
    facts, problems = parse_facts(
        SourceText(str(path), _read(path)), catalog=compiler.catalog, now=now
    )
    if facts is None:
        raise BadInputError(problems)
    return facts


def nodes_from(compiler: Compiler, path: Path, now: datetime) -> tuple[NodeFacts, ...]:
    """Return the nodes of a file of facts. Raises BadInputError where it has none."""
    nodes = facts_from(compiler, path, now).cluster.nodes
    if nodes is None:
        raise BadInputError([Problem(Severity.ERROR, "holds no Node", str(path))])
    return nodes


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest and where it begins."""

    value: JsonObject
    file: str
    line: int

    def problem(self, message: str) -> BadInputError:
        """Return an error about it."""
        return BadInputError([Problem(Severity.ERROR, message, self.file, self.line, 1)])


def manifests_from(paths: Sequence[Path]) -> Iterator[Manifest]:
    """Yield the manifests of files, `-` being standard input. Raises BadInputError."""
    for path in paths:
        text = sys.stdin.buffer.read() if str(path) == "-" else _read(path)
        name = "standard input" if str(path) == "-" else str(path)
        parsed = parse_documents(SourceText(name, text))
        if parsed.problems:
            raise BadInputError(parsed.problems)
        if not parsed.documents:
            raise BadInputError([Problem(Severity.ERROR, "holds no manifest", name)])
        yield from (_manifest(name, document) for document in parsed.documents)


def _manifest(name: str, document: Document) -> Manifest:
    value = plain(document.value)
    line = document.position(()).line
    manifest = Manifest(cast("JsonObject", value), name, line)
    if not isinstance(value, dict):
        raise manifest.problem("a manifest is an object with apiVersion and kind")
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise manifest.problem(f"{key} is missing: a manifest says what it is")
    return manifest


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError([Problem(Severity.ERROR, reason.lower(), str(path))]) from error
