# SPDX-License-Identifier: Apache-2.0
"""The generation of a policy set: a name for its content that every decision carries."""

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from policies.documents.document import Document
from policies.documents.scalars import plain

_FORMAT: Final = 1
"""Raised whenever the same documents come to mean something else."""
_DIGITS: Final = 12


def generation_of(documents: Iterable[Document]) -> str:
    """Return the first 12 hex digits of SHA-256 over the documents as canonical JSON.

    File names, comments, and the order of documents and fields do not change it.
    """
    texts = sorted(_canonical(plain(document.value)) for document in documents)
    content = _canonical({"format": _FORMAT, "documents": texts})
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
