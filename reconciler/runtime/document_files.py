# SPDX-License-Identifier: Apache-2.0
"""Reads a tree of policy documents as one consistent set of texts.

A tree that changes while it is read is read again, so that old and new are never mixed. What the
texts mean is for the loader; who watches is not known here.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from policies.documents.problems import Problem
from policies.documents.source import SourceText
from reconciler.runtime.document_tree import Found, Limits, Scan, explain, file_problem, scan

_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """All documents of a tree in the order of their names, or why they could not all be read.

    Names are relative to the root. `directories` are those whose changes can change the next
    reading; for whoever watches.
    """

    sources: tuple[SourceText, ...]
    problems: tuple[Problem, ...]
    directories: frozenset[Path] = field(compare=False)

    @property
    def digest(self) -> str:
        """Return a hash of names, contents and problems."""
        digest = hashlib.sha256()
        for source in self.sources:
            for part in (source.name.encode(errors="surrogateescape"), source.text):
                digest.update(len(part).to_bytes(8, "big"))
                digest.update(part)
        digest.update(repr(self.problems).encode())
        return digest.hexdigest()


def read_documents(root: Path, limits: Limits | None = None) -> Reading:
    """Read every document below a directory, or a single file. Never raises for what is there."""
    limits = limits or Limits()
    before = scan(root, limits)
    for _ in range(_ATTEMPTS):
        reading = _read(before, limits)
        after = scan(root, limits)
        if after == before:
            return reading
        before = after
    problem = file_problem(str(root), "changed again and again while it was read")
    return Reading((), (problem,), before.directories)


def _read(found: Scan, limits: Limits) -> Reading:
    sources: list[SourceText] = []
    problems = list(found.problems)
    total = 0
    for document in found.documents:
        text = _read_file(document, limits.file_bytes)
        if isinstance(text, Problem):
            problems.append(text)
            continue
        total += len(text)
        if total > limits.total_bytes:
            message = f"together the documents are larger than {limits.total_bytes} bytes"
            problems.append(file_problem(document.name, message))
            break
        sources.append(SourceText(document.name, text))
    return Reading(tuple(sources), tuple(problems), found.directories)


def _read_file(document: Found, limit: int) -> bytes | Problem:
    try:
        with document.path.open("rb") as file:
            text = file.read(limit + 1)
    except OSError as error:
        return file_problem(document.name, explain(error))
    if len(text) > limit:
        return file_problem(document.name, f"larger than {limit} bytes")
    return text
