# SPDX-License-Identifier: Apache-2.0
"""The documents of files as the objects that mirror them. Pure."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.documents.document import Document
from policies.documents.kinds import Kind
from policies.documents.scalars import plain
from policies.documents.source import SourceText, parse_documents
from policies.model.keys import STATE_PREFIX
from reconciler.kube import raw
from reconciler.kube.document_resources import API_KINDS

_KINDS: Final = {str(kind): kind for kind in API_KINDS}
_DIGITS: Final = 16
_FORMAT: Final = 1
"""Raised whenever the same document comes to be mirrored in another way."""


@dataclass(frozen=True, slots=True)
class FileDocument:
    """What a mirror says. `file` is below the policy directory; `digest` changes with all of it."""

    kind: Kind
    name: str
    file: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: object

    @property
    def digest(self) -> str:
        """Return the first hex digits of SHA-256 over the content as canonical JSON."""
        content = [_FORMAT, self.file, dict(self.labels), dict(self.annotations), self.spec]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def file_documents(sources: Iterable[SourceText]) -> tuple[FileDocument, ...]:
    """Return the documents of a good set that stand in files and can be objects."""
    return tuple(
        found
        for source in sources
        if source.has_lines
        for document in parse_documents(source).documents
        for found in _of(document)
    )


def _of(document: Document) -> Iterator[FileDocument]:
    value = plain(document.value)
    kind = _KINDS.get(raw.text(value, "kind")) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or kind is None:
        return
    metadata = raw.mapping(value, "metadata")
    yield FileDocument(
        kind,
        raw.text(metadata, "name"),
        document.file,
        _own(metadata, "labels"),
        _own(metadata, "annotations"),
        value.get("spec"),
    )


def _own(metadata: Mapping[str, object], field: str) -> dict[str, str]:
    found = raw.strings(metadata, field)
    return {key: value for key, value in found.items() if not key.startswith(STATE_PREFIX)}
