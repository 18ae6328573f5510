# SPDX-License-Identifier: Apache-2.0
"""Typed access to JSON that anybody may have written.

Absent and null are the same, as in the Kubernetes API. A wrong type raises MalformedError, which
`decide()` turns into a refusal, so that no shape of object can make a decision fail. Plain loops
and exact types, since every review passes here often.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from policies.model.request import JsonObject

EMPTY: JsonObject = {}


class MalformedError(Exception):
    """A field of another type than the Kubernetes API gives it."""

    def __init__(self, field: str, expected: str) -> None:
        super().__init__(f"{field} is not {expected}")


def object_at(parent: JsonObject, key: str) -> JsonObject:
    """Return the object under a key; an empty one where there is none."""
    value = parent.get(key)
    if value is None:
        return EMPTY
    if not isinstance(value, dict):
        raise MalformedError(key, "an object")
    return value


def objects_at(parent: JsonObject, key: str) -> Sequence[JsonObject]:
    """Return the list of objects under a key; an empty one where there is none."""
    value = parent.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise MalformedError(key, "a list of objects")
    for item in value:
        if not isinstance(item, dict):
            raise MalformedError(key, "a list of objects")
    return cast("list[JsonObject]", value)


def string_at(parent: JsonObject, key: str) -> str:
    """Return the string under a key; an empty one where there is none."""
    value = parent.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedError(key, "a string")
    return value


def strings_at(parent: JsonObject, key: str) -> Mapping[str, str]:
    """Return the map of strings under a key (labels, annotations, selectors)."""
    value = object_at(parent, key)
    for item in value.values():
        if not isinstance(item, str):
            raise MalformedError(key, "a map of strings")
    return cast("Mapping[str, str]", value)
