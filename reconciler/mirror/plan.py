# SPDX-License-Identifier: Apache-2.0
"""What has to be written so that the objects say what the documents say. Pure.

Objects that people made are never changed but for their status. A mirror is written when its
document differs from what it was written from, and goes with its document; a tenant's stays while
pods are charged to it, so that what is counted can be seen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from policies.documents.kinds import Kind
from policies.documents.problems import Problem, Severity
from policies.documents.source import SourceText
from reconciler.mirror.documents import FileDocument
from reconciler.mirror.view import Acceptance, Found

API: Final = "API"
_MOST_CHARACTERS: Final = 4096

_Key: TypeAlias = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents as they are. `files` is None before a good set was loaded.

    `served` are the texts that decide now, `problems` those of the newest content, which is not
    what is served if `is_broken`.
    """

    files: tuple[FileDocument, ...] | None
    served: frozenset[SourceText]
    problems: tuple[Problem, ...]
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Write:
    """Make or change a mirror; without a `version` there is none yet."""

    document: FileDocument
    version: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Take away a mirror whose document is gone."""

    found: Found


@dataclass(frozen=True, slots=True)
class Tell:
    """Say in the status of an object whether it is accepted."""

    found: Found
    acceptance: Acceptance


Command: TypeAlias = Write | Delete | Tell


def plan(
    documents: Documents, objects: tuple[Found, ...], kinds: frozenset[Kind]
) -> tuple[Command, ...]:
    """Return what to do; `kinds` are those whose objects are all among `objects`."""
    there = {(item.kind, item.name): item for item in objects}
    wanted = _wanted(documents, kinds)
    commands: list[Command] = list(_writes(wanted, there)) if wanted is not None else []
    for item in objects:
        document = wanted.get((item.kind, item.name)) if wanted is not None else None
        if item.is_mirror and wanted is not None and document is None and not _is_used(item):
            commands.append(Delete(item))
            continue
        acceptance = _acceptance(item, document, documents)
        if acceptance is not None and acceptance != item.acceptance:
            commands.append(Tell(item, acceptance))
    return tuple(commands)


def _wanted(documents: Documents, kinds: frozenset[Kind]) -> Mapping[_Key, FileDocument] | None:
    if documents.files is None:
        return None
    return {(item.kind, item.name): item for item in documents.files if item.kind in kinds}


def _writes(wanted: Mapping[_Key, FileDocument], there: Mapping[_Key, Found]) -> Iterator[Write]:
    for key, document in wanted.items():
        item = there.get(key)
        if item is None:
            yield Write(document, "")
        elif item.is_mirror and item.digest != document.digest:
            yield Write(document, item.version)


def _is_used(item: Found) -> bool:
    """Tell whether pods are charged to a tenant."""
    return item.kind is Kind.TENANT and bool(item.used.strip("0."))


def _acceptance(
    item: Found, document: FileDocument | None, documents: Documents
) -> Acceptance | None:
    """Return what is to be said of an object; None where it is not known yet."""
    if item.source is not None:
        return _of_object(item, item.source, documents)
    if document is not None:
        return _of_mirror(item, document, documents)
    if documents.files is None:
        return None
    message = f"its document is gone; its pods use {item.used} GPUs and are counted until they end"
    source = item.acceptance.source if item.acceptance else ""
    return Acceptance(False, "DocumentGone", message, source, item.generation)


def _of_object(item: Found, source: SourceText, documents: Documents) -> Acceptance | None:
    own = [problem for problem in documents.problems if problem.file == source.name]
    errors = [problem for problem in own if problem.severity is Severity.ERROR]
    if errors:
        return Acceptance(False, "Invalid", _text(errors), API, item.generation)
    if source in documents.served:
        return Acceptance(True, "Served", _warned(own), API, item.generation)
    if not documents.is_broken:
        return None  # the watcher has not come to it yet
    others = [p for p in documents.problems if p.severity is Severity.ERROR]
    message = f"not served, as other documents have errors: {_text(others)}"
    return Acceptance(False, "OthersInvalid", message, API, item.generation)


def _of_mirror(item: Found, document: FileDocument, documents: Documents) -> Acceptance:
    label = f"{document.kind}/{document.name}"
    own = [
        problem
        for problem in documents.problems
        if problem.document == label and problem.line  # objects of the API have no lines
    ]
    errors = [problem for problem in own if problem.severity is Severity.ERROR]
    if errors:
        message = f"the file has changed, and not for the better: {_text(errors)}"
        return Acceptance(False, "Invalid", message, document.file, item.generation)
    return Acceptance(True, "Served", _warned(own), document.file, item.generation)


def _warned(problems: list[Problem]) -> str:
    return _text([problem for problem in problems if problem.severity is Severity.WARNING])


def _text(problems: list[Problem]) -> str:
    text = "; ".join(map(str, problems))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
