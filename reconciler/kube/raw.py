# SPDX-License-Identifier: Apache-2.0
"""Reads fields of raw API objects, where any field may be absent, null or of a wrong type.

Pure. What is not as the API defines it reads as absent, never as an exception: views must not
fail on one odd object.
"""

import base64
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

_NOTHING: Mapping[str, object] = {}


def mapping(item: Mapping[str, object], *path: str) -> Mapping[str, object]:
    """Return the object at a path of fields, empty where there is none."""
    for field in path:
        value = item.get(field)
        if not isinstance(value, Mapping):
            return _NOTHING
        item = value
    return item


def text(item: Mapping[str, object], field: str) -> str:
    """Return a string field, empty where there is none."""
    value = item.get(field)
    return value if isinstance(value, str) else ""


def strings(item: Mapping[str, object], *path: str) -> dict[str, str]:
    """Return a map of strings, such as labels; keys are shared between objects in memory."""
    return {
        sys.intern(key): value
        for key, value in mapping(item, *path).items()
        if isinstance(value, str)
    }


def decoded(item: Mapping[str, object], *path: str) -> dict[str, bytes]:
    """Return a map of base64 texts, such as a Secret's data, as bytes (RFC 4648)."""
    found = {}
    for key, value in strings(item, *path).items():
        with suppress(ValueError):
            found[key] = base64.b64decode(value, validate=True)
    return found


def mappings(item: Mapping[str, object], field: str) -> Iterator[Mapping[str, object]]:
    """Yield the objects of a list field."""
    values = item.get(field)
    if isinstance(values, Sequence):
        yield from (value for value in values if isinstance(value, Mapping))
